"""What the transforms share: the part of a record they change, and checks of its value."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Generic, TypeVar

from moldau.connect.api import ConfigDef, ConnectRecord, DataError, Importance, Kind
from moldau.data.schema import Field, Schema, Type
from moldau.data.struct import Struct

R = TypeVar("R", bound=ConnectRecord)
V = TypeVar("V")

_SCHEMAS_MAX = 16


@dataclass(frozen=True, slots=True)
class Part:
    """Key or value of a record."""

    is_key: bool

    def schema(self, record: ConnectRecord) -> Schema | None:
        return record.key_schema if self.is_key else record.value_schema

    def value(self, record: ConnectRecord) -> Any:
        return record.key if self.is_key else record.value

    def replaced(self, record: R, schema: Schema | None, value: Any) -> R:
        if self.is_key:
            return record.new_record(key_schema=schema, key=value)
        return record.new_record(value_schema=schema, value=value)


KEY = Part(True)
VALUE = Part(False)


class SchemaCache(Generic[V]):
    """What was made for the schemas seen last. Most topics have one schema, so few are kept."""

    __slots__ = ("_found", "_last", "_last_made", "_make")

    def __init__(self, make: Callable[[Schema], V]) -> None:
        self._make = make
        self._found: dict[Schema, V] = {}
        self._last: Schema | None = None
        self._last_made: V | None = None

    def get(self, schema: Schema) -> V:
        if schema is self._last and self._last_made is not None:
            return self._last_made
        made = self._found.get(schema)
        if made is None:
            made = self._make(schema)
            if len(self._found) >= _SCHEMAS_MAX:
                del self._found[next(iter(self._found))]
            self._found[schema] = made
        self._last, self._last_made = schema, made
        return made


def java_class(value: Any) -> str:
    """What Java would call the type, for messages that Connect's users know."""
    return _JAVA_CLASSES.get(type(value), type(value).__name__)


_JAVA_CLASSES = {
    str: "java.lang.String",
    bool: "java.lang.Boolean",
    int: "java.lang.Long",
    float: "java.lang.Double",
    list: "java.util.ArrayList",
    dict: "java.util.HashMap",
    bytes: "[B",
    Decimal: "java.math.BigDecimal",
    datetime.date: "java.util.Date",
    datetime.datetime: "java.util.Date",
    datetime.time: "java.util.Date",
    Struct: "org.apache.kafka.connect.data.Struct",
    type(None): "null",
}


def require_known(value: Any, transform: str) -> None:
    """A value without a schema must be of a type that has one without doubt: not a decimal or a
    time, which several schemas have."""
    if isinstance(value, (Decimal, datetime.date, datetime.time)):
        raise DataError(
            f"{transform} transformation was passed a value of type class {java_class(value)} "
            "which is not supported by Connect's data API"
        )


def require_map(value: Any, purpose: str) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise DataError(
            f"Only Map objects supported in absence of schema for [{purpose}], "
            f"found: {java_class(value)}"
        )
    return value


def require_struct(value: Any, purpose: str) -> Struct:
    if not isinstance(value, Struct):
        raise DataError(
            f"Only Struct objects supported for [{purpose}], found: {java_class(value)}"
        )
    return value


def field_value(struct: Struct, name: str, replace_null: bool) -> Any:
    return struct.get(name) if replace_null else struct.get_without_default(name)


def struct_schema(like: Schema, fields: list[tuple[str, Schema]]) -> Schema:
    """A struct's schema with these fields, and the name, version and so on of another."""
    return Schema(
        type=Type.STRUCT,
        name=like.name,
        version=like.version,
        doc=like.doc,
        parameters=like.parameters,
        fields=tuple(Field(name, index, each) for index, (name, each) in enumerate(fields)),
    )


def with_replace_null(config: ConfigDef) -> ConfigDef:
    return config.define(
        "replace.null.with.default",
        Kind.BOOLEAN,
        True,
        importance=Importance.MEDIUM,
        doc="Whether a null in a field that has a default is replaced by the default.",
    )


class Settings:
    """Parsed settings of a transform, by key."""

    __slots__ = ("_values",)

    def __init__(self, config: ConfigDef, given: Mapping[str, Any]) -> None:
        self._values = config.parse(given)

    def __getitem__(self, key: str) -> Any:
        return self._values[key]
