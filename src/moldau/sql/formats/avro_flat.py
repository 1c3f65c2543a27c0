"""Rows of plain columns from and to Avro's bytes, by source that is made once per schema.

Most records are flat: fields of primitive types, which may be null. Those are read straight into a
tuple, and written from one, in a fraction of the time that a decoder of any schema takes. What is
not exactly as expected raises something, and the caller takes the general way, which also says what
is wrong.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from moldau.data.avro.model import MISSING, AvroType, Primitive, Record, Union
from moldau.sql.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    SqlType,
    StructType,
)

__all__ = ["flat_reader", "flat_writer"]

Row = tuple[Any, ...]
#: By the kind and the logical type that Avro's schema has.
_READABLE: Final[dict[tuple[str, str | None], frozenset[SqlType]]] = {
    ("int", None): frozenset({INTEGER, BIGINT}),
    ("long", None): frozenset({BIGINT}),
    ("double", None): frozenset({DOUBLE}),
    ("boolean", None): frozenset({BOOLEAN}),
    ("string", None): frozenset({STRING}),
    ("bytes", None): frozenset({BYTES}),
    ("int", "date"): frozenset({DATE}),
    ("int", "time-millis"): frozenset({TIME}),
    ("long", "timestamp-millis"): frozenset({TIMESTAMP}),
}


class _NotFlat(Exception):
    """The general way is needed: for a schema, or for a value."""


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of more than one byte, still in zigzag, and where it ends."""
    byte = data[at + 1]
    if byte < 0x80:
        return data[at] & 0x7F | byte << 7, at + 2
    shift = found = 0
    while True:
        byte = data[at]
        at += 1
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return found, at
        shift += 7
        if shift > 63:
            raise _NotFlat


def _long(number: int) -> bytes:
    left = (number << 1) ^ (number >> 63)
    if left < 0x4000:
        return bytes((left & 0x7F | 0x80, left >> 7)) if left > 0x7F else bytes((left,))
    if left < 0x20_0000:
        return bytes((left & 0x7F | 0x80, left >> 7 & 0x7F | 0x80, left >> 14))
    if 0x8_0000_0000 <= left < 0x400_0000_0000:
        # Six bytes: the times of our days.
        return bytes(
            (
                left & 0x7F | 0x80, left >> 7 & 0x7F | 0x80, left >> 14 & 0x7F | 0x80,
                left >> 21 & 0x7F | 0x80, left >> 28 & 0x7F | 0x80, left >> 35,
            )
        )  # fmt: skip
    data = bytearray()
    while left > 0x7F:
        data.append(left & 0x7F | 0x80)
        left >>= 7
    data.append(left)
    return bytes(data)


_SCOPE: Final[dict[str, Any]] = {
    "NotFlat": _NotFlat,
    "varint": _varint,
    "long": _long,
    "small": {number: _long(number) for number in range(-512, 4096)}.get,
    "double_at": struct.Struct("<d").unpack_from,
    "double": struct.Struct("<d").pack,
    "join": b"".join,
}
_NUMBER: Final = ("n = d[p]", "p += 1", "if n > 127: n, p = varint(d, p - 1)")
_READ: Final[dict[str, tuple[str, ...]]] = {
    "int": (
        *_NUMBER,
        "{v} = (n >> 1) ^ -(n & 1)",
        "if not -2147483648 <= {v} <= 2147483647: raise NotFlat",
    ),
    "long": (
        *_NUMBER,
        "{v} = (n >> 1) ^ -(n & 1)",
        "if not -9223372036854775808 <= {v} <= 9223372036854775807: raise NotFlat",
    ),
    "double": ("{v} = double_at(d, p)[0]", "p += 8"),
    "boolean": ("n = d[p]", "p += 1", "if n > 1: raise NotFlat", "{v} = n == 1"),
    "string": (
        *_NUMBER,
        "if n & 1: raise NotFlat",
        "e = p + (n >> 1)",
        "{v} = d[p:e].decode()",
        "p = e",
    ),
    "bytes": (*_NUMBER, "if n & 1: raise NotFlat", "e = p + (n >> 1)", "{v} = d[p:e]", "p = e"),
}
_WRITE: Final[dict[str, tuple[str, ...]]] = {
    "int": (
        "if type({v}) is not int or not -2147483648 <= {v} <= 2147483647: raise NotFlat",
        "{v} = small({v}) or long({v})",
    ),
    "long": (
        "if type({v}) is not int or not -9223372036854775808 <= {v} <= 9223372036854775807: "
        "raise NotFlat",
        "{v} = small({v}) or long({v})",
    ),
    "double": ("if type({v}) is not float: raise NotFlat", "{v} = double({v})"),
    "boolean": ("if type({v}) is not bool: raise NotFlat", "{v} = b'\\x01' if {v} else b'\\x00'"),
    "string": (
        "if type({v}) is not str: raise NotFlat",
        "{v} = {v}.encode()",
        "{v} = (small(len({v})) or long(len({v}))) + {v}",
    ),
    "bytes": (
        "if type({v}) is not bytes: raise NotFlat",
        "{v} = (small(len({v})) or long(len({v}))) + {v}",
    ),
}


