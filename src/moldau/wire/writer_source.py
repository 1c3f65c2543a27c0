"""Writes the source of the function that writes one message in one version."""

from __future__ import annotations

from moldau.wire.codec_functions import SHORT_ARRAY
from moldau.wire.codec_source import FORMATS, SIZED, Field, FunctionSource, Source
from moldau.wire.message import Message


def writer_source(cls: type[Message], version: int) -> FunctionSource:
    source = Source(cls, version)
    _encode_struct(source, _Pending(source, "out"), cls, "m")
    return source.finish("def encode(m, out):")


class _Pending:
    """Neighbouring fixed-width values that one struct will write.

    They are written in each branch that follows them, together with that branch's own first
    value, and dropped after the branches.
    """

    def __init__(self, source: Source, out: str) -> None:
        self._source = source
        self._formats: list[str] = []
        self._values: list[str] = []
        self.out = out

    def add(self, kind: str, value: str) -> None:
        if kind == "uuid":
            value = f"{value}.int.to_bytes(16, 'big')"
        self._formats.append(FORMATS.get(kind, kind))
        self._values.append(value)

    def write(self, kind: str = "", value: str = "") -> None:
        """Write what is pending, and one value more; all of it stays pending."""
        formats = [*self._formats, *([kind] if kind else [])]
        values = [*self._values, *([value] if kind else [])]
        source = self._source
        if formats == ["B"]:
            source.add(f"{self.out}.append({values[0]})")
        elif formats:
            name, _ = source.packer("pack", formats)
            source.add(f"{self.out} += {name}({', '.join(values)})")

    def drop(self) -> None:
        self._formats, self._values = [], []


def _encode_struct(source: Source, pending: _Pending, cls: type[Message], name: str) -> None:
    """Write the struct in the variable `name`; nothing is pending afterwards."""
    fields = source.fields(cls)
    for field in fields:
        if not field.present and not field.ignorable:
            _refuse_value(source, field, name)
    for field in fields:
        if field.present and field.tag is None:
            _encode_value(source, pending, field, f"{name}.{field.name}")
    if source.flexible:
        tagged = [field for field in fields if field.tag is not None]
        _encode_tags(source, pending, tagged, name)
    else:
        pending.write()
        pending.drop()
        source.add(f"if {name}.unknown_tagged_fields:")
        source.add(f"    raise WireError('v{source.version} has no tagged fields')")


def _encode_tags(source: Source, pending: _Pending, tagged: list[Field], name: str) -> None:
    tags = source.fresh("t")
    source.add(f"{tags} = {name}.unknown_tagged_fields")
    if tagged:
        source.add(f"{tags} = dict({tags}) if {tags} else {{}}")
    for field in tagged:
        value = source.fresh("b")
        source.add(f"if {_differs(source, field, f'{name}.{field.name}')}:")
        source.depth += 1
        source.add(f"{tags}[{field.tag}] = {value} = bytearray()")
        inner = _Pending(source, value)
        _encode_value(source, inner, field, f"{name}.{field.name}")
        inner.write()
        source.depth -= 1
    source.add(f"if {tags}:")
    source.depth += 1
    pending.write()
    source.add(f"write_tags({pending.out}, {tags})")
    source.depth -= 1
    source.add("else:")
    source.depth += 1
    pending.write("B", "0")
    source.depth -= 1
    pending.drop()


def _differs(source: Source, field: Field, value: str) -> str:
    """The test whether a field has another value than its default."""
    if field.default is None:
        return f"{value} is not None"
    if field.is_array:
        # Null, where it may be, is not the default either.
        return f"{value} is None or len({value})"
    if field.type == "uuid":
        return f"{value}.int"
    if field.type in FORMATS or field.type in SIZED:
        return f"{value} != {field.default!r}"
    parts = [
        _differs(source, inner, f"{value}.{inner.name}")
        for inner in source.fields(source.struct(field.type))
    ]
    if field.ever_nullable:
        parts.insert(0, f"{value} is None")
    return " or ".join([*parts, f"{value}.unknown_tagged_fields"])


def _refuse_value(source: Source, field: Field, name: str) -> None:
    source.add(f"if {_differs(source, field, f'{name}.{field.name}')}:")
    text = f"{field.name} does not exist in v{source.version} but is "
    source.add(f"    raise WireError({text!r} + repr({name}.{field.name})[:100])")


