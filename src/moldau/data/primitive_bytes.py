"""Single values as bytes: what Connect's converters for numbers, bytes and texts write and read."""

from __future__ import annotations

import codecs
import datetime
import struct
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

from moldau.data import builders, json_text
from moldau.data.errors import DataError, OptionError
from moldau.data.schema import Schema, SchemaAndValue, Type
from moldau.data.struct import Struct, validate_value


class BytesConverter(Protocol):
    """What all of them offer: None stands for null both ways."""

    def to_bytes(self, schema: Schema | None, value: Any) -> bytes | None: ...

    def from_bytes(self, data: bytes | None) -> SchemaAndValue: ...


@dataclass(frozen=True, slots=True)
class NumberConverter:
    """ShortConverter, IntegerConverter, LongConverter, FloatConverter and DoubleConverter."""

    name: str
    schema: Schema
    layout: struct.Struct

    def to_bytes(self, schema: Schema | None, value: Any) -> bytes | None:
        if value is None:
            return None
        try:
            validate_value(self.schema, value)
            if schema is not None and schema.type is not self.schema.type:
                # A number that would fit: Java's serializers take one type only.
                raise DataError(schema.type.name)
            return self.layout.pack(value)
        except (DataError, OverflowError):
            kind = type(value).__name__ if schema is None else schema.type.name
            raise DataError(f"Failed to serialize to {self.name} (was {kind}): {value!r}") from None

    def from_bytes(self, data: bytes | None) -> SchemaAndValue:
        if data is None:
            return SchemaAndValue(self.schema, None)
        if len(data) != self.layout.size:
            raise DataError(
                f"Failed to deserialize {self.name}: {len(data)} bytes, not {self.layout.size}"
            )
        return SchemaAndValue(self.schema, self.layout.unpack(data)[0])


class BooleanConverter:
    def to_bytes(self, schema: Schema | None, value: Any) -> bytes | None:
        if schema is not None and schema.type is not Type.BOOLEAN:
            raise DataError(f"Invalid schema type for BooleanConverter: {schema.type.name}")
        if value is None:
            return None
        if not isinstance(value, bool):
            raise DataError(
                f"BooleanConverter is not compatible with objects of type {type(value).__name__}"
            )
        return b"\x01" if value else b"\x00"

    def from_bytes(self, data: bytes | None) -> SchemaAndValue:
        if data is not None and data not in (b"\x00", b"\x01"):
            raise DataError(f"Failed to deserialize boolean: {data[:8]!r} is not one byte, 0 or 1")
        return SchemaAndValue(builders.OPTIONAL_BOOLEAN, None if data is None else data == b"\x01")


class ByteArrayConverter:
    def to_bytes(self, schema: Schema | None, value: Any) -> bytes | None:
        if schema is not None and schema.type is not Type.BYTES:
            raise DataError(f"Invalid schema type for ByteArrayConverter: {schema.type.name}")
        if value is None:
            return None
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise DataError(
                f"ByteArrayConverter is not compatible with objects of type {type(value).__name__}"
            )
        return bytes(value)

    def from_bytes(self, data: bytes | None) -> SchemaAndValue:
        return SchemaAndValue(builders.OPTIONAL_BYTES, data)


class StringConverter:
    """Any value as the text that Java prints for it; bytes as a text."""

    def __init__(self, encoding: str = "UTF-8") -> None:
        try:
            self._encoding = codecs.lookup(encoding).name
        except LookupError:
            raise OptionError(f"converter.encoding {encoding} is not known") from None

    def to_bytes(self, schema: Schema | None, value: Any) -> bytes | None:
        if value is None:
            return None
        small = schema is not None and schema.type is Type.FLOAT32
        text = json_text.float_text(value) if small else java_text(value)
        return text.encode(self._encoding, "replace")

    def from_bytes(self, data: bytes | None) -> SchemaAndValue:
        text = None if data is None else data.decode(self._encoding, "replace")
        return SchemaAndValue(builders.OPTIONAL_STRING, text)


def java_text(value: Any) -> str:
    """Java's toString of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            return json_text.double_text(value)
        case Decimal():
            return json_text.decimal_text(value)
        case datetime.date() | datetime.time():
            return _java_date(value)
        case list() | tuple():
            return "[" + ", ".join(map(java_text, value)) + "]"
        case dict():
            entries = (f"{java_text(key)}={java_text(each)}" for key, each in value.items())
            return "{" + ", ".join(entries) + "}"
        case Struct():
            fields = (
                f"{field.name}={java_text(each)}"
                for field, each in value.items()
                if each is not None
            )
            return "Struct{" + ",".join(fields) + "}"
        case _:
            return str(value)


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = (
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
)  # fmt: skip


def _java_date(value: datetime.date | datetime.time) -> str:
    """As java.util.Date prints itself, whatever the locale, in UTC."""
    day = datetime.date(1970, 1, 1) if isinstance(value, datetime.time) else value
    clock = "00:00:00" if type(value) is datetime.date else f"{value:%H:%M:%S}"
    names = f"{_DAYS[day.weekday()]} {_MONTHS[day.month - 1]}"
    return f"{names} {day.day:02d} {clock} UTC {day.year:04d}"


_CONVERTERS: dict[str, BytesConverter] = {
    "ShortConverter": NumberConverter("short", builders.OPTIONAL_INT16, struct.Struct(">h")),
    "IntegerConverter": NumberConverter("integer", builders.OPTIONAL_INT32, struct.Struct(">i")),
    "LongConverter": NumberConverter("long", builders.OPTIONAL_INT64, struct.Struct(">q")),
    "FloatConverter": NumberConverter("float", builders.OPTIONAL_FLOAT32, struct.Struct(">f")),
    "DoubleConverter": NumberConverter("double", builders.OPTIONAL_FLOAT64, struct.Struct(">d")),
    "BooleanConverter": BooleanConverter(),
    "ByteArrayConverter": ByteArrayConverter(),
}


def converter(name: str, *, encoding: str = "UTF-8") -> BytesConverter:
    """The converter of Connect's class of that name, without its package."""
    if name == "StringConverter":
        return StringConverter(encoding)
    found = _CONVERTERS.get(name)
    if found is None:
        raise OptionError(f"There is no converter {name}: use one of {', '.join(_CONVERTERS)}")
    return found
