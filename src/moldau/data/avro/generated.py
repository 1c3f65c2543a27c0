"""Encoders as Python functions made for one schema: small values take a quarter of fastavro's time.

Only values of exactly the expected types are encoded, so that the bytes are those of fastavro. For
anything else (a missing field that has a default, a subclass, a number as text) a function raises
whatever comes, and the caller falls back to fastavro, which encodes the value or says what is wrong
with it. A schema with a union whose branch must be found out by trying is left to fastavro as a
whole. Texts of a schema enter the source as literals only.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from fastavro.write import LOGICAL_WRITERS

from moldau.data.avro.logical_types import logical_type
from moldau.data.avro.model import (
    Array,
    AvroType,
    Enum,
    Fixed,
    Map,
    Primitive,
    Record,
    Union,
)

__all__ = ["generated_encoder"]

Encode = Callable[[Any], bytes]

#: A schema of more types than this is left to fastavro: its source would grow too long.
TYPES_MAX: Final = 2_000
_LONG_MIN, _LONG_MAX = -(2**63), 2**63 - 1
_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1


class _Unsupported(Exception):
    """A schema that is left to fastavro."""


class NotExact(Exception):
    """A value that is left to fastavro."""


def generated_encoder(schema: AvroType, *, logical_types: bool = True) -> Encode | None:
    """None for a schema that is left to fastavro."""
    source = _Source(logical_types=logical_types)
    try:
        name = source.function_of(schema)
    except (_Unsupported, RecursionError):
        return None
    scope = source.compiled()
    encode: Encode = scope[name]
    return encode


def _long(number: int) -> bytes:
    if not _LONG_MIN <= number <= _LONG_MAX:
        raise NotExact
    left = (number << 1) ^ (number >> 63)
    data = bytearray()
    while left > 0x7F:
        data.append(left & 0x7F | 0x80)
        left >>= 7
    data.append(left)
    return bytes(data)


def _int(number: int) -> bytes:
    if not _INT_MIN <= number <= _INT_MAX:
        raise NotExact
    return _long(number)


#: Most numbers and lengths are small, and a look-up is faster than a loop.
_SMALL: Final = {number: _long(number) for number in range(-512, 4096)}
_SCOPE: Final[dict[str, Any]] = {
    "NotExact": NotExact,
    "small": _SMALL.get,
    "long": _long,
    "int32": _int,
    "double": struct.Struct("<d").pack,
    "single": struct.Struct("<f").pack,
    "join": b"".join,
}

#: Statements that turn `{v}` into bytes, or raise.
_PRIMITIVES: Final[dict[str, tuple[str, ...]]] = {
    "null": ("if {v} is not None: raise NotExact", "{v} = b''"),
    "boolean": ("if type({v}) is not bool: raise NotExact", "{v} = b'\\x01' if {v} else b'\\x00'"),
    "int": ("if type({v}) is not int: raise NotExact", "{v} = small({v}) or int32({v})"),
    "long": ("if type({v}) is not int: raise NotExact", "{v} = small({v}) or long({v})"),
    "float": (
        "if type({v}) is not float and type({v}) is not int: raise NotExact",
        "{v} = single({v})",
    ),
    "double": (
        "if type({v}) is not float and type({v}) is not int: raise NotExact",
        "{v} = double({v})",
    ),
    "string": (
        "if type({v}) is not str: raise NotExact",
        "{v} = {v}.encode()",
        "{v} = (small(len({v})) or long(len({v}))) + {v}",
    ),
    "bytes": (
        "if type({v}) is not bytes: raise NotExact",
        "{v} = (small(len({v})) or long(len({v}))) + {v}",
    ),
}


class _Source:
    """The functions of one schema: one for each type that is not a primitive."""

    def __init__(self, *, logical_types: bool) -> None:
        self._logical_types = logical_types
        self._names: dict[int, str] = {}
        self._scope: dict[str, Any] = dict(_SCOPE)
        self._lines: list[str] = []

    def compiled(self) -> dict[str, Any]:
        exec(compile("\n".join(self._lines), "<Avro encoder>", "exec"), self._scope)
        return self._scope

    def function_of(self, schema: AvroType) -> str:
        """The name of the function that encodes a type; it is written once."""
        known = self._names.get(id(schema))
        if known is not None:
            return known
        if len(self._names) >= TYPES_MAX:
            raise _Unsupported
        name = self._names[id(schema)] = f"encode_{len(self._names)}"
        body = self._body(schema)
        self._lines += [f"def {name}(v):", *(f"    {line}" for line in body)]
        return name

    def _body(self, schema: AvroType) -> list[str]:
        match schema:
            case Primitive():
                return [*self._inline(schema, "v"), "return v"]
            case Record():
                return self._record(schema)
            case Array():
                return self._array(schema)
            case Map():
                return self._map(schema)
            case Union():
                return self._union(schema)
            case Enum():
                symbols = {each: _long(place) for place, each in enumerate(schema.symbols)}
                table = self._constant(symbols)
                return [
                    "if type(v) is not str: raise NotExact",
                    f"return {table}[v]",
                ]
            case Fixed():
                self._refuse_logical(schema)
                return [
                    f"if type(v) is not bytes or len(v) != {schema.size}: raise NotExact",
                    "return v",
                ]

    def _record(self, schema: Record) -> list[str]:
        self._refuse_logical(schema)
        lines = ["if type(v) is not dict: raise NotExact"]
        names = []
        for place, field in enumerate(schema.fields):
            name = f"f{place}"
            lines.append(f"{name} = v[{field.name!r}]")
            lines += self._value(field.type, name)
            names.append(name)
        return [*lines, f"return join(({', '.join(names)}{',' if names else ''}))"]

    def _array(self, schema: Array) -> list[str]:
        self._refuse_logical(schema)
        return [
            "if type(v) is not list: raise NotExact",
            "if not v: return b'\\x00'",
            "parts = [small(len(v)) or long(len(v))]",
            "for item in v:",
            *(f"    {line}" for line in self._value(schema.items, "item")),
            "    parts.append(item)",
            "parts.append(b'\\x00')",
            "return join(parts)",
        ]

    def _map(self, schema: Map) -> list[str]:
        self._refuse_logical(schema)
        return [
            "if type(v) is not dict: raise NotExact",
            "if not v: return b'\\x00'",
            "parts = [small(len(v)) or long(len(v))]",
            "for key, item in v.items():",
            *(f"    {line}" for line in _filled("string", "key")),
            "    parts.append(key)",
            *(f"    {line}" for line in self._value(schema.values, "item")),
            "    parts.append(item)",
            "parts.append(b'\\x00')",
            "return join(parts)",
        ]

    def _union(self, schema: Union) -> list[str]:
        """Null and one other type. With more, fastavro knows which branch a value belongs to."""
        kinds = [each.kind for each in schema.branches]
        if len(kinds) != 2 or kinds.count("null") != 1:
            raise _Unsupported
        null = kinds.index("null")
        other = schema.branches[1 - null]
        lines = [f"if v is None: return {_long(null)!r}"]
        if isinstance(other, Record):
            # fastavro lets a value name its branch in this way.
            lines.append("if '-type' in v: raise NotExact")
        return [*lines, *self._value(other, "v"), f"return {_long(1 - null)!r} + v"]

    def _value(self, schema: AvroType, name: str) -> list[str]:
        """Statements that turn a variable into bytes."""
        if isinstance(schema, Primitive):
            return self._inline(schema, name)
        return [f"{name} = {self.function_of(schema)}({name})"]

    def _inline(self, schema: Primitive, name: str) -> list[str]:
        lines: list[str] = []
        found = logical_type(schema) if self._logical_types else None
        if found is not None:
            prepare = LOGICAL_WRITERS.get(f"{schema.kind}-{found}")
            if prepare is not None:
                function, props = self._constant(prepare), self._constant(dict(schema.props))
                lines.append(f"{name} = {function}({name}, {props})")
        return [*lines, *_filled(schema.kind, name)]

    def _refuse_logical(self, schema: AvroType) -> None:
        if self._logical_types and logical_type(schema) is not None:
            raise _Unsupported

    def _constant(self, value: Any) -> str:
        name = f"constant_{len(self._scope)}"
        self._scope[name] = value
        return name


def _filled(kind: str, name: str) -> list[str]:
    return [line.format(v=name) for line in _PRIMITIVES[kind]]
