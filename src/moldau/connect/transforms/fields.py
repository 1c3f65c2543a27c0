"""ExtractField, HoistField, Flatten, ReplaceField, ValueToKey: the shape of keys and values."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, TypeVar

from moldau.connect.api import (
    ConfigDef,
    ConfigError,
    ConnectRecord,
    DataError,
    Importance,
    Kind,
    ListOf,
    OneOf,
    Transformation,
)
from moldau.connect.transforms.field_paths import (
    field_of,
    path_of,
    value_in_map,
    value_in_struct,
)
from moldau.connect.transforms.parts import (
    KEY,
    VALUE,
    Part,
    SchemaCache,
    field_value,
    require_known,
    require_map,
    require_struct,
    struct_schema,
    with_replace_null,
)
from moldau.data.builders import struct
from moldau.data.schema import Schema, Type
from moldau.data.struct import Struct

R = TypeVar("R", bound=ConnectRecord)
logger = logging.getLogger(__name__)


class ExtractField(Transformation):
    """The key or value replaced by one of its fields."""

    PART: Part
    CONFIG = with_replace_null(
        ConfigDef()
        .define("field", Kind.STRING, importance=Importance.MEDIUM, doc="The field to take.")
        .define(
            "field.syntax.version",
            Kind.STRING,
            "V1",
            validator=OneOf(("V1", "V2"), ignore_case=True),
            importance=Importance.HIGH,
            doc="How the field's name is read: V1 literally, V2 with dots for nested fields and "
            "backticks around names with dots.",
        )
    )

    @classmethod
    def config(cls) -> ConfigDef:
        return cls.CONFIG

    def configure(self, configs: Mapping[str, Any]) -> None:
        settings = self.CONFIG.parse(configs)
        self._name = settings["field"]
        self._path = path_of(self._name, settings["field.syntax.version"])
        self._replace_null = settings["replace.null.with.default"]

    def apply(self, record: R) -> R | None:
        schema, value = self.PART.schema(record), self.PART.value(record)
        if schema is None:
            found = value if value is None else require_map(value, "field extraction")
            return self.PART.replaced(record, None, value_in_map(self._path, found))
        if value is not None:
            require_struct(value, "field extraction")
        if schema.type is not Type.STRUCT:
            raise DataError("Cannot look up fields on non-struct type")
        field = field_of(self._path, schema)
        if field is None:
            raise DataError(f"Unknown field: {self._name}")
        extracted = value_in_struct(self._path, value, self._replace_null)
        return self.PART.replaced(record, field.schema, extracted)


class ExtractFieldKey(ExtractField):
    PART = KEY


class ExtractFieldValue(ExtractField):
    PART = VALUE


class HoistField(Transformation):
    """The key or value as the only field of a struct or map."""

    PART: Part
    CONFIG = ConfigDef().define(
        "field", Kind.STRING, importance=Importance.MEDIUM, doc="The name of the field."
    )

    def __init__(self) -> None:
        self._schemas = SchemaCache(self._hoisted)

    @classmethod
    def config(cls) -> ConfigDef:
        return cls.CONFIG

    def configure(self, configs: Mapping[str, Any]) -> None:
        self._field: str = self.CONFIG.parse(configs)["field"]

    def apply(self, record: R) -> R | None:
        schema, value = self.PART.schema(record), self.PART.value(record)
        if schema is None:
            return self.PART.replaced(record, None, {self._field: value})
        updated = self._schemas.get(schema)
        return self.PART.replaced(record, updated, Struct.unchecked(updated, [value]))

    def _hoisted(self, schema: Schema) -> Schema:
        return struct({self._field: schema})


class HoistFieldKey(HoistField):
    PART = KEY


class HoistFieldValue(HoistField):
    PART = VALUE


class Flatten(Transformation):
    """Nested structs or maps as one, with names joined by a delimiter."""

    PART: Part
    CONFIG = ConfigDef().define(
        "delimiter",
        Kind.STRING,
        ".",
        importance=Importance.MEDIUM,
        doc="What stands between the names of nested fields.",
    )

    def __init__(self) -> None:
        self._schemas = SchemaCache(self._flat_schema)

    @classmethod
    def config(cls) -> ConfigDef:
        return cls.CONFIG

    def configure(self, configs: Mapping[str, Any]) -> None:
        self._delimiter: str = self.CONFIG.parse(configs)["delimiter"]

    def apply(self, record: R) -> R | None:
        schema, value = self.PART.schema(record), self.PART.value(record)
        if value is None:
            return record
        if schema is None:
            flat: dict[str, Any] = {}
            self._flatten_map(require_map(value, "flattening"), "", flat)
            return self.PART.replaced(record, None, flat)
        updated = self._schemas.get(schema)
        values: list[Any] = []
        self._flatten_struct(require_struct(value, "flattening"), schema, values)
        return self.PART.replaced(record, updated, Struct.unchecked(updated, values))

    def _flatten_map(self, value: Mapping[Any, Any], prefix: str, into: dict[str, Any]) -> None:
        for key, each in value.items():
            if not isinstance(key, str):
                raise DataError(f"Flatten needs texts as keys of maps, found {key!r}")
            name = f"{prefix}{self._delimiter}{key}" if prefix else key
            if isinstance(each, dict):
                self._flatten_map(each, name, into)
            elif isinstance(each, Struct):
                raise DataError(
                    f"Flatten transformation does not support STRUCT for record without schemas "
                    f"(for field {name})."
                )
            else:
                require_known(each, "Flatten")
                into[name] = each

    def _flatten_struct(self, value: Struct | None, schema: Schema, into: list[Any]) -> None:
        for field in schema.fields:
            inner = None if value is None else value.get(field.name)
            if field.schema.type is Type.STRUCT:
                self._flatten_struct(inner, field.schema, into)
            else:
                into.append(inner)

    def _flat_schema(self, schema: Schema) -> Schema:
        fields: list[tuple[str, Schema]] = []
        default = schema.default if isinstance(schema.default, Struct) else None
        self._flatten_schema(schema, "", schema.optional, default, fields)
        # As in Kafka the struct itself is required: fields are optional if it was.
        made = struct_schema(schema, fields)
        if default is None:
            return made
        values: list[Any] = []
        self._flatten_struct(default, schema, values)
        return made.replace(default=Struct.unchecked(made, values))

    def _flatten_schema(
        self,
        schema: Schema,
        prefix: str,
        optional: bool,
        default: Struct | None,
        into: list[tuple[str, Schema]],
    ) -> None:
        for field in schema.fields:
            name = f"{prefix}{self._delimiter}{field.name}" if prefix else field.name
            is_optional = optional or field.schema.optional
            inner = field.schema.default
            if default is not None:
                inner = default.get(field.name)
            if field.schema.type is Type.STRUCT:
                inner = inner if isinstance(inner, Struct) else None
                self._flatten_schema(field.schema, name, is_optional, inner, into)
            elif field.schema.type is Type.MAP:
                raise DataError(
                    "Flatten transformation does not support MAP for record with schemas "
                    f"(for field {name})."
                )
            else:
                into.append((name, field.schema.replace(optional=is_optional, default=inner)))


class FlattenKey(Flatten):
    PART = KEY


class FlattenValue(Flatten):
    PART = VALUE


class ReplaceField(Transformation):
    """Fields left out, kept or renamed."""

    PART: Part
    CONFIG = with_replace_null(
        ConfigDef()
        .define(
            "exclude",
            Kind.LIST,
            (),
            importance=Importance.MEDIUM,
            doc="Fields to leave out; this comes before the fields to keep.",
        )
        .define(
            "include",
            Kind.LIST,
            (),
            importance=Importance.MEDIUM,
            doc="Fields to keep; all others are left out.",
        )
        .define(
            "renames",
            Kind.LIST,
            (),
            importance=Importance.MEDIUM,
            doc="Fields to rename, as old1:new1,old2:new2.",
        )
    )
    #: What the settings were called before Kafka 2.6.
    OLD_NAMES = {"blacklist": "exclude", "whitelist": "include"}  # noqa: RUF012

    def __init__(self) -> None:
        self._schemas = SchemaCache(self._kept)

    @classmethod
    def config(cls) -> ConfigDef:
        return cls.CONFIG

    def configure(self, configs: Mapping[str, Any]) -> None:
        settings = self.CONFIG.parse(self._with_new_names(configs))
        self._exclude = frozenset(settings["exclude"])
        self._include = frozenset(settings["include"])
        self._renames = _renames(settings["renames"])
        self._replace_null = settings["replace.null.with.default"]

    def _with_new_names(self, configs: Mapping[str, Any]) -> dict[str, Any]:
        found = dict(configs)
        for old, new in self.OLD_NAMES.items():
            if old not in found:
                continue
            if new in found:
                logger.warning("ReplaceField: %s is ignored, because %s is set", old, new)
                del found[old]
                continue
            logger.warning(
                "ReplaceField: %s is an old name that Kafka 4.0 no longer has; write %s", old, new
            )
            found[new] = found.pop(old)
        return found

    def _keeps(self, name: str) -> bool:
        return name not in self._exclude and (not self._include or name in self._include)

    def apply(self, record: R) -> R | None:
        schema, value = self.PART.schema(record), self.PART.value(record)
        if value is None:
            return record
        if schema is None:
            kept = {
                self._renames.get(name, name): each
                for name, each in require_map(value, "field replacement").items()
                if self._keeps(name)
            }
            return self.PART.replaced(record, None, kept)
        found = require_struct(value, "field replacement")
        updated, names = self._schemas.get(schema)
        values = [field_value(found, name, self._replace_null) for name in names]
        return self.PART.replaced(record, updated, Struct.unchecked(updated, values))

    def _kept(self, schema: Schema) -> tuple[Schema, list[str]]:
        kept = [field for field in schema.fields if self._keeps(field.name)]
        fields = [(self._renames.get(each.name, each.name), each.schema) for each in kept]
        # As in Kafka it is required, even if the struct before was not.
        return struct_schema(schema, fields), [each.name for each in kept]


class ReplaceFieldKey(ReplaceField):
    PART = KEY


class ReplaceFieldValue(ReplaceField):
    PART = VALUE


def _renames(pairs: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        match pair.split(":"):
            case [old, new] if old.strip() and new.strip():
                found[old.strip()] = new.strip()
            case _:
                raise ConfigError.invalid(
                    "renames", ",".join(pairs), f"Invalid rename mapping: {pair}"
                )
    return found


class ValueToKey(Transformation):
    """A key made of fields of the value."""

    CONFIG = with_replace_null(
        ConfigDef().define(
            "fields",
            Kind.LIST,
            validator=ListOf(empty_allowed=False),
            importance=Importance.HIGH,
            doc="The fields of the value that make up the key.",
        )
    )

    def __init__(self) -> None:
        self._schemas = SchemaCache(self._key_schema)

    @classmethod
    def config(cls) -> ConfigDef:
        return cls.CONFIG

    def configure(self, configs: Mapping[str, Any]) -> None:
        settings = self.CONFIG.parse(configs)
        # A name that is there twice counts once.
        self._fields = tuple(dict.fromkeys(settings["fields"]))
        self._replace_null = settings["replace.null.with.default"]

    def apply(self, record: R) -> R | None:
        purpose = "copying fields from value to key"
        if record.value_schema is None:
            found = require_map(record.value, purpose)
            key: Any = {name: found.get(name) for name in self._fields}
            return record.new_record(key_schema=None, key=key)
        value = require_struct(record.value, purpose)
        schema = self._schemas.get(value.schema)
        values = [field_value(value, name, self._replace_null) for name in self._fields]
        return record.new_record(key_schema=schema, key=Struct.unchecked(schema, values))

    def _key_schema(self, schema: Schema) -> Schema:
        fields = []
        for name in self._fields:
            field = schema.field(name)
            if field is None:
                raise DataError(f"Field does not exist: {name}")
            fields.append((name, field.schema))
        return struct(fields)
