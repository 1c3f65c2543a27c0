"""Writes the source of the function that reads one message in one version.

That function never checks each slice against the end of the buffer: the position only grows, so
one check at the end finds any slice that ran over. What must be checked at once are counts,
because they decide how much is allocated.
"""

from __future__ import annotations

from moldau.invariant import invariant
from moldau.wire.codec_functions import SHORT_ARRAY
from moldau.wire.codec_source import (
    FORMATS,
    SIZED,
    SIZES,
    Field,
    FunctionSource,
    Source,
    minimum_size,
)
from moldau.wire.message import Message


def reader_source(cls: type[Message], version: int) -> FunctionSource:
    source = Source(cls, version)
    run = _Run(source)
    _decode_struct(source, run, cls, "m")
    run.flush()
    source.add("if pos > end:")
    source.add("    raise WireError('message is cut off')")
    source.add("return m, pos")
    return source.finish("def decode(buf, pos, end):")


class _Run:
    """Neighbouring fixed-width values that one struct will read.

    Their targets are assigned at `flush`, which comes before anything that depends on the
    position or branches.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._formats: list[str] = []
        self._targets: list[str] = []
        self._after: list[str] = []

    def take(self, kind: str, target: str) -> None:
        if kind == "uuid":
            raw = self._source.fresh("u")
            self._after.append(f"{target} = to_uuid({raw})")
            target = raw
        self._formats.append(FORMATS.get(kind, kind))
        self._targets.append(target)

    def flush(self) -> None:
        source = self._source
        if not self._formats:
            return
        if self._formats == ["B"]:
            source.add(f"{self._targets[0]} = buf[pos]")
            source.add("pos += 1")
        else:
            name, size = source.packer("unpack", self._formats)
            comma = "," if len(self._targets) == 1 else ""
            source.add(f"{', '.join(self._targets)}{comma} = {name}(buf, pos)")
            source.add(f"pos += {size}")
        for line in self._after:
            source.add(line)
        self._formats, self._targets, self._after = [], [], []


def _decode_struct(source: Source, run: _Run, cls: type[Message], name: str) -> None:
    """Read a struct into the new variable `name`; its last values may still be in `run`."""
    source.add(f"{name} = new({source.class_name(cls)})")
    tagged = []
    for field in source.fields(cls):
        target = f"{name}.{field.name}"
        if field.tag is not None:
            tagged.append(field)
        if field.present and field.tag is None:
            _decode_value(source, run, field, target)
        else:
            source.add(f"{target} = {source.default(field)}")
    if source.flexible:
        count = source.fresh("n")
        run.take("B", count)
        run.flush()
        source.add(f"{name}.unknown_tagged_fields = None")
        source.add(f"if {count}:")
        source.depth += 1
        if tagged:
            _decode_tags(source, tagged, name, count)
        else:
            unknown = f"{name}.unknown_tagged_fields"
            source.add(f"{unknown}, pos = unknown_tags(buf, pos, end, {count})")
        source.depth -= 1
    else:
        source.add(f"{name}.unknown_tagged_fields = None")


def _decode_tags(source: Source, tagged: list[Field], name: str, count: str) -> None:
    tag, size, stop = source.fresh("t"), source.fresh("s"), source.fresh("e")
    _long_varint(source, count)
    source.add(f"if {count} > end - pos:")
    source.add("    raise WireError('more tagged fields than bytes')")
    source.add(f"for _ in range({count}):")
    source.depth += 1
    for variable in (tag, size):
        source.add(f"{variable} = buf[pos]")
        source.add("pos += 1")
        _long_varint(source, variable)
    source.add(f"{stop} = pos + {size}")
    source.add(f"if {stop} > end:")
    source.add("    raise WireError('a tagged field is cut off')")
    word = "if"
    for field in tagged:
        source.add(f"{word} {tag} == {field.tag}:")
        word = "elif"
        source.depth += 1
        run = _Run(source)
        _decode_value(source, run, field, f"{name}.{field.name}")
        run.flush()
        source.add(f"if pos != {stop}:")
        source.add(f"    raise WireError('tagged field {field.name} has a wrong size')")
        source.depth -= 1
    source.add("else:")
    source.depth += 1
    source.add(f"if {name}.unknown_tagged_fields is None:")
    source.add(f"    {name}.unknown_tagged_fields = {{}}")
    source.add(f"{name}.unknown_tagged_fields[{tag}] = buf[pos:{stop}]")
    source.add(f"pos = {stop}")
    source.depth -= 2


def _long_varint(source: Source, name: str) -> None:
    source.add(f"if {name} > 127:")
    source.add(f"    {name}, pos = varint_tail(buf, pos, {name})")


def _decode_value(source: Source, run: _Run, field: Field, target: str) -> None:
    if field.type in FORMATS:
        run.take(field.type, target)
    elif field.is_array:
        _decode_array(source, run, field, target)
    elif field.type in SIZED:
        _decode_sized(source, run, field, target, field.nullable)
    elif field.nullable:
        mark, inner = source.fresh("p"), source.fresh("m")
        # A mark is -1 or 1, but in a tagged field 0 or 1.
        run.take("int8" if field.tag is None else "B", mark)
        run.flush()
        source.add(f"if {mark} {'< 0' if field.tag is None else '== 0'}:")
        source.add(f"    {target} = None")
        source.add("else:")
        source.depth += 1
        _decode_struct(source, run, source.struct(field.type), inner)
        run.flush()
        source.add(f"{target} = {inner}")
        source.depth -= 1
    else:
        inner = source.fresh("m")
        _decode_struct(source, run, source.struct(field.type), inner)
        source.add(f"{target} = {inner}")


def _decode_length(source: Source, run: _Run, field: Field, prefix: str) -> tuple[str, str]:
    """Read a length or count. Gives its name and the test for null.

    In flexible versions the number is one more than the length.
    """
    length = source.fresh("n")
    if field.flexible:
        run.take("B", length)
        run.flush()
        _long_varint(source, length)
        return length, f"{length} == 0"
    run.take(prefix, length)
    run.flush()
    return length, f"{length} < 0"


def _decode_sized(source: Source, run: _Run, field: Field, target: str, nullable: bool) -> None:
    """A string, bytes or records."""
    is_string = field.element == "string"
    length, is_null = _decode_length(source, run, field, "h" if is_string else "i")
    source.add(f"if {is_null}:")
    if nullable:
        source.add(f"    {target} = None")
        source.add("else:")
        source.depth += 1
    else:
        source.add(f"    raise WireError('{field.name} must not be null')")
    stop = source.fresh("e")
    less = " - 1" if field.flexible else ""
    source.add(f"{stop} = pos + {length}{less}")
    if is_string and field.flexible:
        source.add(f"if {length} > 32768:")
        source.add(f"    raise WireError('{field.name} is longer than 32767 bytes')")
    source.add(f"{target} = buf[pos:{stop}]" + (".decode()" if is_string else ""))
    source.add(f"pos = {stop}")
    if nullable:
        source.depth -= 1


def _decode_array(source: Source, run: _Run, field: Field, target: str) -> None:
    count, is_null = _decode_length(source, run, field, "i")
    source.add(f"if {is_null}:")
    if field.nullable:
        source.add(f"    {target} = None")
        source.add("else:")
        source.depth += 1
    else:
        source.add(f"    raise WireError('{field.name} must not be null')")
    if field.flexible:
        source.add(f"{count} -= 1")
    if field.element in FORMATS and field.element != "uuid":
        _decode_numbers(source, field, target, count)
    else:
        _decode_elements(source, field, target, count)
    if field.nullable:
        source.depth -= 1


def _decode_numbers(source: Source, field: Field, target: str, count: str) -> None:
    """All at once. A struct refuses to read beyond the end before it allocates anything."""
    code = FORMATS[field.element]
    if code == "i":
        source.add(f"if {count} < {SHORT_ARRAY}:")
        source.add(f"    {target} = list(UNPACK_INT32S[{count}](buf, pos))")
        source.add("else:")
        source.depth += 1
    source.add(f"{target} = list(unpack_from(f'>{{{count}}}{code}', buf, pos))")
    if code == "i":
        source.depth -= 1
    source.add(f"pos += {count} * {SIZES[code]}")


def _decode_elements(source: Source, field: Field, target: str, count: str) -> None:
    size = minimum_size(source, field)
    invariant(size > 0, f"elements of {field.name} take no bytes, so nothing bounds their count")
    source.add(f"if {count} * {size} > end - pos:")
    source.add(f"    raise WireError('{field.name} has more elements than bytes')")
    items, item = source.fresh("l"), source.fresh("m")
    source.add(f"{target} = {items} = []")
    source.add(f"for _ in range({count}):")
    source.depth += 1
    run = _Run(source)
    if field.element in FORMATS:
        run.take(field.element, item)
        run.flush()
    elif field.element in SIZED:
        _decode_sized(source, run, field, item, nullable=False)
    else:
        _decode_struct(source, run, source.struct(field.element), item)
        run.flush()
    source.add(f"{items}.append({item})")
    source.depth -= 1
