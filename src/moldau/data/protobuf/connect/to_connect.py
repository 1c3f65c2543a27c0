"""Connect schemas and values from messages."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context
from functools import lru_cache
from typing import Any

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FieldDescriptor

from moldau.data import logical
from moldau.data.builders import BYTES
from moldau.data.errors import DataError
from moldau.data.protobuf.connect import options as names
from moldau.data.protobuf.connect.options import ProtobufDataOptions
from moldau.data.protobuf.metadata import field_meta
from moldau.data.schema import Field, Schema, Type
from moldau.data.struct import Struct

Read = Callable[[Any], Any]

_SCALARS = {
    FieldDescriptor.TYPE_INT32: (Type.INT32, None),
    FieldDescriptor.TYPE_SINT32: (Type.INT32, "sint32"),
    FieldDescriptor.TYPE_SFIXED32: (Type.INT32, "sfixed32"),
    FieldDescriptor.TYPE_UINT32: (Type.INT64, "uint32"),
    FieldDescriptor.TYPE_FIXED32: (Type.INT64, "fixed32"),
    FieldDescriptor.TYPE_INT64: (Type.INT64, None),
    FieldDescriptor.TYPE_UINT64: (Type.INT64, "uint64"),
    FieldDescriptor.TYPE_SINT64: (Type.INT64, "sint64"),
    FieldDescriptor.TYPE_FIXED64: (Type.INT64, "fixed64"),
    FieldDescriptor.TYPE_SFIXED64: (Type.INT64, "sfixed64"),
    FieldDescriptor.TYPE_FLOAT: (Type.FLOAT32, None),
    FieldDescriptor.TYPE_DOUBLE: (Type.FLOAT64, None),
    FieldDescriptor.TYPE_BOOL: (Type.BOOLEAN, None),
    FieldDescriptor.TYPE_STRING: (Type.STRING, None),
    FieldDescriptor.TYPE_BYTES: (Type.BYTES, None),
}
_SMALL = {"int8": Type.INT8, "int16": Type.INT16}


class Details:
    """What a message's descriptor says only as a message: real oneofs, and `optional`."""

    def __init__(self, descriptor: Any) -> None:
        proto = descriptor_pb2.DescriptorProto()
        descriptor.CopyToProto(proto)
        is_proto2 = _is_proto2(descriptor.file)
        self.optional: set[str] = set()
        synthetic: set[int] = set()
        for field in proto.field:
            if field.proto3_optional:
                synthetic.add(field.oneof_index)
                self.optional.add(field.name)
            elif (
                is_proto2
                and field.label == field.LABEL_OPTIONAL
                and not field.HasField("oneof_index")
            ):
                self.optional.add(field.name)
        self.proto3_optional = {field.name for field in proto.field if field.proto3_optional}
        self.oneofs = [each for each in descriptor.oneofs if each.index not in synthetic]
        in_oneofs = {field.name for oneof in self.oneofs for field in oneof.fields}
        self.fields = [field for field in descriptor.fields if field.name not in in_oneofs]


@lru_cache(maxsize=64)
def _is_proto2(file: Any) -> bool:
    proto = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(proto)
    return proto.syntax in ("", "proto2")


