"""InsertField, MaskField, SetSchemaMetadata: what fields and schemas hold."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, TypeVar

from moldau.connect.api import (
    ConfigDef,
    ConfigError,
    ConnectRecord,
    DataError,
    Importance,
    Kind,
    ListOf,
    NonEmpty,
    SinkRecord,
    Transformation,
)
from moldau.connect.transforms.parts import (
    KEY,
    VALUE,
    Part,
    SchemaCache,
    field_value,
    java_class,
    require_map,
    require_struct,
    struct_schema,
    with_replace_null,
)
from moldau.data import json_text, logical
from moldau.data.builders import INT32, INT64, STRING
from moldau.data.schema import Schema, Type
from moldau.data.struct import Struct
from moldau.data.values import convert_integer

R = TypeVar("R", bound=ConnectRecord)


@dataclass(frozen=True, slots=True)
class _Insertion:
    name: str
    schema: Schema

    @classmethod
    def of(cls, spec: str | None, schema: Schema) -> _Insertion | None:
        """A field's name, with ! if it is required; ? or nothing makes it optional."""
        if spec is None:
            return None
        if spec.endswith("!"):
            return cls(spec[:-1], schema)
        return cls(spec.removesuffix("?"), schema.as_optional())


def _insertions() -> ConfigDef:
    found = ConfigDef()
    for name, what in (
        ("topic.field", "the topic's name"),
        ("partition.field", "the partition"),
        ("offset.field", "the offset; only for sink connectors"),
        ("timestamp.field", "the record's timestamp"),
        ("static.field", "a constant"),
    ):
        found.define(
            name,
            Kind.STRING,
            None,
            importance=Importance.MEDIUM,
            doc=f"A field for {what}. A ! after the name makes it required, a ? optional.",
        )
    found.define(
        "static.value", Kind.STRING, None, importance=Importance.MEDIUM, doc="The constant."
    )
    return with_replace_null(found)


class InsertField(Transformation):
    PART: Part
    CONFIG = _insertions()

    def __init__(self) -> None:
        self._schemas = SchemaCache(self._with_fields)

    @classmethod
    def config(cls) -> ConfigDef:
        return cls.CONFIG

    def configure(self, configs: Mapping[str, Any]) -> None:
        settings = self.CONFIG.parse(configs)
        self._topic = _Insertion.of(settings["topic.field"], STRING)
        self._partition = _Insertion.of(settings["partition.field"], INT32)
        self._offset = _Insertion.of(settings["offset.field"], INT64)
        self._timestamp = _Insertion.of(settings["timestamp.field"], logical.TIMESTAMP)
        self._static = _Insertion.of(settings["static.field"], STRING)
        self._static_value = settings["static.value"]
        self._replace_null = settings["replace.null.with.default"]
        if not self._all():
            raise ConfigError("No field insertion configured")
        if self._static is not None and self._static_value is None:
            raise ConfigError.invalid(
                "static.value", None, f"No value specified for static field: {self._static.name}"
            )

    def _all(self) -> list[_Insertion]:
        every = (self._topic, self._partition, self._offset, self._timestamp, self._static)
        return [each for each in every if each is not None]

    def _inserted(self, record: ConnectRecord) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self._topic is not None:
            found[self._topic.name] = record.topic
        if self._partition is not None and record.partition is not None:
            found[self._partition.name] = record.partition
        if self._offset is not None:
            if not isinstance(record, SinkRecord):
                raise DataError(
                    "Only SinkRecord supported for [field insertion], found: "
                    f"{type(record).__name__}"
                )
            found[self._offset.name] = record.offset
        if self._timestamp is not None and record.timestamp is not None:
            found[self._timestamp.name] = record.timestamp
        if self._static is not None:
            found[self._static.name] = self._static_value
        return found

    def apply(self, record: R) -> R | None:
        schema, value = self.PART.schema(record), self.PART.value(record)
        if value is None:
            return record
        if schema is None:
            found = require_map(value, "field insertion")
            return self.PART.replaced(record, None, {**found, **self._inserted(record)})
        struct = require_struct(value, "field insertion")
        updated = self._schemas.get(schema)
        inserted = self._inserted(record)
        values = [field_value(struct, each.name, self._replace_null) for each in schema.fields]
        for field in updated.fields[len(values) :]:
            item = inserted.get(field.name)
            if item is not None and field.schema.name == logical.TIMESTAMP_NAME:
                item = logical.timestamp_from_ms(item)
            values.append(item)
        return self.PART.replaced(record, updated, Struct.unchecked(updated, values))

    def _with_fields(self, schema: Schema) -> Schema:
        fields = [(each.name, each.schema) for each in schema.fields]
        fields += [(each.name, each.schema) for each in self._all()]
        return struct_schema(schema, fields)


class InsertFieldKey(InsertField):
    PART = KEY


