"""Connect's values to and from Avro's bytes, with one set of options: Confluent's AvroData.

Schemas are prepared once and kept, up to a number of them.
"""

from __future__ import annotations

from typing import Any

from moldau.data.avro.connect_names import AvroDataOptions
from moldau.data.avro.encoding import AvroDecoder, AvroEncoder
from moldau.data.avro.from_connect import avro_schema, avro_value
from moldau.data.avro.language import AvroSchema
from moldau.data.avro.to_connect import connect_schema, connect_value
from moldau.data.schema import Schema, SchemaAndValue

_SCHEMAS_MAX = 1000


class AvroData:
    """Converts in both directions."""

    def __init__(self, options: AvroDataOptions | None = None) -> None:
        self._options = options or AvroDataOptions()
        self._encoders: dict[Schema | None, tuple[AvroSchema, AvroEncoder]] = {}
        self._decoders: dict[tuple[AvroSchema, int | None], tuple[Schema | None, AvroDecoder]] = {}

    def avro_schema(self, schema: Schema | None) -> AvroSchema:
        """The Avro schema that values of a Connect schema are written with."""
        return self._encoder(schema)[0]

    def connect_schema(self, avro: AvroSchema, version: int | None = None) -> Schema | None:
        """The Connect schema that data of an Avro schema is read with."""
        return self._decoder(avro, version)[0]

    def to_avro(self, schema: Schema | None, value: Any) -> bytes:
        """A value as Avro data, without header."""
        avro, encoder = self._encoder(schema)
        return encoder.encode(avro_value(schema, avro, value))

    def from_avro(
        self, avro: AvroSchema, data: bytes | memoryview, version: int | None = None
    ) -> SchemaAndValue:
        """The value of Avro data that was written with a schema."""
        schema, decoder = self._decoder(avro, version)
        return connect_value(schema, avro.root, decoder.decode(data))

    def _encoder(self, schema: Schema | None) -> tuple[AvroSchema, AvroEncoder]:
        found = self._encoders.get(schema)
        if found is None:
            avro = avro_schema(schema, self._options)
            found = avro, AvroEncoder(avro.root, logical_types=False)
            if len(self._encoders) >= _SCHEMAS_MAX:
                self._encoders.clear()
            self._encoders[schema] = found
        return found

    def _decoder(self, avro: AvroSchema, version: int | None) -> tuple[Schema | None, AvroDecoder]:
        found = self._decoders.get((avro, version))
        if found is None:
            schema = connect_schema(avro.root, self._options, version=version)
            decoder = AvroDecoder(avro.root, named_branches=True, logical_types=False)
            found = schema, decoder
            if len(self._decoders) >= _SCHEMAS_MAX:
                self._decoders.clear()
            self._decoders[(avro, version)] = found
        return found
