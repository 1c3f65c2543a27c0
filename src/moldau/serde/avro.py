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
from moldau.serde.coding import Decoding, Encoding
from moldau.serde.configured import RegistryDeserializer, RegistrySerializer, as_schema
from moldau.serde.reading import RegistryReader
from moldau.serde.registry_client import SchemaRegistryClient
from moldau.serde.settings import SerdeSettings
from moldau.serde.values import AVRO, Schema
from moldau.serde.writing import RegistryWriter

__all__ = ["AvroDeserializer", "AvroSerializer", "as_avro", "avro_decoding", "avro_encoding"]


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
            make_encoding=self._encoding_of,
        )

    def _encoding_of(self, schema: ParsedSchema) -> Encoding:
        return avro_encoding(schema, prepare=self._to_dict or _plain)


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
            make_decoding=self._decoding_of,
        )

    def _decoding_of(self, writer: ParsedSchema, reader: ParsedSchema | None) -> Decoding:
        return avro_decoding(writer, reader, finish=self._from_dict)


def avro_encoding(
    schema: ParsedSchema,
    *,
    prepare: Callable[[Any], Any] | None = None,
    logical_types: bool = True,
) -> Encoding:
    """A schema of bytes alone has the bytes themselves as payload."""
    if _is_bytes(schema):
        return Encoding(_raw, prepare)
    encode = AvroEncoder(as_avro(schema).root, logical_types=logical_types).encode

    def encode_data(data: Any) -> bytes:
        try:
            return encode(data)
        except DataError as error:
            raise SerializationError(str(error)) from error

    return Encoding(encode_data, prepare)


def avro_decoding(
    writer: ParsedSchema,
    reader: ParsedSchema | None,
    *,
    finish: Callable[[Any], Any] | None = None,
    logical_types: bool = True,
    named_branches: bool = False,
) -> Decoding:
    """The other way round; `named_branches` as in `AvroDecoder`."""
    if _is_bytes(writer):
        return Decoding(lambda payload, indexes: payload, finish)
    decode = AvroDecoder(
        as_avro(writer).root,
        None if reader is None else as_avro(reader).root,
        logical_types=logical_types,
        named_branches=named_branches,
    ).decode

    def decode_data(payload: bytes, indexes: bytes | None) -> Any:
        try:
            return decode(payload)
        except DataError as error:
            raise SerializationError(str(error)) from error

    return Decoding(decode_data, finish)


def _plain(value: Any) -> Any:
    if type(value) is not dict and dataclasses.is_dataclass(value):
        return dataclasses.asdict(value)  # type: ignore[arg-type]
    return value


def as_avro(schema: ParsedSchema) -> AvroSchema:
    if not isinstance(schema, AvroSchema):
        raise SerializationError(f"a schema of type {schema.schema_type} is not Avro's")
    return schema


def _is_bytes(schema: ParsedSchema) -> bool:
    root = as_avro(schema).root
    return isinstance(root, Primitive) and root.kind == "bytes"


def _raw(value: Any) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise SerializationError(f"a {type(value).__name__} where the schema has bytes")
