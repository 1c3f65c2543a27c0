"""Protobuf schemas and messages from Connect's."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from urllib.parse import quote_plus

from google.protobuf.descriptor import FieldDescriptor

from moldau.data import logical
from moldau.data.errors import DataError
from moldau.data.protobuf import well_known
from moldau.data.protobuf.connect import options as names
from moldau.data.protobuf.connect.options import ProtobufDataOptions, enum_name, is_union
from moldau.data.protobuf.java_order import in_order
from moldau.data.protobuf.model import (
    Aggregate,
    Enum,
    EnumValue,
    Field,
    Items,
    Label,
    Message,
    OneOf,
    Option,
    ProtoFile,
    Text,
)
from moldau.data.protobuf.schema import ProtobufSchema
from moldau.data.schema import Schema, Type
from moldau.data.struct import Struct

#: A struct is written out in every message that uses it, so few structs can make many messages.
MESSAGES_MAX = 10_000
_DEFAULT_NAME = "ConnectDefault"
_ROOT_WRAPPERS = {
    Type.INT8: "google.protobuf.Int32Value",
    Type.INT16: "google.protobuf.Int32Value",
    Type.INT32: "google.protobuf.Int32Value",
    Type.INT64: "google.protobuf.Int64Value",
    Type.FLOAT32: "google.protobuf.FloatValue",
    Type.FLOAT64: "google.protobuf.DoubleValue",
    Type.BOOLEAN: "google.protobuf.BoolValue",
    Type.STRING: "google.protobuf.StringValue",
    Type.BYTES: "google.protobuf.BytesValue",
}
_UNSIGNED_WRAPPERS = {
    "uint32": "google.protobuf.UInt32Value",
    "fixed32": "google.protobuf.UInt32Value",
    "uint64": "google.protobuf.UInt64Value",
    "fixed64": "google.protobuf.UInt64Value",
}
_SCALARS = {
    Type.INT8: "int32",
    Type.INT16: "int32",
    Type.INT32: "int32",
    Type.INT64: "int64",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "bool",
    Type.STRING: "string",
    Type.BYTES: "bytes",
}
_LOGICAL = {
    logical.DECIMAL_NAME: names.DECIMAL_TYPE,
    logical.DATE_NAME: names.DATE_TYPE,
    logical.TIME_NAME: names.TIME_TYPE,
    logical.TIMESTAMP_NAME: names.TIMESTAMP_TYPE,
    names.VARIANT: names.VARIANT_TYPE,
}
_SMALL = {Type.INT8: "int8", Type.INT16: "int16"}


class _Parts:
    """What has been declared of a message."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.fields: list[Field] = []
        self.oneofs: list[OneOf] = []
        self.messages: list[Message] = []
        self.enums: dict[str, Enum] = {}
        self.children: set[str] = {name}

    def message(self) -> Message:
        return Message(
            self.name,
            fields=tuple(self.fields),
            oneofs=tuple(self.oneofs),
            types=(*self.messages, *self.enums.values()),
        )


