"""TimestampConverter: times between texts, numbers and Connect's Date, Time and Timestamp."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar

from moldau.connect.api import (
    ConfigDef,
    ConfigError,
    ConnectError,
    ConnectRecord,
    DataError,
    Importance,
    Kind,
    OneOf,
    Transformation,
)
from moldau.connect.transforms.java_dates import DateFormat
from moldau.connect.transforms.parts import (
    KEY,
    VALUE,
    Part,
    SchemaCache,
    field_value,
    require_map,
    require_struct,
    struct_schema,
    with_replace_null,
)
from moldau.data import logical
from moldau.data.builders import INT64, STRING
from moldau.data.schema import Schema, Type
from moldau.data.struct import Struct

R = TypeVar("R", bound=ConnectRecord)

_PURPOSE = "converting timestamp formats"
_TARGETS = ("string", "unix", "Date", "Time", "Timestamp")
#: How many of a unit make a millisecond; negative: how many milliseconds make one.
_PRECISIONS = {"nanoseconds": 1_000_000, "microseconds": 1000, "milliseconds": 1, "seconds": -1000}
_SCHEMAS = {
    "string": STRING,
    "unix": INT64,
    "Date": logical.DATE,
    "Time": logical.TIME,
    "Timestamp": logical.TIMESTAMP,
}
_KINDS = {
    logical.DATE_NAME: "Date",
    logical.TIME_NAME: "Time",
    logical.TIMESTAMP_NAME: "Timestamp",
}


class TimestampConverter(Transformation):
    PART: Part
    CONFIG = with_replace_null(
        ConfigDef()
        .define(
            "field",
            Kind.STRING,
            "",
            importance=Importance.HIGH,
            doc="The field with the time; empty if the whole key or value is one.",
        )
        .define(
            "target.type",
            Kind.STRING,
            validator=OneOf(_TARGETS),
            importance=Importance.HIGH,
            doc="What the time becomes: string, unix, Date, Time or Timestamp.",
        )
        .define(
            "format",
            Kind.STRING,
            "",
            importance=Importance.MEDIUM,
            doc="A format of Java's SimpleDateFormat, to read and write texts.",
        )
        .define(
            "unix.precision",
            Kind.STRING,
            "milliseconds",
            validator=OneOf(tuple(_PRECISIONS)),
            importance=Importance.LOW,
            doc="The unit of unix times.",
        )
    )

    def __init__(self) -> None:
        self._schemas = SchemaCache(self._updated)

    @classmethod
    def config(cls) -> ConfigDef:
        return cls.CONFIG

    def configure(self, configs: Mapping[str, Any]) -> None:
        settings = self.CONFIG.parse(configs)
        self._field: str = settings["field"]
        self._target: str = settings["target.type"]
        self._unit = _PRECISIONS[settings["unix.precision"]]
        self._replace_null = settings["replace.null.with.default"]
        self._format = self._date_format(settings["format"])

    def _date_format(self, pattern: str) -> DateFormat | None:
        if not pattern.strip():
            if self._target == "string":
                raise ConfigError(
                    "TimestampConverter requires format option to be specified when using string "
                    "timestamps",
                    key="format",
                )
            return None
        try:
            return DateFormat(pattern)
        except ValueError as error:
            raise ConfigError(
                "TimestampConverter requires a SimpleDateFormat-compatible pattern for string "
                f"timestamps: {pattern} ({error})",
                key="format",
            ) from None

    def apply(self, record: R) -> R | None:
        schema, value = self.PART.schema(record), self.PART.value(record)
        if schema is None:
            return self.PART.replaced(record, None, self._schemaless(value))
        updated = self._schemas.get(schema)
        if not self._field:
            return self.PART.replaced(record, updated, self._converted(schema, value))
        struct = require_struct(value, _PURPOSE) if value is not None else None
        if struct is None:
            return self.PART.replaced(record, updated, None)
        values = []
        for field in schema.fields:
            if field.name == self._field:
                original = field_value(struct, field.name, self._replace_null)
                values.append(self._converted(field.schema, original))
            else:
                values.append(struct.get(field.name))
        return self.PART.replaced(record, updated, Struct.unchecked(updated, values))

    def _schemaless(self, value: Any) -> Any:
        if value is None:
            return None
        if not self._field:
            return self._converted(None, value)
        found = dict(require_map(value, _PURPOSE))
        found[self._field] = self._converted(None, found.get(self._field))
        return found

    def _updated(self, schema: Schema) -> Schema:
        if not self._field:
            return _SCHEMAS[self._target].replace(optional=schema.optional)
        fields = []
        for field in schema.fields:
            own = field.schema
            if field.name == self._field:
                own = _SCHEMAS[self._target].replace(optional=own.optional)
            fields.append((field.name, own))
        return struct_schema(schema, fields).replace(optional=schema.optional)

    def _converted(self, schema: Schema | None, value: Any) -> Any:
        if schema is not None:
            # Also for null: a schema that is no time is an error of the configuration.
            kind = _kind_of_schema(schema)
        if value is None:
            return None
        if schema is None:
            kind = _kind_of_value(value)
        try:
            return self._made(schema, self._to_ms(kind, value))
        except DataError:
            raise
        except (OverflowError, ValueError):
            raise DataError(f"The time {value} is not in the years 1 to 9999") from None

    def _made(self, schema: Schema | None, since_epoch: int) -> Any:
        match self._target:
            case "string":
                return self._format.format(since_epoch) if self._format else ""
            case "unix":
                return self._to_unix(since_epoch)
            case "Timestamp":
                return logical.timestamp_from_ms(since_epoch)
            case "Date":
                days = since_epoch // logical.DAY_MS
                if schema is None:
                    return logical.timestamp_from_ms(days * logical.DAY_MS)
                return logical.date_from_days(days)
        in_day = since_epoch % logical.DAY_MS
        if schema is None:
            return logical.timestamp_from_ms(in_day)
        return logical.time_from_ms(in_day)

    def _to_ms(self, kind: str, value: Any) -> int:
        match kind, value:
            case "string", str():
                if self._format is None:
                    raise DataError(
                        f"Could not parse timestamp: value ({value}) has no format; set format"
                    )
                try:
                    return self._format.parse(value)
                except ValueError:
                    raise DataError(
                        f"Could not parse timestamp: value ({value}) does not match pattern "
                        f"({self._format.pattern})"
                    ) from None
            case "unix", int():
                return value * -self._unit if self._unit < 0 else _towards_zero(value, self._unit)
            case _, datetime.datetime():
                return logical.timestamp_to_ms(value)
            case _, datetime.date():
                return logical.date_to_days(value) * logical.DAY_MS
            case _, datetime.time():
                return logical.time_to_ms(value)
        raise DataError(f"Expected a timestamp of type {kind}, but found a {type(value).__name__}")

    def _to_unix(self, since_epoch: int) -> int:
        return (
            _towards_zero(since_epoch, -self._unit) if self._unit < 0 else since_epoch * self._unit
        )


class TimestampConverterKey(TimestampConverter):
    PART = KEY


class TimestampConverterValue(TimestampConverter):
    PART = VALUE


def _towards_zero(value: int, divisor: int) -> int:
    """Java's TimeUnit cuts off; it does not round down."""
    return value // divisor if value >= 0 else -(-value // divisor)


def _kind_of_schema(schema: Schema) -> str:
    named = _KINDS.get(schema.name or "")
    if named is not None:
        return named
    if schema.type is Type.STRING:
        return "string"
    if schema.type is Type.INT64:
        return "unix"
    raise ConnectError(f"Schema {schema} does not correspond to a known timestamp type format")


def _kind_of_value(value: Any) -> str:
    match value:
        case str():
            return "string"
        case int() if not isinstance(value, bool):
            return "unix"
        case datetime.date() | datetime.time():
            return "Timestamp"
    raise DataError(
        f"TimestampConverter does not support {type(value).__name__} objects as timestamps"
    )
