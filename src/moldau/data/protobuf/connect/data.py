"""Converts Connect's schemas and values to Protobuf and back, as Confluent's ProtobufData does.

| Connect                | Protobuf                                                                |
|------------------------|-------------------------------------------------------------------------|
| int8, int16            | int32, with the parameter `connect.type` in the metadata of the field   |
| int32, int64, float... | int32, int64, float, double, bool, string, bytes; another scalar if the |
|                        | parameter `...protobuf.Type` says so                                    |
| Decimal                | confluent.type.Decimal, with precision and scale in the metadata        |
| Date, Time, Timestamp  | google.type.Date, google.type.TimeOfDay, google.protobuf.Timestamp      |
| array                  | repeated                                                                |
| map                    | repeated messages of key and value                                      |
| struct                 | a message; a oneof if its name begins with `...protobuf.Union`          |
| string, int32          | an enum if it has the parameter `...protobuf.Enum`                      |
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from moldau.data.errors import DataError
from moldau.data.protobuf.connect.from_connect import SchemaWriter, ValueWriter
from moldau.data.protobuf.connect.options import ProtobufDataOptions
from moldau.data.protobuf.connect.to_connect import Read, SchemaReader, ValueReader
from moldau.data.protobuf.schema import ProtobufSchema
from moldau.data.schema import Schema, SchemaAndValue
from moldau.data.schema_language import SchemaError

SCHEMAS_CACHED_MAX = 1000


class ProtobufData:
    """Converts with one set of options; it remembers the schemas it has met, up to a number."""

    def __init__(self, options: ProtobufDataOptions | None = None) -> None:
        self._options = options or ProtobufDataOptions()
        self._writer = ValueWriter(self._options)
        self._written = lru_cache(maxsize=SCHEMAS_CACHED_MAX)(self._write_schema)
        self._read = lru_cache(maxsize=SCHEMAS_CACHED_MAX)(self._read_schema)

    def to_connect_schema(self, schema: ProtobufSchema, *, version: int | None = None) -> Schema:
        """The Connect schema of the message that a schema is about."""
        return self._read(schema, version)[0]

    def to_connect(
        self, schema: ProtobufSchema, message: Any, *, version: int | None = None
    ) -> SchemaAndValue:
        """A message of `schema.message_class()` as a Connect value, with its schema."""
        if message is None:
            return SchemaAndValue(None, None)
        connect_schema, read = self._read(schema, version)
        return SchemaAndValue(connect_schema, read(message))

    def from_connect_schema(self, schema: Schema) -> ProtobufSchema:
        """The Protobuf schema of a struct, or of a primitive type, which becomes a wrapper."""
        return self._written(schema)

    def from_connect(self, schema: Schema, value: Any) -> tuple[ProtobufSchema, Any]:
        """The Protobuf schema and a message of it; None as message for no value."""
        written = self._written(schema)
        if value is None:
            return written, None
        message = written.message_class()()
        self._writer.fill(message, schema, value)
        return written, message

    def filled(self, message: Any, schema: Schema, value: Any) -> Any:
        """A new message of a class of the caller's, with a value of its Connect schema."""
        self._writer.fill(message, schema, value)
        return message

    def _write_schema(self, schema: Schema) -> ProtobufSchema:
        try:
            written = SchemaWriter(self._options).root(schema)
            # Finds names and numbers that Protobuf does not allow.
            _ = written.compiled
        except SchemaError as error:
            raise DataError(f"{schema} has no Protobuf schema: {error}") from error
        except RecursionError:
            raise DataError(f"{schema} is nested too deeply for Protobuf") from None
        return written

    def _read_schema(self, schema: ProtobufSchema, version: int | None) -> tuple[Schema, Read]:
        descriptor = schema.message_class().DESCRIPTOR
        try:
            connect_schema = SchemaReader(self._options).root(descriptor, version)
            return connect_schema, ValueReader(self._options).of(connect_schema, descriptor)
        except RecursionError:
            raise DataError(f"{schema.name} is nested too deeply for a Connect schema") from None