class SchemaWriter:
    """Makes the file of one Connect schema."""

    def __init__(self, options: ProtobufDataOptions) -> None:
        self._options = options
        self._names = 0
        self._messages = 0
        self._imports: dict[str, None] = {}

    def root(self, schema: Schema) -> ProtobufSchema:
        if schema.type in _ROOT_WRAPPERS:
            file = well_known.file(names.WRAPPERS_FILE)
            return ProtobufSchema(file, {}, name=_ROOT_WRAPPERS[schema.type])
        if schema.type is not Type.STRUCT:
            raise DataError(f"Unsupported root schema of type {schema.type.name}")
        package, _, name = self._full_name(schema).rpartition(".")
        message = self._message(name, schema)
        imports = tuple(self._imports)
        file = ProtoFile(
            syntax="proto3",
            package=package,
            imports=imports,
            all_imports=imports,
            types=(message,),
        )
        return ProtobufSchema(file, {})

    def _full_name(self, schema: Schema) -> str:
        full = self._name_or_default(schema.name)
        return ".".join(scrubbed(part, self._options) for part in full.split("."))

    def _name_or_default(self, name: str | None) -> str:
        if name:
            return name
        self._names += 1
        return f"{_DEFAULT_NAME}{self._names}"

    def _short_name(self, name: str | None) -> str:
        return scrubbed(self._name_or_default(name).rpartition(".")[2], self._options)

    def _message(self, name: str, schema: Schema) -> Message:
        self._messages += 1
        if self._messages > MESSAGES_MAX:
            raise DataError(f"The schema would have more than {MESSAGES_MAX} messages")
        parts = _Parts(name)
        index = 0
        for field in schema.fields:
            tag = field.schema.parameters.get(names.TAG)
            index += tag is None
            number = index if tag is None else int(tag)
            made = self._field(parts, field.name, field.schema, number)
            if made is not None:
                parts.fields.append(made)
        return parts.message()

    def _field(
        self, parts: _Parts, name: str, schema: Schema, number: int, *, in_oneof: bool = False
    ) -> Field | None:
        """A field, or None for a union, which is declared as a oneof."""
        label = self._label(schema) if not in_oneof else None
        inner = schema.items if schema.type is Type.ARRAY else schema
        name = scrubbed(name, self._options)
        type_name = self._type(inner, name, in_oneof=in_oneof)
        if type_name in names.FILES:
            self._imports[names.FILES[type_name]] = None
        elif inner.type is Type.STRUCT:
            if is_union(inner):
                self._oneof(parts, inner)
                return None
            if type_name not in parts.children:
                parts.children.add(type_name)
                parts.messages.append(self._message(type_name, inner))
        elif inner.type is Type.MAP:
            parts.messages.append(self._map_entry(type_name, inner))
        elif enum_name(inner) is not None:
            enum = self._short_name(inner.name)
            parts.enums.setdefault(enum, self._enum(enum, inner))
        return Field(label, type_name, name, number, options=_params(inner))

    def _label(self, schema: Schema) -> Label | None:
        if schema.type in (Type.ARRAY, Type.MAP):
            return Label.REPEATED
        if self._options.optional_for_nullables and schema.optional:
            return Label.OPTIONAL
        return None

    def _oneof(self, parts: _Parts, schema: Schema) -> None:
        if self._options.generalized_sum_type_support:
            name = schema.parameters[names.GENERALIZED_UNION]
        else:
            name = self._short_name((schema.name or "").removeprefix(f"{names.UNION}."))
        fields: list[Field] = []
        for field in schema.fields:
            tag = field.schema.parameters.get(names.TAG)
            if tag is None:
                raise DataError(
                    f"Field {field.name} of union {schema.name} has no parameter {names.TAG}"
                )
            made = self._field(parts, field.name, field.schema, int(tag), in_oneof=True)
            if made is None:
                raise DataError(f"Field {field.name} of union {schema.name} is a union")
            fields.append(made)
        parts.oneofs.append(OneOf(name, tuple(fields)))

    def _map_entry(self, name: str, schema: Schema) -> Message:
        parts = _Parts(name)
        for number, (part, inner) in enumerate((("key", schema.keys), ("value", schema.items)), 1):
            made = self._field(parts, part, inner, number)
            if made is None:
                raise DataError(f"The {part} of map {schema.name} is a union")
            parts.fields.append(made)
        return parts.message()

    def _enum(self, name: str, schema: Schema) -> Enum:
        prefix = f"{self._options.enum_parameter}."
        values = tuple(
            EnumValue(key.removeprefix(prefix), int(number))
            for key, number in schema.parameters.items()
            if key.startswith(prefix)
        )
        return Enum(name, values)

    def _type(self, schema: Schema, field_name: str, *, in_oneof: bool) -> str:
        if schema.name in _LOGICAL:
            return _LOGICAL[schema.name]
        enum = enum_name(schema)
        if enum is not None:
            return enum
        if schema.type is Type.MAP:
            return _entry_name(self._short_name(schema.name))
        if schema.type is Type.STRUCT:
            name = "" if is_union(schema) else self._short_name(schema.name)
            # A message and a field of one name cannot be in one scope.
            return f"{name}Message" if name == field_name else name
        if schema.type is Type.ARRAY:
            raise DataError("Array cannot be nested")
        scalar = _SCALARS[schema.type]
        if schema.type in (Type.INT32, Type.INT64):
            scalar = schema.parameters.get(names.TYPE, scalar)
        wrapped = self._options.wrapper_for_nullables and schema.optional
        if wrapped and (not in_oneof or schema.parameters.get(names.WRAPPER) == "true"):
            return _UNSIGNED_WRAPPERS.get(scalar, _ROOT_WRAPPERS[schema.type])
        return scalar