class SchemaReader:
    """Makes one Connect schema of a message and of those inside it.

    A message that holds itself has no Connect schema here: schemas are values without cycles.
    """

    def __init__(self, options: ProtobufDataOptions) -> None:
        self._options = options
        self._open: list[str] = []
        #: What is used in many places is made once.
        self._made: dict[str, Schema] = {}

    def root(self, descriptor: Any, version: int | None) -> Schema:
        wrapped = names.WRAPPERS.get(descriptor.full_name)
        if wrapped is not None and self._options.wrapper_for_raw_primitives:
            return Schema(type=wrapped, version=version)
        return self._struct(descriptor).replace(version=version)

    def _struct(self, descriptor: Any) -> Schema:
        if descriptor.full_name in self._made:
            return self._made[descriptor.full_name]
        if descriptor.full_name in self._open:
            raise DataError(
                f"Message {descriptor.full_name} holds itself, by way of "
                f"{' -> '.join(self._open)}: a recursive message has no Connect schema"
            )
        self._open.append(descriptor.full_name)
        fields: list[tuple[str, Schema]] = []
        details = Details(descriptor)
        for oneof in details.oneofs:
            if self._options.flatten_unions:
                fields += self._members(oneof, details)
            else:
                fields.append((union_field_name(oneof, self._options), self._union(oneof, details)))
        fields += [
            (field.name, self._field(field, details, in_oneof=False)) for field in details.fields
        ]
        self._open.pop()
        made = Schema(type=Type.STRUCT, name=self._name(descriptor), fields=_numbered(fields))
        self._made[descriptor.full_name] = made
        return made

    def _name(self, descriptor: Any) -> str:
        full = self._options.enhanced_protobuf_schema_support
        return str(descriptor.full_name if full else descriptor.name)

    def _members(self, oneof: Any, details: Details) -> list[tuple[str, Schema]]:
        return [(field.name, self._field(field, details, in_oneof=True)) for field in oneof.fields]

    def _union(self, oneof: Any, details: Details) -> Schema:
        generalized = self._options.generalized_sum_type_support
        return Schema(
            type=Type.STRUCT,
            name=oneof.name if generalized else f"{names.UNION}.{self._name(oneof)}",
            parameters={names.GENERALIZED_UNION: oneof.name} if generalized else {},
            fields=_numbered(self._members(oneof, details)),
            optional=True,
        )

    def _field(self, field: Any, details: Details, *, in_oneof: bool) -> Schema:
        schema = self._type(field)
        if field.is_repeated and schema.type is not Type.MAP:
            schema = Schema(type=Type.ARRAY, value_schema=schema.as_optional(), optional=True)
        parameters = dict(schema.parameters)
        options = self._options
        if in_oneof:
            optional = True
            if options.wrapper_for_nullables and _is_wrapper(field):
                parameters[names.WRAPPER] = "true"
        elif options.optional_for_nullables:
            optional = schema.optional or field.name in details.optional
        else:
            optional = schema.optional or not options.wrapper_for_nullables
        parameters[names.TAG] = str(field.number)
        return schema.replace(optional=optional, parameters=parameters)

    def _type(self, field: Any) -> Schema:
        if field.type in _SCALARS:
            return self._scalar(field)
        if field.type == FieldDescriptor.TYPE_ENUM:
            return self._enum(field.enum_type)
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            return self._message(field).as_optional()
        raise DataError(f"Field {field.full_name} is a group, which has no Connect schema")

    @staticmethod
    def _scalar(field: Any) -> Schema:
        type_, scalar = _SCALARS[field.type]
        if type_ is Type.INT32:
            small = _SMALL.get(field_meta(field).params.get(names.CONNECT_TYPE, ""))
            if small is not None:
                return Schema(type=small)
        return Schema(type=type_, parameters={names.TYPE: scalar} if scalar else {})

    def _enum(self, enum: Any) -> Schema:
        parameter = self._options.enum_parameter
        return Schema(
            type=Type.INT32 if self._options.int_for_enums else Type.STRING,
            name=self._name(enum),
            parameters={
                parameter: enum.name,
                **{f"{parameter}.{value.name}": str(value.number) for value in enum.values},
            },
            optional=True,
        )

    def _message(self, field: Any) -> Schema:
        match field.message_type.full_name:
            case names.DECIMAL_TYPE:
                return _decimal(field)
            case names.DATE_TYPE:
                return logical.DATE
            case names.TIME_TYPE:
                return logical.TIME
            case names.TIMESTAMP_TYPE:
                return logical.TIMESTAMP
            case names.VARIANT_TYPE:
                return VARIANT_SCHEMA
        if self._options.wrapper_for_nullables and _is_wrapper(field):
            return Schema(type=names.WRAPPERS[field.message_type.full_name])
        if not is_map(field):
            return self._struct(field.message_type)
        entry = field.message_type
        details = Details(entry)
        return Schema(
            type=Type.MAP,
            name=_map_name(self._name(entry)),
            key_schema=self._field(entry.fields_by_name["key"], details, in_oneof=False),
            value_schema=self._field(entry.fields_by_name["value"], details, in_oneof=False),
        )