class InsertFieldValue(InsertField):
    PART = VALUE


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class MaskField(Transformation):
    """Fields blanked out, or replaced by a constant."""

    PART: Part
    CONFIG = with_replace_null(
        ConfigDef()
        .define(
            "fields",
            Kind.LIST,
            validator=ListOf(empty_allowed=False),
            importance=Importance.HIGH,
            doc="The fields to mask.",
        )
        .define(
            "replacement",
            Kind.STRING,
            None,
            validator=NonEmpty(),
            importance=Importance.LOW,
            doc="What numbers and texts are replaced by, instead of 0 and the empty text.",
        )
    )

    @classmethod
    def config(cls) -> ConfigDef:
        return cls.CONFIG

    def configure(self, configs: Mapping[str, Any]) -> None:
        settings = self.CONFIG.parse(configs)
        self._fields = frozenset(settings["fields"])
        self._replacement: str | None = settings["replacement"]
        self._replace_null = settings["replace.null.with.default"]

    def apply(self, record: R) -> R | None:
        schema, value = self.PART.schema(record), self.PART.value(record)
        if schema is None:
            found = dict(require_map(value, "mask fields"))
            for name in self._fields:
                found[name] = self._masked(None, found.get(name))
            return self.PART.replaced(record, None, found)
        struct = require_struct(value, "mask fields")
        values = []
        for field in schema.fields:
            original = field_value(struct, field.name, self._replace_null)
            masked = field.name in self._fields
            values.append(self._masked(field.schema, original) if masked else original)
        return self.PART.replaced(record, schema, Struct.unchecked(schema, values))

    def _masked(self, schema: Schema | None, value: Any) -> Any:
        if value is None:
            return None
        if self._replacement is not None:
            return self._replaced(schema, value, self._replacement)
        match value:
            case bool():
                return False
            case int():
                return 0
            case float():
                return 0.0
            case str():
                return ""
            case Decimal():
                return Decimal(0)
            case datetime.datetime():
                return _EPOCH
            case datetime.date():
                return _EPOCH.date()
            case datetime.time():
                return datetime.time(0)
            case list() | tuple():
                return []
            case dict():
                return {}
        raise DataError(f"Cannot mask value of type: class {java_class(value)}")

    @staticmethod
    def _replaced(schema: Schema | None, value: Any, replacement: str) -> Any:
        try:
            match value:
                case bool():
                    pass
                case str():
                    return replacement
                case int():
                    return convert_integer(schema.type if schema else Type.INT64, replacement)
                case float():
                    number = float(replacement)
                    is_small = schema is not None and schema.type is Type.FLOAT32
                    return json_text.to_float32(number) if is_small else number
                case Decimal():
                    return Decimal(replacement)
        except (ValueError, InvalidOperation):
            raise DataError(
                f"Unable to convert {replacement} (class {java_class(replacement)}) to number"
            ) from None
        raise DataError(
            f"Cannot mask value of type class {java_class(value)} with custom replacement."
        )


class MaskFieldKey(MaskField):
    PART = KEY


class MaskFieldValue(MaskField):
    PART = VALUE


class SetSchemaMetadata(Transformation):
    """Another name or version for the schema of the key or value."""

    PART: Part
    CONFIG = with_replace_null(
        ConfigDef()
        .define(
            "schema.name", Kind.STRING, None, importance=Importance.HIGH, doc="The schema's name."
        )
        .define(
            "schema.version",
            Kind.INT,
            None,
            importance=Importance.HIGH,
            doc="The schema's version.",
        )
    )

    def __init__(self) -> None:
        self._schemas = SchemaCache(self._updated)

    @classmethod
    def config(cls) -> ConfigDef:
        return cls.CONFIG

    def configure(self, configs: Mapping[str, Any]) -> None:
        settings = self.CONFIG.parse(configs)
        self._name = settings["schema.name"]
        self._version = settings["schema.version"]
        self._replace_null = settings["replace.null.with.default"]
        if self._name is None and self._version is None:
            raise ConfigError(
                "Neither schema name nor version configured: set schema.name or schema.version"
            )

    def apply(self, record: R) -> R | None:
        schema, value = self.PART.schema(record), self.PART.value(record)
        if schema is None and value is None:
            return record
        if schema is None:
            raise DataError(
                "Schema required for [updating schema metadata]: "
                f"the {'key' if self.PART.is_key else 'value'} has none"
            )
        if schema.type is not Type.STRUCT:
            raise DataError(f"Cannot list fields on non-struct type: {schema}")
        updated = self._schemas.get(schema)
        if isinstance(value, Struct):
            values = [field_value(value, each.name, self._replace_null) for each in schema.fields]
            value = Struct.unchecked(updated, values)
        return self.PART.replaced(record, updated, value)

    def _updated(self, schema: Schema) -> Schema:
        return schema.replace(
            name=schema.name if self._name is None else self._name,
            version=schema.version if self._version is None else self._version,
        )


class SetSchemaMetadataKey(SetSchemaMetadata):
    PART = KEY


class SetSchemaMetadataValue(SetSchemaMetadata):
    PART = VALUE