def _params(schema: Schema) -> tuple[Option, ...]:
    """What Protobuf's types do not say, as Confluent's option of the field."""
    params: dict[str, str] = {}
    if schema.name == logical.DECIMAL_NAME:
        for key, parameter in (
            ("precision", logical.PRECISION_PARAMETER),
            ("scale", logical.SCALE_PARAMETER),
        ):
            if parameter in schema.parameters:
                params[key] = schema.parameters[parameter]
    elif schema.type in _SMALL:
        params[names.CONNECT_TYPE] = _SMALL[schema.type]
    if not params:
        return ()
    pairs = []
    for key in in_order(params):
        pair = (("key", Text.of(key)), ("value", Text.of(params[key])))
        pairs.append(Aggregate(pair[::-1] if key in ("precision", "scale") else pair))
    meta = Aggregate((("params", Items(tuple(pairs))),))
    return (Option("confluent.field_meta", meta, custom=True),)


def _entry_name(name: str) -> str:
    if "_" in name:
        name = "".join(part[:1].upper() + part[1:].lower() for part in name.split("_"))
    return f"{name}Entry"


def scrubbed(name: str, options: ProtobufDataOptions) -> str:
    """A name that the language allows, if the options ask for it."""
    if not options.scrub_invalid_names or not name:
        return name
    plain = name.isascii() and name.replace("_", "a").isalnum()
    if plain and name[0].isalpha():
        return name
    encoded = quote_plus(name, safe="*-._")
    if encoded[0].isdigit() or encoded[0] == "_":
        encoded = f"x{encoded}"
    return "".join(char if char.isalnum() or char == "_" else "_" for char in encoded)


class ValueWriter:
    """Puts Connect values into messages of a schema."""

    def __init__(self, options: ProtobufDataOptions) -> None:
        self._options = options

    def fill(self, message: Any, schema: Schema, value: Any) -> None:
        """Sets the fields of a message to a value of the schema that it was made of."""
        if schema.type is Type.STRUCT and schema.name != names.VARIANT:
            self._struct(message, schema, value)
        elif schema.name in _WRITERS:
            _WRITERS[schema.name](message, value)
        else:
            field = message.DESCRIPTOR.fields_by_name["value"]
            message.value = _scalar(schema, field, value)

    def _struct(self, message: Any, schema: Schema, value: Any) -> None:
        if not isinstance(value, Struct) or value.schema != schema:
            raise DataError(f"Mismatching struct schema: {value!r} is no {schema}")
        for field in schema.fields:
            name, inner, each = field.name, field.schema, self._get(value, field.name)
            if each is None:
                continue
            if inner.type is Type.STRUCT and is_union(inner):
                name, inner, each = self._chosen(inner, each)
            self._set(message, scrubbed(name, self._options), inner, each)

    def _get(self, struct: Struct, name: str) -> Any:
        if self._options.ignore_default_for_nullables:
            return struct.get_without_default(name)
        return struct.get(name)

    def _chosen(self, schema: Schema, union: Struct) -> tuple[str, Schema, Any]:
        """The one field of a union that has a value."""
        for field in schema.fields:
            value = self._get(union, field.name)
            if value is not None:
                return field.name, field.schema, value
        raise DataError(f"Cannot find non-null field in union {schema.name}")

    def _set(self, message: Any, name: str, schema: Schema, value: Any) -> None:
        field = message.DESCRIPTOR.fields_by_name.get(name)
        if field is None:
            raise DataError(f"Cannot find field with name {name} in {message.DESCRIPTOR.full_name}")
        try:
            if schema.type is Type.ARRAY:
                self._array(getattr(message, name), field, schema.items, value)
            elif schema.type is Type.MAP:
                self._map(getattr(message, name), field, schema, value)
            elif field.message_type is not None:
                inner = getattr(message, name)
                inner.SetInParent()
                self.fill(inner, schema, value)
            else:
                setattr(message, name, _scalar(schema, field, value))
        except (TypeError, ValueError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"Invalid value for {field.full_name}: {error}") from None

    def _array(self, target: Any, field: Any, items: Schema, values: Any) -> None:
        for value in values:
            if value is None:
                raise DataError(f"Field {field.full_name} cannot hold null: Protobuf has none")
            if field.message_type is not None:
                self.fill(target.add(), items, value)
            else:
                target.append(_scalar(items, field, value))

    def _map(self, target: Any, field: Any, schema: Schema, values: Any) -> None:
        entry = field.message_type
        keys, items = entry.fields_by_name["key"], entry.fields_by_name["value"]
        for key, value in values.items():
            if not entry.GetOptions().map_entry:
                made = target.add()
                self._set(made, "key", schema.keys, key)
                if value is not None:
                    self._set(made, "value", schema.items, value)
            elif items.message_type is not None:
                if value is not None:
                    self.fill(target[_scalar(schema.keys, keys, key)], schema.items, value)
            else:
                empty = items.default_value if value is None else None
                made = empty if value is None else _scalar(schema.items, items, value)
                target[_scalar(schema.keys, keys, key)] = made


