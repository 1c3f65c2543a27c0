"""Bytes with a schema of a registry as Arrow's typed columns, and back.

A column has the type of one schema, the reader's. Data of any other version of it is read as that:
new versions are found by the ids in the data, while a query runs. Between bytes and Arrow stands
Connect's model (`moldau.data`), which has one conversion for each of the three languages.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from moldau.client.errors import KafkaError, SerializationError
from moldau.data.arrow import arrow_array, arrow_type, connect_schema, connect_values
from moldau.data.avro.connect_data import AvroData
from moldau.data.avro.encoding import AvroDecoder
from moldau.data.avro.language import AvroSchema
from moldau.data.avro.to_connect import connect_value
from moldau.data.errors import DataError
from moldau.data.json_schema import JsonSchema
from moldau.data.json_schema.connect import (
    schema_from_connect,
    schema_to_connect,
    value_from_connect,
    value_to_connect,
)
from moldau.data.protobuf import ProtobufSchema, decode_path, encode_path
from moldau.data.protobuf.connect.data import ProtobufData
from moldau.data.schema import Schema as ConnectSchema
from moldau.data.schema_language import ParsedSchema
from moldau.serde.framing import (
    Framed,
    FramingError,
    header_value,
    named_in_header,
    prefix,
    read_frame,
)
from moldau.serde.languages import parse_schema
from moldau.serde.registry_client import SchemaRegistryClient
from moldau.serde.values import AVRO, JSON, PROTOBUF, RegisteredSchema, Schema
from moldau.spark.columns.schema import pyarrow
from moldau.spark.schemas.header_ids import ids_in

__all__ = ["BadRow", "ColumnDecoder", "ColumnEncoder", "derived_schema", "spark_type"]

Read = Callable[[Framed], Any]


@dataclass(frozen=True, slots=True)
class BadRow:
    index: int
    error: Exception


def spark_type(kind: pyarrow.DataType) -> pyarrow.DataType:
    """What Spark has instead: timestamps of microseconds, times as milliseconds of the day."""
    types = pyarrow.types
    if types.is_timestamp(kind):
        return pyarrow.timestamp("us", tz="UTC")
    if types.is_time(kind):
        return pyarrow.int32()
    if types.is_struct(kind):
        return pyarrow.struct([pyarrow.field(each.name, spark_type(each.type)) for each in kind])
    if types.is_map(kind):
        return pyarrow.map_(spark_type(kind.key_type), spark_type(kind.item_type))
    if types.is_list(kind):
        return pyarrow.list_(pyarrow.field("element", spark_type(kind.value_type)))
    return kind


class ColumnDecoder:
    """Decodes one column, with the schema `reader` of the registry."""

    def __init__(self, registry: SchemaRegistryClient, reader: Schema, *, is_key: bool) -> None:
        self._registry = registry
        self._is_key = is_key
        self._reader = parse_schema(reader, registry)
        self._connect = _connect_of(self._reader)
        self.type = spark_type(arrow_type(self._connect))
        self._reads: dict[int | str | None, Read] = {}

    def decode(
        self, column: pyarrow.Array, headers: pyarrow.Array | None = None
    ) -> tuple[pyarrow.Array, list[BadRow]]:
        """Null stays null, and is in the place of what does not decode. A record's schema is named
        by a header, or before its data."""
        values: list[Any] = []
        bad: list[BadRow] = []
        ids = ids_in(headers, is_key=self._is_key)
        for index, data in enumerate(column.to_pylist()):
            if data is None:
                values.append(None)
                continue
            try:
                values.append(self._decoded(data, ids.get(index)))
            except (KafkaError, DataError, FramingError, ValueError) as error:
                values.append(None)
                bad.append(BadRow(index, error))
        return arrow_array(self._connect.as_optional(), values).cast(self.type), bad

    def _decoded(self, data: bytes, header: bytes | None) -> Any:
        framed = (
            read_frame(data, None, self._is_key)
            if header is None
            else named_in_header(header, data)
        )
        named = framed.id if framed.guid is None else framed.guid
        read = self._reads.get(named)
        if read is None:
            read = self._reads[named] = self._read_of(framed)
        return read(framed)

    def _read_of(self, framed: Framed) -> Read:
        if framed.guid is not None:
            written = self._registry.schema_by_guid(framed.guid).schema
        else:
            written = self._registry.schema_by_id(framed.id or 0).schema
        if written.schema_type != self._reader.schema_type:
            raise SerializationError(
                f"schema {framed.guid or framed.id} is of type {written.schema_type}, the "
                f"column's is {self._reader.schema_type}"
            )
        writer = parse_schema(written, self._registry)
        connect, reader = self._connect, self._reader
        if isinstance(reader, AvroSchema) and isinstance(writer, AvroSchema):
            decode = AvroDecoder(
                writer.root, reader.root, named_branches=True, logical_types=False
            ).decode
            root = reader.root
            return lambda framed: connect_value(connect, root, decode(framed.payload)).value
        if isinstance(reader, JsonSchema):
            return lambda framed: value_to_connect(connect, json.loads(framed.payload))
        return _protobuf_read(reader)


def _protobuf_read(reader: ParsedSchema) -> Read:
    if not isinstance(reader, ProtobufSchema):
        raise SerializationError(f"a schema of type {reader.schema_type} is not Protobuf's")
    convert, made = ProtobufData(), reader.message_class()

    def read(framed: Framed) -> Any:
        # Which message it is stands in the header, or before the data.
        start = decode_path(framed.payload)[1] if framed.indexes is None else 0
        message = made()
        try:
            # Protobuf itself reads data of other versions.
            message.ParseFromString(framed.payload[start:])
        except Exception as error:  # The library's DecodeError has no base of its own.
            raise SerializationError(f"no message of its schema: {error}") from None
        return convert.to_connect(reader, message).value

    return read


def _connect_of(schema: ParsedSchema) -> ConnectSchema:
    found: ConnectSchema | None
    if isinstance(schema, AvroSchema):
        found = AvroData().connect_schema(schema)
    elif isinstance(schema, JsonSchema):
        found = schema_to_connect(schema)
    elif isinstance(schema, ProtobufSchema):
        found = ProtobufData().to_connect_schema(schema)
    else:
        found = None
    if found is None:
        raise SerializationError(f"a schema of type {schema.schema_type} has no columns")
    return found


class ColumnEncoder:
    """Encodes one typed column with a registered schema; `header` names it, if data shall not."""

    def __init__(
        self,
        registry: SchemaRegistryClient,
        registered: RegisteredSchema,
        *,
        id_in_header: bool = False,
    ) -> None:
        self._schema = parse_schema(registered.schema, registry)
        self._connect = _connect_of(self._schema).as_optional()
        indexes = b""
        if isinstance(self._schema, ProtobufSchema):
            indexes = encode_path(self._schema.message_indexes(self._schema.name))
        self._prefix = prefix(registered.id) + indexes
        self.header: bytes | None = None
        if id_in_header:
            if registered.guid is None:
                raise SerializationError(
                    f"the registry does not say the guid of schema {registered.id}",
                    advice="leave its id before the data, with this registry",
                )
            self._prefix, self.header = b"", header_value(registered.guid, indexes)

    def encode(self, column: pyarrow.Array) -> pyarrow.Array:
        fitting = column.cast(arrow_type(self._connect))
        write = self._writer()
        return pyarrow.array(
            [
                None if value is None else self._prefix + write(value)
                for value in connect_values(self._connect, fitting)
            ],
            type=pyarrow.binary(),
        )

    def _writer(self) -> Callable[[Any], bytes]:
        schema, connect = self._schema, self._connect
        if isinstance(schema, AvroSchema):
            from moldau.data.avro.encoding import AvroEncoder
            from moldau.data.avro.from_connect import avro_value

            encode = AvroEncoder(schema.root, logical_types=False).encode
            return lambda value: encode(avro_value(connect, schema, value))
        if isinstance(schema, JsonSchema):
            return lambda value: json.dumps(
                value_from_connect(connect, value), separators=(",", ":"), ensure_ascii=False
            ).encode()
        if not isinstance(schema, ProtobufSchema):
            raise SerializationError(f"a schema of type {schema.schema_type} is not written")
        return _protobuf_write(schema, connect)


def _protobuf_write(schema: ProtobufSchema, connect: ConnectSchema) -> Callable[[Any], bytes]:
    from moldau.data.protobuf.connect.from_connect import ValueWriter
    from moldau.data.protobuf.connect.options import ProtobufDataOptions

    writer, made = ValueWriter(ProtobufDataOptions()), schema.message_class()

    def write(value: Any) -> bytes:
        message = made()
        writer.fill(message, connect, value)
        return bytes(message.SerializeToString())

    return write


def derived_schema(kind: pyarrow.DataType, schema_type: str, name: str) -> Schema:
    """The schema of a column that no schema was given for."""
    connect = connect_schema(kind)
    if connect.name is None:
        connect = connect.replace(name=name)
    made: Mapping[str, Callable[[], str]] = {
        AVRO: lambda: AvroData().avro_schema(connect).canonical_text,
        JSON: lambda: schema_from_connect(connect).canonical_text,
        PROTOBUF: lambda: ProtobufData().from_connect_schema(connect).canonical_text,
    }
    return Schema(made[schema_type](), schema_type)
