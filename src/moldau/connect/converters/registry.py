"""Avro, JSON Schema and Protobuf with a Schema Registry: Confluent's converters.

Each Connect schema gets a schema of the format, which is registered for a topic when it is first
written. The frame, the subjects and the caches are those of `moldau.serde`; what is made of values
is in `moldau.data`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar

from moldau.client.errors import SerializationError
from moldau.connect.api import (
    ConfigDef,
    ConfigError,
    Converter,
    DataError,
    Importance,
    Kind,
    NonEmpty,
    RetriableError,
)
from moldau.data import json_text
from moldau.data.avro.connect_data import AvroData
from moldau.data.avro.connect_names import AvroDataOptions
from moldau.data.avro.encoding import AvroEncoder
from moldau.data.avro.from_connect import avro_value
from moldau.data.avro.language import AvroSchema
from moldau.data.json_schema import JsonSchema
from moldau.data.json_schema.connect.from_connect import schema_from_connect
from moldau.data.json_schema.connect.settings import JsonSchemaDataConfig
from moldau.data.json_schema.connect.to_connect import schema_to_connect
from moldau.data.json_schema.connect.values import value_from_connect, value_to_connect
from moldau.data.protobuf import ProtobufSchema, decode_path, encode_path
from moldau.data.protobuf.connect.data import ProtobufData
from moldau.data.protobuf.connect.options import ProtobufDataOptions
from moldau.data.schema import Schema, SchemaAndValue
from moldau.data.schema_language import ParsedSchema, SchemaError
from moldau.invariant import of_type, present
from moldau.serde.coding import Decode, Decoding, Encode, Encoding
from moldau.serde.errors import RegistryError, RegistryUnavailableError
from moldau.serde.reading import RegistryReader
from moldau.serde.registry_client import SchemaRegistryClient
from moldau.serde.settings import SerdeSettings, parse_settings
from moldau.serde.values import AVRO, JSON, PROTOBUF
from moldau.serde.values import Schema as RegistrySchema
from moldau.serde.writing import RegistryWriter

Headers = list[tuple[str, bytes | None]] | None
_WRITERS_MAX = 1000

CONFIG = (
    ConfigDef()
    .define(
        "schema.registry.url",
        Kind.LIST,
        importance=Importance.HIGH,
        doc="Addresses of the Schema Registry.",
    )
    .define(
        "auto.register.schemas",
        Kind.BOOLEAN,
        True,
        importance=Importance.MEDIUM,
        doc="Whether schemas are registered when they are first written.",
    )
    .define(
        "use.latest.version",
        Kind.BOOLEAN,
        False,
        importance=Importance.LOW,
        doc="Whether the latest schema of the subject is used instead of the record's own.",
    )
    .define(
        "key.subject.name.strategy",
        Kind.STRING,
        "TopicNameStrategy",
        validator=NonEmpty(),
        importance=Importance.MEDIUM,
        doc="How the subject of keys is called.",
    )
    .define(
        "value.subject.name.strategy",
        Kind.STRING,
        "TopicNameStrategy",
        validator=NonEmpty(),
        importance=Importance.MEDIUM,
        doc="How the subject of values is called.",
    )
)


class _RegistryConverter(Converter):
    """What the three have in common: a writer per Connect schema, one reader."""

    TYPE: ClassVar[str]

    def __init__(self) -> None:
        self._registry: SchemaRegistryClient | None = None
        self._settings: SerdeSettings | None = None
        self._writers: dict[Schema | None, RegistryWriter] = {}
        self._reader: RegistryReader | None = None

    @classmethod
    def config(cls) -> ConfigDef:
        return CONFIG

    def configure(self, configs: Mapping[str, Any], *, is_key: bool) -> None:
        if not configs.get("schema.registry.url"):
            side = "key" if is_key else "value"
            raise ConfigError(
                'Missing required configuration "schema.registry.url" which has no default value. '
                f"Set {side}.converter.schema.registry.url",
                key="schema.registry.url",
            )
        self._settings = SerdeSettings.of(parse_settings(configs), is_key=is_key)
        self._registry = SchemaRegistryClient(config=configs)
        self._options_of({key: str(value) for key, value in configs.items()})
        self._reader = RegistryReader(
            self._registry,
            self._settings,
            schema=None,
            schema_type=self.TYPE,
            make_decoding=lambda writer, reader: Decoding(self._decoder(writer, reader)),
        )

    @abstractmethod
    def _options_of(self, configs: Mapping[str, str]) -> None: ...

    @abstractmethod
    def _registry_schema(self, schema: Schema | None) -> RegistrySchema: ...

    @abstractmethod
    def _encoder(self, schema: Schema | None, parsed: ParsedSchema) -> tuple[Encode, bytes]: ...

    @abstractmethod
    def _decoder(self, writer: ParsedSchema, reader: ParsedSchema | None) -> Decode: ...

    def from_connect_data(
        self, topic: str, schema: Schema | None, value: Any, headers: Headers = None
    ) -> bytes | None:
        if value is None:
            return None
        try:
            return self._writer(schema).write(topic, value, headers)
        except (RegistryError, RegistryUnavailableError) as error:
            raise _registry_error(topic, error) from error
        except (SerializationError, SchemaError) as error:
            raise DataError(
                f"Failed to serialize {self.TYPE} data from topic {topic}: {error}"
            ) from error

    def to_connect_data(
        self, topic: str, data: bytes | None, headers: Headers = None
    ) -> SchemaAndValue:
        if data is None:
            return SchemaAndValue(None, None)
        try:
            found: SchemaAndValue = present(self._reader, "not configured").read(
                topic, data, headers
            )
        except (RegistryError, RegistryUnavailableError) as error:
            raise _registry_error(topic, error) from error
        except (SerializationError, SchemaError) as error:
            raise DataError(
                f"Failed to deserialize data for topic {topic} to {self.TYPE}: {error}"
            ) from error
        return found

    def _encoding(self, schema: Schema | None, parsed: ParsedSchema) -> Encoding:
        encode, indexes = self._encoder(schema, parsed)
        return Encoding(encode, indexes=indexes)

    def _writer(self, schema: Schema | None) -> RegistryWriter:
        found = self._writers.get(schema)
        if found is None:
            found = RegistryWriter(
                present(self._registry, "not configured"),
                present(self._settings, "not configured"),
                schema=self._registry_schema(schema),
                schema_type=self.TYPE,
                make_encoding=lambda parsed: self._encoding(schema, parsed),
            )
            if len(self._writers) >= _WRITERS_MAX:
                self._writers.clear()
            self._writers[schema] = found
        return found

    def close(self) -> None:
        if self._registry is not None:
            self._registry.close()


def _registry_error(topic: str, error: RegistryError | RegistryUnavailableError) -> Exception:
    """A registry that is down is asked again; one that refuses is not."""
    text = f"Failed to use the Schema Registry for topic {topic}: {error}"
    if isinstance(error, RegistryError) and error.status < 500 and error.status != 429:
        return DataError(text)
    return RetriableError(text)


def _flags(kind: type[Any], configs: Mapping[str, str]) -> dict[str, Any]:
    """The options that a configuration gives: fields of a dataclass, with dots for underscores."""
    found: dict[str, Any] = {}
    for each in fields(kind):
        text = configs.get(each.name.replace("_", "."))
        if text is None:
            continue
        if isinstance(each.default, bool):
            found[each.name] = text.strip().lower() == "true"
        elif isinstance(each.default, int):
            found[each.name] = int(text)
        else:
            found[each.name] = text
    return found


class AvroConverter(_RegistryConverter):
    TYPE = AVRO

    def _options_of(self, configs: Mapping[str, str]) -> None:
        self._data = AvroData(AvroDataOptions(**_flags(AvroDataOptions, configs)))

    def _registry_schema(self, schema: Schema | None) -> RegistrySchema:
        return RegistrySchema(self._data.avro_schema(schema).canonical_text, AVRO)

    def _encoder(self, schema: Schema | None, parsed: ParsedSchema) -> tuple[Encode, bytes]:
        avro = of_type(parsed, AvroSchema)
        encoder = AvroEncoder(avro.root, logical_types=False)
        return lambda value: encoder.encode(avro_value(schema, avro, value)), b""

    def _decoder(self, writer: ParsedSchema, reader: ParsedSchema | None) -> Decode:
        avro = of_type(writer, AvroSchema)
        return lambda payload, indexes: self._data.from_avro(avro, payload)


class JsonSchemaConverter(_RegistryConverter):
    TYPE = JSON

    def _options_of(self, configs: Mapping[str, str]) -> None:
        self._config = JsonSchemaDataConfig(**_flags(JsonSchemaDataConfig, configs))

    def _registry_schema(self, schema: Schema | None) -> RegistrySchema:
        if schema is None:
            return RegistrySchema("{}", JSON)
        return RegistrySchema(schema_from_connect(schema, self._config).canonical_text, JSON)

    def _encoder(self, schema: Schema | None, parsed: ParsedSchema) -> tuple[Encode, bytes]:
        def encode(value: Any) -> bytes:
            return json_text.compact(value_from_connect(schema, value, self._config)).encode()

        return encode, b""

    def _decoder(self, writer: ParsedSchema, reader: ParsedSchema | None) -> Decode:
        schema = schema_to_connect(of_type(writer, JsonSchema), self._config)

        def decode(payload: bytes, indexes: bytes | None) -> SchemaAndValue:
            try:
                value = json_text.parse(payload, decimals=True)
            except ValueError as error:
                raise DataError(f"no JSON: {error}") from None
            return SchemaAndValue(schema, value_to_connect(schema, value))

        return decode


class ProtobufConverter(_RegistryConverter):
    TYPE = PROTOBUF

    def _options_of(self, configs: Mapping[str, str]) -> None:
        self._data = ProtobufData(ProtobufDataOptions.from_config(configs))

    def _registry_schema(self, schema: Schema | None) -> RegistrySchema:
        if schema is None:
            raise DataError("Protobuf needs values with a schema: this one has none")
        return RegistrySchema(self._data.from_connect_schema(schema).canonical_text, PROTOBUF)

    def _encoder(self, schema: Schema | None, parsed: ParsedSchema) -> tuple[Encode, bytes]:
        own = present(schema, "Protobuf needs a schema")
        proto = of_type(parsed, ProtobufSchema)
        indexes = encode_path(proto.message_indexes(proto.name))

        def encode(value: Any) -> bytes:
            _, message = self._data.from_connect(own, value)
            return bytes(message.SerializeToString())

        return encode, indexes

    def _decoder(self, writer: ParsedSchema, reader: ParsedSchema | None) -> Decode:
        proto = of_type(writer, ProtobufSchema)
        first = proto.message_indexes(proto.name)

        def decode(payload: bytes, indexes: bytes | None) -> SchemaAndValue:
            path, start = decode_path(payload if indexes is None else indexes)
            start = start if indexes is None else 0
            if tuple(path) != tuple(first):
                raise DataError(
                    f"The data is a {proto.message_name(path)}; only the first message of a "
                    "schema can be read"
                )
            message = proto.message_class()()
            try:
                message.ParseFromString(payload[start:])
            except Exception as error:  # protobuf's DecodeError, without importing it
                raise DataError(f"no message of its schema: {error}") from None
            return self._data.to_connect(proto, message)

        return decode
