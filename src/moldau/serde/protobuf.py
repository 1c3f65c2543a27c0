"""Protobuf with a Schema Registry, in Confluent's wire format.

Two ways to write: messages of generated classes, whose file and what it imports are registered; and
dicts, as messages of a `.proto` text or of a registered schema. The same two ways to read.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from google.protobuf import descriptor_pb2, json_format
from google.protobuf.message import DecodeError, EncodeError, Message

from moldau.client.errors import ConfigError, SerializationError
from moldau.data.protobuf import MessageIndexError, ProtobufSchema, decode_path, encode_path
from moldau.data.protobuf.well_known import NAMES
from moldau.data.schema_language import ParsedSchema, SchemaError
from moldau.serde.configured import RegistryDeserializer, RegistrySerializer, as_schema
from moldau.serde.reading import Decode, RegistryReader
from moldau.serde.registry_client import SchemaRegistryClient
from moldau.serde.settings import SerdeSettings
from moldau.serde.values import PROTOBUF, Schema, SchemaReference
from moldau.serde.writing import Encode, RegistryWriter

__all__ = ["ProtobufDeserializer", "ProtobufSerializer"]

#: Files that every registry has.
_KNOWN: Final = (*NAMES,)


class ProtobufSerializer(RegistrySerializer):
    """`ProtobufSerializer(Order)` for a generated class; `ProtobufSerializer('syntax = ...',
    message="com.example.Order")` for dicts."""

    def __init__(
        self,
        schema: type[Message] | str | Schema | None = None,
        *,
        message: str | None = None,
        registry: SchemaRegistryClient | str | None = None,
        is_key: bool = False,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        """`message` is the full name of the message that is meant; without it, the first one."""
        self._class = schema if isinstance(schema, type) else None
        self._schema = None if isinstance(schema, type) else as_schema(schema, PROTOBUF)
        self._name = message
        if self._class is not None:
            if message is not None:
                raise ConfigError("a generated class says itself which message it is")
            self._name = self._class.DESCRIPTOR.full_name
        super().__init__(self._build, registry=registry, is_key=is_key, config=config)

    def _build(self, registry: SchemaRegistryClient, settings: SerdeSettings) -> RegistryWriter:
        schema = self._schema
        if self._class is not None:
            schema = _registered_file(self._class.DESCRIPTOR.file, registry, settings)
        return RegistryWriter(
            registry,
            settings,
            schema=schema,
            schema_type=PROTOBUF,
            make_encoder=self._encoder_of,
            record_name=self._name,
        )

    def _encoder_of(self, schema: ParsedSchema) -> tuple[Encode, bytes]:
        parsed = _protobuf(schema)
        name = self._name or parsed.name
        try:
            indexes = encode_path(parsed.message_indexes(name))
            message_class = self._class or parsed.message_class(name)
        except (MessageIndexError, SchemaError) as error:
            raise SerializationError(str(error)) from None

        def encode(value: Any) -> bytes:
            try:
                if isinstance(value, Mapping):
                    value = json_format.ParseDict(value, message_class())
                elif not isinstance(value, Message):
                    raise SerializationError(
                        f"a {type(value).__name__} where the serializer takes a dict or a message"
                    )
                elif value.DESCRIPTOR.full_name != name:
                    raise SerializationError(
                        f"a message {value.DESCRIPTOR.full_name} where the schema has {name}"
                    )
                return bytes(value.SerializeToString())
            except (json_format.ParseError, EncodeError) as error:
                raise SerializationError(f"no message {name}: {error}") from error

        return encode, indexes


class ProtobufDeserializer(RegistryDeserializer):
    """Reads messages of a generated class if one is given; else dicts, or with `as_dict=False`
    messages of a class made from the writer's schema."""

    def __init__(
        self,
        message_class: type[Message] | None = None,
        *,
        as_dict: bool = True,
        registry: SchemaRegistryClient | str | None = None,
        is_key: bool = False,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self._class = message_class
        self._as_dict = as_dict and message_class is None
        super().__init__(self._build, registry=registry, is_key=is_key, config=config)

    def _build(self, registry: SchemaRegistryClient, settings: SerdeSettings) -> RegistryReader:
        return RegistryReader(
            registry, settings, schema=None, schema_type=PROTOBUF, make_decoder=self._decoder_of
        )

    def _decoder_of(self, writer: ParsedSchema, reader: ParsedSchema | None) -> Decode:
        parsed = _protobuf(writer)
        classes: dict[tuple[int, ...], Any] = {}

        def class_at(path: tuple[int, ...]) -> Any:
            found = classes.get(path)
            if found is None:
                name = parsed.message_name(path)
                found = classes[path] = self._class or parsed.message_class(name)
            return found

        def decode(payload: bytes, indexes: bytes | None) -> Any:
            try:
                if indexes is None:
                    path, start = decode_path(payload)
                else:
                    (path, _), start = decode_path(indexes), 0
                message = class_at(path)()
                message.ParseFromString(payload[start:] if start else payload)
            except (MessageIndexError, SchemaError, DecodeError) as error:
                raise SerializationError(f"no message of its schema: {error}") from error
            if not self._as_dict:
                return message
            return json_format.MessageToDict(message, preserving_proto_field_name=True)

        return decode


def _protobuf(schema: ParsedSchema) -> ProtobufSchema:
    if not isinstance(schema, ProtobufSchema):
        raise SerializationError(f"a schema of type {schema.schema_type} is not Protobuf's")
    return schema


def _registered_file(file: Any, registry: SchemaRegistryClient, settings: SerdeSettings) -> Schema:
    """A generated class's file as a schema, those that it imports being registered."""
    references = []
    for imported in file.dependencies:
        if imported.name in _KNOWN:
            continue
        schema = _registered_file(imported, registry, settings)
        # Confluent's DefaultReferenceSubjectNameStrategy: the name of the file.
        subject = imported.name
        if settings.auto_register:
            registry.register(subject, schema, normalize=settings.normalize)
        found = registry.lookup(subject, schema, normalize=settings.normalize)
        if found.version is None:
            raise SerializationError(f"the registry does not say the version of {subject}")
        references.append(SchemaReference(imported.name, subject, found.version))
    proto = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(proto)
    text = base64.b64encode(proto.SerializeToString()).decode()
    return Schema(text, PROTOBUF, tuple(references))