VARIANT_SCHEMA = Schema(
    type=Type.STRUCT,
    name=names.VARIANT,
    fields=(Field("metadata", 0, BYTES), Field("value", 1, BYTES)),
)


def _numbered(fields: list[tuple[str, Schema]]) -> tuple[Field, ...]:
    return tuple(Field(name, index, schema) for index, (name, schema) in enumerate(fields))


def _is_wrapper(field: Any) -> bool:
    return field.message_type is not None and field.message_type.full_name in names.WRAPPERS


def is_map(field: Any) -> bool:
    """Whether a field is a map, by the shape of its message, as Confluent's converter decides."""
    entry = field.message_type
    return (
        field.is_repeated
        and entry.name.endswith("Entry")
        and [each.name for each in entry.fields] == ["key", "value"]
        and not any(each.is_repeated for each in entry.fields)
    )


def _map_name(name: str) -> str:
    """`a.ByNameEntry` as `a.by_name`."""
    outer, dot, last = name.rpartition(".")
    last = re.sub(r"(?<!^)([A-Z])", r"_\1", last.removesuffix("Entry")).lower()
    return outer + dot + last


def union_field_name(oneof: Any, options: ProtobufDataOptions) -> str:
    return f"{oneof.name}_{oneof.index}" if options.generate_index_for_unions else str(oneof.name)


def _decimal(field: Any) -> Schema:
    params = field_meta(field).params
    precision, scale = _integer(params.get("precision")), _integer(params.get("scale"))
    return logical.decimal(scale or 0, precision=precision)


def _integer(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"[+-]?[0-9]{1,9}", text) else None


class ValueReader:
    """Makes the functions that turn messages into Connect values, one for each schema."""

    def __init__(self, options: ProtobufDataOptions) -> None:
        self._options = options
        self._made: dict[tuple[str, Schema], Read] = {}

    def of(self, schema: Schema, descriptor: Any) -> Read:
        """The function for messages of a descriptor, of which the schema was made."""
        if schema.type is not Type.STRUCT:
            return lambda message: _signed(message.value)
        return self._struct(schema, descriptor)

    def _struct(self, schema: Schema, descriptor: Any) -> Read:
        key = (descriptor.full_name, schema)
        if key not in self._made:
            self._made[key] = self._new_struct(schema, descriptor)
        return self._made[key]

    def _new_struct(self, schema: Schema, descriptor: Any) -> Read:
        details = Details(descriptor)
        size = len(schema.fields)
        steps: list[Callable[[Any, list[Any]], None]] = []
        for oneof in details.oneofs:
            steps.append(self._oneof(schema, oneof))
        for field in details.fields:
            steps.append(self._member(schema, field, details))

        def read(message: Any) -> Struct:
            values: list[Any] = [None] * size
            for step in steps:
                step(message, values)
            return Struct.unchecked(schema, values)

        return read

    def _oneof(self, schema: Schema, oneof: Any) -> Callable[[Any, list[Any]], None]:
        flat = self._options.flatten_unions
        union = schema if flat else _member(schema, union_field_name(oneof, self._options)).schema
        index = 0 if flat else _member(schema, union_field_name(oneof, self._options)).index
        reads = {
            field.name: (_member(union, field.name).index, self._field(union, field))
            for field in oneof.fields
        }
        name = oneof.name

        def step(message: Any, values: list[Any]) -> None:
            chosen = message.WhichOneof(name)
            if chosen is None:
                return
            place, read = reads[chosen]
            value = read(getattr(message, chosen))
            if flat:
                values[place] = value
                return
            inner: list[Any] = [None] * len(union.fields)
            inner[place] = value
            values[index] = Struct.unchecked(union, inner)

        return step

    def _member(
        self, schema: Schema, field: Any, details: Details
    ) -> Callable[[Any, list[Any]], None]:
        name, index = field.name, _member(schema, field.name).index
        read = self._field(schema, field)
        optional = (
            details.optional if self._options.optional_for_proto2 else details.proto3_optional
        )
        is_message = field.message_type is not None and not field.is_repeated
        always = self._options.generate_struct_for_nulls or not (is_message or name in optional)

        def step(message: Any, values: list[Any]) -> None:
            if always or message.HasField(name):
                values[index] = read(getattr(message, name))

        return step

    def _field(self, schema: Schema, field: Any) -> Read:
        inner = _member(schema, field.name).schema
        if inner.type is Type.MAP:
            return self._map(inner, field)
        if not field.is_repeated:
            return self._value(inner, field)
        read = self._value(inner.items, field)
        return lambda values: [read(value) for value in values]

    def _map(self, schema: Schema, field: Any) -> Read:
        entry = field.message_type
        key = self._value(schema.keys, entry.fields_by_name["key"])
        value = self._value(schema.items, entry.fields_by_name["value"])
        if entry.GetOptions().map_entry:
            return lambda values: {key(name): value(values[name]) for name in values}
        return lambda values: {key(each.key): value(each.value) for each in values}

    def _value(self, schema: Schema, field: Any) -> Read:
        if schema.name in _LOGICAL:
            return _LOGICAL[schema.name]
        if field.enum_type is not None:
            return _enum_reader(field.enum_type, as_number=schema.type is Type.INT32)
        if field.message_type is None:
            return _NARROWED.get(schema.type) or (
                _signed if field.cpp_type == FieldDescriptor.CPPTYPE_UINT64 else _same
            )
        if schema.name == names.VARIANT:
            return lambda message: Struct.unchecked(schema, [message.metadata, message.value])
        if schema.type is not Type.STRUCT:
            return lambda message: _signed(message.value)
        return self._struct(schema, field.message_type)