def _encode_value(source: Source, pending: _Pending, field: Field, value: str) -> None:
    if field.type in FORMATS:
        pending.add(field.type, value)
    elif field.is_array:
        _encode_array(source, pending, field, value)
    elif field.type in SIZED:
        _encode_sized(source, pending, field, value, field.nullable)
    elif field.nullable:
        inner = source.fresh("m")
        source.add(f"{inner} = {value}")
        source.add(f"if {inner} is None:")
        source.depth += 1
        # A mark is -1 or 1, but in a tagged field 0 or 1.
        pending.write("b", "-1" if field.tag is None else "0")
        source.depth -= 1
        source.add("else:")
        source.depth += 1
        pending.write("b", "1")
        _encode_struct(source, _Pending(source, pending.out), source.struct(field.type), inner)
        source.depth -= 1
        pending.drop()
    else:
        inner = source.fresh("m")
        source.add(f"{inner} = {value}")
        _encode_struct(source, pending, source.struct(field.type), inner)


def _encode_sized(
    source: Source, pending: _Pending, field: Field, value: str, nullable: bool
) -> None:
    """A string, bytes or records."""
    is_string = field.element == "string"
    data, length = source.fresh("b"), source.fresh("n")
    _begin_nullable(source, pending, field, data, value, nullable, "h" if is_string else "i")
    if is_string:
        source.add(f"{data} = {data}.encode()")
    if field.flexible:
        source.add(f"{length} = len({data})")
        source.add(f"if {length} < 127:")
        source.depth += 1
        pending.write("B", f"{length} + 1")
        source.add(f"{pending.out} += {data}")
        source.depth -= 1
        source.add("else:")
        source.depth += 1
        pending.write()
        source.add(f"{'long_string' if is_string else 'long_bytes'}({pending.out}, {data})")
        source.depth -= 1
    else:
        pending.write("h" if is_string else "i", f"len({data})")
        source.add(f"{pending.out} += {data}")
    if nullable:
        source.depth -= 1
    pending.drop()


def _begin_nullable(
    source: Source,
    pending: _Pending,
    field: Field,
    data: str,
    value: str,
    nullable: bool,
    prefix: str,
) -> None:
    """Put the value in `data`; where it may be null, write that and open the other branch."""
    source.add(f"{data} = {value}")
    if not nullable:
        return
    source.add(f"if {data} is None:")
    source.depth += 1
    if field.flexible:
        pending.write("B", "0")
    else:
        pending.write(prefix, "-1")
    source.depth -= 1
    source.add("else:")
    source.depth += 1


def _encode_array(source: Source, pending: _Pending, field: Field, value: str) -> None:
    items, count, item = source.fresh("l"), source.fresh("n"), source.fresh("m")
    _begin_nullable(source, pending, field, items, value, field.nullable, "i")
    source.add(f"{count} = len({items})")
    is_number = field.element in FORMATS and field.element != "uuid"
    if is_number:
        _encode_numbers(source, pending, field, items, count)
    else:
        _encode_count(source, pending, field, count)
        source.add(f"for {item} in {items}:")
        source.depth += 1
        inner = _Pending(source, pending.out)
        if field.element in FORMATS:
            inner.add(field.element, item)
            inner.write()
        elif field.element in SIZED:
            _encode_sized(source, inner, field, item, nullable=False)
        else:
            _encode_struct(source, inner, source.struct(field.element), item)
        source.depth -= 1
    if field.nullable:
        source.depth -= 1
    pending.drop()


def _encode_count(source: Source, pending: _Pending, field: Field, count: str) -> None:
    if not field.flexible:
        pending.write("i", count)
        return
    source.add(f"if {count} < 127:")
    source.depth += 1
    pending.write("B", f"{count} + 1")
    source.depth -= 1
    source.add("else:")
    source.depth += 1
    pending.write()
    source.add(f"write_unsigned_varint({pending.out}, {count} + 1)")
    source.depth -= 1


def _encode_numbers(
    source: Source, pending: _Pending, field: Field, items: str, count: str
) -> None:
    code = FORMATS[field.element]
    short = code == "i" and field.flexible
    if short:
        source.add(f"if {count} < {SHORT_ARRAY}:")
        source.depth += 1
        pending.write()
        source.add(f"{pending.out} += PACK_INT32S[{count}]({count} + 1, *{items})")
        source.depth -= 1
        source.add("else:")
        source.depth += 1
    _encode_count(source, pending, field, count)
    source.add(f"{pending.out} += pack(f'>{{{count}}}{code}', *{items})")
    if short:
        source.depth -= 1