def _primitive(written: AvroType) -> tuple[Primitive, int | None]:
    """The type of a field, and the place of null in its union; None where it cannot be null."""
    if isinstance(written, Primitive):
        return written, None
    if isinstance(written, Union) and len(written.branches) == 2:
        for place, (one, other) in enumerate((written.branches, written.branches[::-1])):
            if one.kind == "null" and isinstance(other, Primitive):
                return other, place
    raise _NotFlat


def _kind(written: Primitive, wanted: SqlType) -> str:
    logical = written.props.get("logicalType")
    if wanted not in _READABLE.get((written.kind, logical), frozenset()):
        raise _NotFlat
    return written.kind


def flat_reader(sql_type: SqlType, written: AvroType) -> Callable[[bytes], Row] | None:
    """Bytes to the columns of the type; None for schemas that are not flat."""
    try:
        lines = _reader_lines(sql_type, written)
    except _NotFlat:
        return None
    made: Callable[[bytes], Row] = _function(lines, "read")
    return made


def _reader_lines(sql_type: SqlType, written: AvroType) -> list[str]:
    if not isinstance(sql_type, StructType) or not isinstance(written, Record):
        raise _NotFlat
    places = {name: index for index, (name, _) in enumerate(sql_type.fields)}
    found = ["None"] * len(places)
    lines = ["def read(d):", "    p = 0"]
    for index, field in enumerate(written.fields):
        if field.default is not MISSING and field.default is not None:
            raise _NotFlat
        name = field.name if field.name in places else field.name.upper()
        if name not in places or not places:
            raise _NotFlat
        primitive, null = _primitive(field.type)
        kind = _kind(primitive, sql_type.fields[places[name]][1])
        found[places[name]] = f"v{index}"
        body = [each.format(v=f"v{index}") for each in _READ[kind]]
        if null is None:
            lines += [f"    {each}" for each in body]
            continue
        # A union begins with the number of its branch, in zigzag: 0 or 2.
        lines += ["    n = d[p]", "    p += 1", f"    if n == {2 - 2 * null}:"]
        lines += [f"        {each}" for each in body]
        lines += [f"    elif n == {2 * null}:", f"        v{index} = None"]
        lines += ["    else:", "        raise NotFlat"]
    lines += ["    if p > len(d): raise NotFlat", f"    return ({', '.join(found)},)"]
    return lines


def flat_writer(sql_type: SqlType, written: AvroType) -> Callable[[bytes, Row], bytes] | None:
    """First bytes and columns to bytes; None for schemas that are not flat."""
    try:
        lines = _writer_lines(sql_type, written)
    except _NotFlat:
        return None
    made: Callable[[bytes, Row], bytes] = _function(lines, "write")
    return made


def _writer_lines(sql_type: SqlType, written: AvroType) -> list[str]:
    if not isinstance(sql_type, StructType) or not isinstance(written, Record):
        raise _NotFlat
    names = [name.replace(".", "_") for name, _ in sql_type.fields]
    if not names or [each.name for each in written.fields] != names:
        raise _NotFlat
    values = ", ".join(f"v{index}" for index in range(len(names)))
    lines = ["def write(prefix, row):", f"    ({values},) = row"]
    for index, (field, (_, wanted)) in enumerate(zip(written.fields, sql_type.fields, strict=True)):
        primitive, null = _primitive(field.type)
        body = [each.format(v=f"v{index}") for each in _WRITE[_kind(primitive, wanted)]]
        if null is None:
            lines += [f"    {each}" for each in body]
            continue
        nothing, something = (b"\0", b"\2") if null == 0 else (b"\2", b"\0")
        lines += [f"    if v{index} is None:", f"        v{index} = {nothing!r}", "    else:"]
        lines += [f"        {each}" for each in body]
        lines += [f"        v{index} = {something!r} + v{index}"]
    lines += [f"    return join((prefix, {values}))"]
    return lines


def _function(lines: list[str], name: str) -> Any:
    scope = dict(_SCOPE)
    # The source is made of places and kinds alone: no name of a schema is part of it.
    exec(compile("\n".join(lines), "<Avro row>", "exec"), scope)
    return scope[name]
