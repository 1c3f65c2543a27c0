"""Avro with a Schema Registry, in Confluent's wire format.

A record is a dict, or whatever `to_dict` makes one of; dataclasses are taken as they are. A schema
of bytes alone has the bytes themselves as payload, without Avro's length, as in Java.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from moldau.client.errors import SerializationError
from moldau.data.avro.encoding import AvroDecoder, AvroEncoder
from moldau.data.avro.language import AvroSchema
from moldau.data.avro.model import Primitive
from moldau.data.errors import DataError
from moldau.data.schema_language import ParsedSchema
from moldau.serde.configured import RegistryDeserializer, RegistrySerializer, as_schema
from moldau.serde.reading import Decode, RegistryReader
from moldau.serde.registry_client import SchemaRegistryClient
from moldau.serde.settings import SerdeSettings
from moldau.serde.values import AVRO, Schema
from moldau.serde.writing import Encode, RegistryWriter

__all__ = ["AvroDeserializer", "AvroSerializer"]


class AvroSerializer(RegistrySerializer):
    """Writes dicts and dataclasses.

    >>> serializer = AvroSerializer('{"type": "string"}', registry="http://127.0.0.1:8081")
    """

    def __init__(
        self,
        schema: str | Schema | None = None,
        *,
        registry: SchemaRegistryClient | str | None = None,
        to_dict: Callable[[Any], Any] | None = None,
        is_key: bool = False,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        """Without a schema, `use.latest.version` or `use.schema.id` says which."""
        self._schema = as_schema(schema, AVRO)
        self._to_dict = to_dict
        super().__init__(self._build, registry=registry, is_key=is_key, config=config)

    def _build(self, registry: SchemaRegistryClient, settings: SerdeSettings) -> RegistryWriter:
        return RegistryWriter(
            registry,
            settings,
            schema=self._schema,
            schema_type=AVRO,
            make_encoder=self._encoder_of,
        )

    def _encoder_of(self, schema: ParsedSchema) -> tuple[Encode, bytes]:
        if _is_bytes(schema):
            return _raw, b""
        encode = AvroEncoder(_avro(schema).root).encode
        to_dict = self._to_dict

        def encode_value(value: Any) -> bytes:
            if to_dict is not None:
                value = to_dict(value)
            elif type(value) is not dict and dataclasses.is_dataclass(value):
                value = dataclasses.asdict(value)  # type: ignore[arg-type]
            try:
                return encode(value)
            except DataError as error:
                raise SerializationError(str(error)) from error

        return encode_value, b""


class AvroDeserializer(RegistryDeserializer):
    """Reads dicts, or what `from_dict` makes of them.

    With a schema of its own it reads what was written with any compatible one as that.
    """

    def __init__(
        self,
        schema: str | Schema | None = None,
        *,
        registry: SchemaRegistryClient | str | None = None,
        from_dict: Callable[[Any], Any] | None = None,
        is_key: bool = False,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self._schema = as_schema(schema, AVRO)
        self._from_dict = from_dict
        super().__init__(self._build, registry=registry, is_key=is_key, config=config)

    def _build(self, registry: SchemaRegistryClient, settings: SerdeSettings) -> RegistryReader:
        return RegistryReader(
            registry,
            settings,
            schema=self._schema,
            schema_type=AVRO,
            make_decoder=self._decoder_of,
        )

    def _decoder_of(self, writer: ParsedSchema, reader: ParsedSchema | None) -> Decode:
        if _is_bytes(writer):
            return lambda payload, indexes: payload
        decode = AvroDecoder(
            _avro(writer).root, None if reader is None else _avro(reader).root
        ).decode
        from_dict = self._from_dict

        def decode_value(payload: bytes, indexes: bytes | None) -> Any:
            try:
                value = decode(payload)
            except DataError as error:
                raise SerializationError(str(error)) from error
            return value if from_dict is None else from_dict(value)

        return decode_value


def _avro(schema: ParsedSchema) -> AvroSchema:
    if not isinstance(schema, AvroSchema):
        raise SerializationError(f"a schema of type {schema.schema_type} is not Avro's")
    return schema


def _is_bytes(schema: ParsedSchema) -> bool:
    root = _avro(schema).root
    return isinstance(root, Primitive) and root.kind == "bytes"


def _raw(value: Any) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise SerializationError(f"a {type(value).__name__} where the schema has bytes")
