"""DropHeaders, InsertHeader, HeaderFrom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from moldau.connect.api import (
    ConfigDef,
    ConfigError,
    ConnectRecord,
    DataError,
    Header,
    Importance,
    Kind,
    ListOf,
    OneOf,
    Transformation,
)
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
from moldau.data.schema import Schema
from moldau.data.struct import Struct
from moldau.data.value_text import parse_string

R = TypeVar("R", bound=ConnectRecord)


class DropHeaders(Transformation):
    CONFIG = ConfigDef().define(
        "headers",
        Kind.LIST,
        validator=ListOf(empty_allowed=False),
        importance=Importance.HIGH,
        doc="The names of the headers to remove.",
    )

    @classmethod
    def config(cls) -> ConfigDef:
        return cls.CONFIG

    def configure(self, configs: Mapping[str, Any]) -> None:
        self._names = frozenset(self.CONFIG.parse(configs)["headers"])

    def apply(self, record: R) -> R | None:
        kept = tuple(each for each in record.headers if each.key not in self._names)
        return record if len(kept) == len(record.headers) else record.new_record(headers=kept)


class InsertHeader(Transformation):
    CONFIG = (
        ConfigDef()
        .define(
            "header",
            Kind.STRING,
            importance=Importance.HIGH,
            doc="The name of the header.",
        )
        .define(
            "value.literal",
            Kind.STRING,
            importance=Importance.HIGH,
            doc="The value, whose type is inferred: 5 is a number, [1,2] a list, true a boolean.",
        )
    )

    @classmethod
    def config(cls) -> ConfigDef:
        return cls.CONFIG

    def configure(self, configs: Mapping[str, Any]) -> None:
        settings = self.CONFIG.parse(configs)
        literal = parse_string(settings["value.literal"])
        self._header = Header(settings["header"], literal.value, literal.schema)

    def apply(self, record: R) -> R | None:
        return record.new_record(headers=(*record.headers, self._header))


class HeaderFrom(Transformation):
    """Fields of the key or value as headers."""

    PART: Part
    CONFIG = with_replace_null(
        ConfigDef()
        .define(
            "fields",
            Kind.LIST,
            validator=ListOf(empty_allowed=False),
            importance=Importance.HIGH,
            doc="The fields whose values become headers.",
        )
        .define(
            "headers",
            Kind.LIST,
            importance=Importance.HIGH,
            doc="The names of the headers, in the order of the fields.",
        )
        .define(
            "operation",
            Kind.STRING,
            validator=OneOf(("move", "copy")),
            importance=Importance.HIGH,
            doc="move removes the fields, copy leaves them.",
        )
    )

    def __init__(self) -> None:
        self._schemas = SchemaCache(self._without_fields)

    @classmethod
    def config(cls) -> ConfigDef:
        return cls.CONFIG

    def configure(self, configs: Mapping[str, Any]) -> None:
        settings = self.CONFIG.parse(configs)
        # Not from the parsed list, which has each name once: two fields may have one header.
        names = [each.strip() for each in str(configs["headers"]).split(",") if each.strip()]
        fields = [each.strip() for each in str(configs["fields"]).split(",") if each.strip()]
        if len(names) != len(fields):
            raise ConfigError(
                "'fields' config must have the same number of elements as 'headers' config."
            )
        self._pairs = list(zip(fields, names, strict=True))
        self._fields = frozenset(fields)
        self._moves = settings["operation"] == "move"
        self._purpose = f"header {settings['operation']}"
        self._replace_null = settings["replace.null.with.default"]

    def apply(self, record: R) -> R | None:
        schema, value = self.PART.schema(record), self.PART.value(record)
        if schema is None:
            return self._schemaless(record, value)
        struct = require_struct(value, self._purpose)
        headers = list(record.headers)
        for name, header in self._pairs:
            field = schema.field(name)
            if field is None:
                raise DataError(f"{name} is not a valid field name")
            found = field_value(struct, name, self._replace_null)
            headers.append(Header(header, found, field.schema))
        changed = record.new_record(headers=tuple(headers))
        if not self._moves:
            return changed
        updated = self._schemas.get(schema)
        values = [field_value(struct, each.name, self._replace_null) for each in updated.fields]
        return self.PART.replaced(changed, updated, Struct.unchecked(updated, values))

    def _schemaless(self, record: R, value: Any) -> R:
        found = require_map(value, self._purpose)
        headers = [Header(header, found.get(name)) for name, header in self._pairs]
        changed = record.new_record(headers=(*record.headers, *headers))
        if not self._moves:
            return changed
        rest = {name: each for name, each in found.items() if name not in self._fields}
        return self.PART.replaced(changed, None, rest)

    def _without_fields(self, schema: Schema) -> Schema:
        kept = [(each.name, each.schema) for each in schema.fields if each.name not in self._fields]
        # As in Kafka it is required, even if the struct before was not.
        return struct_schema(schema, kept)


class HeaderFromKey(HeaderFrom):
    PART = KEY


class HeaderFromValue(HeaderFrom):
    PART = VALUE