def _member(schema: Schema, name: str) -> Field:
    found = schema.field(name)
    if found is None:
        raise DataError(f"{schema} has no field {name}, which the message has")
    return found


def _same(value: Any) -> Any:
    return value


def _signed(value: Any) -> Any:
    """Numbers without a sign that are too large for int64 become negative, as in Java."""
    return value - 2**64 if isinstance(value, int) and value >= 2**63 else value


def _narrowed(bits: int) -> Read:
    half = 1 << (bits - 1)
    return lambda value: (value + half) % (2 * half) - half


_NARROWED = {Type.INT8: _narrowed(8), Type.INT16: _narrowed(16)}


def _enum_reader(enum: Any, *, as_number: bool) -> Read:
    if as_number:
        return _same
    symbols = {number: value.name for number, value in enum.values_by_number.items()}
    unknown = f"UNKNOWN_ENUM_VALUE_{enum.name}_"
    return lambda number: symbols.get(number) or f"{unknown}{number}"


def _read_decimal(message: Any) -> Any:
    value = logical.decimal_from_bytes(message.value, message.scale)
    if 0 < message.precision < len(value.as_tuple().digits):
        context = Context(prec=message.precision, rounding=ROUND_HALF_UP)
        return context.create_decimal(value)
    return value


def _read_date(message: Any) -> datetime.date:
    try:
        return datetime.date(message.year, message.month, message.day)
    except ValueError as error:
        raise DataError(f"No date: {message.year}-{message.month}-{message.day}: {error}") from None


def _read_time(message: Any) -> datetime.time:
    microseconds = message.nanos // 1_000_000 * 1000
    try:
        return datetime.time(message.hours, message.minutes, message.seconds, microseconds)
    except ValueError as error:
        shown = f"{message.hours}:{message.minutes}:{message.seconds}"
        raise DataError(f"No time of day: {shown}: {error}") from None


def _read_timestamp(message: Any) -> datetime.datetime:
    return logical.timestamp_from_ms(message.seconds * 1000 + message.nanos // 1_000_000)


_LOGICAL: dict[str | None, Read] = {
    logical.DECIMAL_NAME: _read_decimal,
    logical.DATE_NAME: _read_date,
    logical.TIME_NAME: _read_time,
    logical.TIMESTAMP_NAME: _read_timestamp,
}
