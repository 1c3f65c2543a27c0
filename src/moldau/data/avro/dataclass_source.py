"""Python source for the records of an Avro schema: a dataclass each, an enum class for each enum.

A class knows its schema (`SCHEMA`), and converts to and from what serializers take (`to_dict`,
`from_dict`), so that fields may be named as Python's own words are. The source imports nothing but
the standard library.
"""

from __future__ import annotations

import json
import keyword
import math
from collections.abc import Iterator
from typing import Any, Final

from moldau.data.avro.default_values import default_value
from moldau.data.avro.logical_types import logical_type
from moldau.data.avro.model import (
    MISSING,
    Array,
    AvroType,
    Enum,
    Fixed,
    Map,
    NamedType,
    Primitive,
    Record,
    RecordField,
    Union,
    parts,
)
from moldau.data.avro.printing import schema_text

__all__ = ["dataclass_source"]

_PRIMITIVES: Final = {
    "null": "None",
    "boolean": "bool",
    "int": "int",
    "long": "int",
    "float": "float",
    "double": "float",
    "bytes": "bytes",
    "string": "str",
}
_LOGICAL: Final = {
    "date": "datetime.date",
    "time-millis": "datetime.time",
    "time-micros": "datetime.time",
    "timestamp-millis": "datetime.datetime",
    "timestamp-micros": "datetime.datetime",
    "local-timestamp-millis": "datetime.datetime",
    "local-timestamp-micros": "datetime.datetime",
    "decimal": "decimal.Decimal",
    "uuid": "uuid.UUID",
}
_HELPERS: Final = '''\
def _record_of(data: Any, *classes: Any) -> Any:
    """The record of the first class that has the same fields."""
    for each in classes:
        if isinstance(data, dict) and data.keys() == each.FIELDS:
            return each.from_dict(data)
    return data
'''


def dataclass_source(schemas: list[AvroType]) -> str:
    """One module for all schemas; types that they share are written once."""
    named: dict[str, NamedType] = {}
    for schema in schemas:
        _collect(schema, named)
    source = _Source(_class_names(list(named.values())))
    classes = [
        "\n".join(source.enum(each) if isinstance(each, Enum) else source.record(each))
        for each in named.values()
        if isinstance(each, Enum | Record)
    ]
    body = "\n\n\n".join(classes)
    if "_record_of(" in body:
        body += "\n\n\n" + _HELPERS.rstrip()
    modules = [each for each in ("datetime", "decimal", "uuid") if f"{each}." in body]
    head = ['"""Made from Avro schemas by `moldau schemas generate`."""', ""]
    head += ["from __future__ import annotations", ""]
    head += [f"import {each}" for each in modules]
    head += ["from dataclasses import dataclass, field"] if "@dataclass" in body else []
    head += ["from enum import StrEnum"] if "(StrEnum)" in body else []
    head += ["from typing import Any, ClassVar"] if "@dataclass" in body else []
    text = "\n".join(head) + "\n\n\n" + body + "\n"
    if "field(default_factory" not in body:
        text = text.replace("import dataclass, field", "import dataclass")
    return text


def _collect(schema: AvroType, named: dict[str, NamedType]) -> None:
    """Those that a type is made of stand before it."""
    if isinstance(schema, Record | Enum | Fixed):
        if schema.name.full in named:
            return
        named[schema.name.full] = schema
        for inner in parts(schema):
            _collect(inner, named)
        named[schema.name.full] = named.pop(schema.name.full)
        return
    for inner in parts(schema):
        _collect(inner, named)


def _class_names(types: list[NamedType]) -> dict[str, str]:
    """The simple name, or the full one where two have the same."""
    simple = [each.name.simple for each in types]
    return {
        each.name.full: _identifier(
            each.name.simple
            if simple.count(each.name.simple) == 1
            else each.name.full.replace(".", "_")
        )
        for each in types
    }


def _identifier(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) or name in _TAKEN else name


#: Names that a class has for itself.
_TAKEN: Final = frozenset({"SCHEMA", "FIELDS", "to_dict", "from_dict", "None", "True", "False"})