def _scalar(schema: Schema, field: Any, value: Any) -> Any:
    """A value for a field that is no message."""
    if field.enum_type is not None:
        return _enum_number(schema, field.enum_type, value)
    # Numbers without a sign are signed in Java.
    if field.cpp_type == FieldDescriptor.CPPTYPE_UINT64:
        return value & 0xFFFFFFFFFFFFFFFF
    if field.cpp_type == FieldDescriptor.CPPTYPE_UINT32:
        return value & 0xFFFFFFFF
    if field.type == FieldDescriptor.TYPE_BYTES:
        return bytes(value)
    return value


def _enum_number(schema: Schema, enum: Any, value: Any) -> int:
    if isinstance(value, int):
        return value
    for parameter in (names.GENERALIZED_ENUM, names.ENUM):
        number = schema.parameters.get(f"{parameter}.{value}")
        if number is not None:
            return int(number)
    symbol = enum.values_by_name.get(value)
    if symbol is None:
        raise DataError(f"{value} is no value of enum {enum.full_name}")
    return int(symbol.number)


def _write_decimal(message: Any, value: Any) -> None:
    if not isinstance(value, Decimal):
        raise DataError(
            f"Invalid type for Decimal, expected Decimal but was {type(value).__name__}"
        )
    exponent = value.as_tuple().exponent
    scale = -exponent if isinstance(exponent, int) else 0
    message.value = logical.decimal_to_bytes(value, scale)
    message.precision = max(1, len(str(abs(logical.unscaled(value, scale)))))
    message.scale = scale


def _write_date(message: Any, value: Any) -> None:
    day = logical.date_from_days(logical.to_base(logical.DATE, value))
    message.year, message.month, message.day = day.year, day.month, day.day


def _write_time(message: Any, value: Any) -> None:
    # 24:00, which Connect allows, begins again at zero, as in Confluent's converter.
    milliseconds = logical.to_base(logical.TIME, value) % logical.DAY_MS
    at: datetime.time = logical.time_from_ms(milliseconds)
    message.hours, message.minutes, message.seconds = at.hour, at.minute, at.second
    message.nanos = at.microsecond * 1000


def _write_timestamp(message: Any, value: Any) -> None:
    seconds, milliseconds = divmod(logical.to_base(logical.TIMESTAMP, value), 1000)
    message.seconds, message.nanos = seconds, milliseconds * 1_000_000


def _write_variant(message: Any, value: Any) -> None:
    message.metadata, message.value = value.get("metadata"), value.get("value")


_WRITERS: dict[str | None, Callable[[Any, Any], None]] = {
    logical.DECIMAL_NAME: _write_decimal,
    logical.DATE_NAME: _write_date,
    logical.TIME_NAME: _write_time,
    logical.TIMESTAMP_NAME: _write_timestamp,
    names.VARIANT: _write_variant,
}