class _Source:
    def __init__(self, classes: dict[str, str]) -> None:
        self._classes = classes

    # Classes.

    def enum(self, schema: Enum) -> Iterator[str]:
        yield f"class {self._classes[schema.name.full]}(StrEnum):"
        yield from _doc(schema.doc)
        for symbol in schema.symbols:
            yield f"    {_identifier(symbol)} = {symbol!r}"

    def record(self, schema: Record) -> Iterator[str]:
        name = self._classes[schema.name.full]
        yield "@dataclass(slots=True, kw_only=True)"
        yield f"class {name}:"
        yield from _doc(schema.doc)
        for each in schema.fields:
            default = self._default(each)
            shown = "" if default is None else f" = {default}"
            note = f"  # {' '.join(each.doc.split())}" if each.doc else ""
            yield f"    {_identifier(each.name)}: {self.type(each.type)}{shown}{note}"
        if schema.fields:
            yield ""
        yield f"    SCHEMA: ClassVar[str] = {schema_text(schema)!r}"
        names = ", ".join(repr(each.name) for each in schema.fields)
        listed = f"frozenset({{{names}}})" if names else "frozenset()"
        yield f"    FIELDS: ClassVar[frozenset[str]] = {listed}"
        yield ""
        yield "    def to_dict(self) -> dict[str, Any]:"
        yield "        return {"
        for each in schema.fields:
            value = self._written(each.type, f"self.{_identifier(each.name)}", 0)
            yield f"            {each.name!r}: {value},"
        yield "        }"
        yield ""
        yield "    @classmethod"
        yield f"    def from_dict(cls, data: Any) -> {name}:"
        yield "        return cls("
        for each in schema.fields:
            value = self._read(each.type, f"data[{each.name!r}]", 0)
            yield f"            {_identifier(each.name)}={value},"
        yield "        )"

    # Types.

    def type(self, schema: AvroType) -> str:
        found = _LOGICAL.get(logical_type(schema) or "")
        if found is not None:
            return found
        match schema:
            case Primitive():
                return _PRIMITIVES[schema.kind]
            case Fixed():
                return "bytes"
            case Enum() | Record():
                return self._classes[schema.name.full]
            case Array():
                return f"list[{self.type(schema.items)}]"
            case Map():
                return f"dict[str, {self.type(schema.values)}]"
            case Union():
                branches = [self.type(each) for each in schema.branches]
                # None last, as people write it.
                ordered = sorted(dict.fromkeys(branches), key=lambda each: each == "None")
                return " | ".join(ordered) or "None"

    def _default(self, field: RecordField) -> str | None:
        if field.default is MISSING:
            return None
        value = default_value(field.type, field.default)
        chosen = field.type
        if isinstance(chosen, Union):
            chosen = chosen.branches[0]
        match chosen:
            case Enum():
                return f"{self._classes[chosen.name.full]}.{_identifier(value)}"
            case Array() | Map() | Record():
                made = self._read(chosen, _literal(value), 0)
                return f"field(default_factory=lambda: {made})"
            case _:
                return _literal(value)

    # Values.

    def _is_converted(self, schema: AvroType) -> bool:
        """Whether dicts hold another value than objects."""
        match schema:
            case Record() | Enum():
                return True
            case Array():
                return self._is_converted(schema.items)
            case Map():
                return self._is_converted(schema.values)
            case Union():
                return any(self._is_converted(each) for each in schema.branches)
            case _:
                return False

    def _read(self, schema: AvroType, value: str, depth: int) -> str:
        if not self._is_converted(schema):
            return value
        inner, key = f"each{depth or ''}", f"key{depth or ''}"
        match schema:
            case Record():
                return f"{self._classes[schema.name.full]}.from_dict({value})"
            case Enum():
                return f"{self._classes[schema.name.full]}({value})"
            case Array():
                return f"[{self._read(schema.items, inner, depth + 1)} for {inner} in {value}]"
            case Map():
                made = self._read(schema.values, inner, depth + 1)
                return f"{{{key}: {made} for {key}, {inner} in {value}.items()}}"
            case Union():
                return self._read_union(schema, value, depth)
            case _:
                return value

    def _read_union(self, schema: Union, value: str, depth: int) -> str:
        others = [each for each in schema.branches if each.kind != "null"]
        if len(others) == 1:
            made = self._read(others[0], value, depth)
            return f"None if {value} is None else {made}"
        records = [self._classes[e.name.full] for e in others if isinstance(e, Record)]
        if records:
            return f"_record_of({value}, {', '.join(records)})"
        return value

    def _written(self, schema: AvroType, value: str, depth: int) -> str:
        if not self._is_converted(schema):
            return value
        inner, key = f"each{depth or ''}", f"key{depth or ''}"
        match schema:
            case Record():
                return f"{value}.to_dict()"
            case Enum():
                return f"str({value})"
            case Array():
                return f"[{self._written(schema.items, inner, depth + 1)} for {inner} in {value}]"
            case Map():
                made = self._written(schema.values, inner, depth + 1)
                return f"{{{key}: {made} for {key}, {inner} in {value}.items()}}"
            case Union():
                return self._write_union(schema, value, depth)
            case _:
                return value

    def _write_union(self, schema: Union, value: str, depth: int) -> str:
        others = [each for each in schema.branches if each.kind != "null"]
        if len(others) == 1:
            return f"None if {value} is None else {self._written(others[0], value, depth)}"
        shown = value
        for each in others:
            if isinstance(each, Record):
                # With its name: two records of a union may have the same fields.
                name = self._classes[each.name.full]
                pair = f"({each.name.full!r}, {value}.to_dict())"
                shown = f"{pair} if isinstance({value}, {name}) else {shown}"
        return shown


def _doc(text: str | None) -> Iterator[str]:
    if text:
        shown = " ".join(text.split()).replace("\\", "\\\\").replace('"', "'")
        yield f'    """{shown}"""'
        yield ""


def _literal(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({json.dumps(str(value))})"
    shown = repr(value)
    return shown.replace("Decimal(", "decimal.Decimal(").replace("UUID(", "uuid.UUID(")
