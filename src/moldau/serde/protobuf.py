"""Protobuf with a Schema Registry, in Confluent's wire format.

Two ways to write: messages of generated classes, whose file and what it imports are registered; and
dicts, as messages of a `.proto` text or of a registered schema. The same two ways to read.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, Final

from google.protobuf import descriptor_pb2, json_format
from google.protobuf.message import DecodeError, EncodeError, Message

from moldau.client.errors import ConfigError, SerializationError
from moldau.data.protobuf import MessageIndexError, ProtobufSchema, decode_path, encode_path
from moldau.data.protobuf.well_known import NAMES
from moldau.data.schema_language import ParsedSchema, SchemaError
from moldau.serde.coding import Decoding, Encoding
from moldau.serde.configured import RegistryDeserializer, RegistrySerializer, as_schema
from moldau.serde.reading import RegistryReader
from moldau.serde.registry_client import SchemaRegistryClient
from moldau.serde.settings import SerdeSettings
from moldau.serde.values import PROTOBUF, Schema, SchemaReference
from moldau.serde.writing import RegistryWriter

__all__ = [
    "ProtobufDeserializer",
    "ProtobufSerializer",
    "as_protobuf",
    "protobuf_decoding",
    "protobuf_encoding",
]

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
            make_encoding=self._encoding_of,
            record_name=self._name,
        )

    def _encoding_of(self, schema: ParsedSchema) -> Encoding:
        return protobuf_encoding(schema, name=self._name, message_class=self._class)


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
            registry, settings, schema=None, schema_type=PROTOBUF, make_decoding=self._decoding_of
        )

    def _decoding_of(self, writer: ParsedSchema, reader: ParsedSchema | None) -> Decoding:
        finish = _dict_of if self._as_dict else None
        return protobuf_decoding(writer, message_class=self._class, finish=finish)


def protobuf_encoding(
    schema: ParsedSchema, *, name: str | None = None, message_class: type[Message] | None = None
) -> Encoding:
    """Of messages and dicts; `name` is the message that is meant, by default the first."""
    parsed = as_protobuf(schema)
    wanted = name or parsed.name
    try:
        indexes = encode_path(parsed.message_indexes(wanted))
        made = message_class or parsed.message_class(wanted)
    except (MessageIndexError, SchemaError) as error:
        raise SerializationError(str(error)) from None

    def prepare(value: Any) -> Message:
        if isinstance(value, Mapping):
            try:
                message: Message = json_format.ParseDict(value, made())
            except (json_format.ParseError, RecursionError) as error:
                raise SerializationError(f"no message {wanted}: {error}") from error
            return message
        if not isinstance(value, Message):
            raise SerializationError(
                f"a {type(value).__name__} where the serializer takes a dict or a message"
            )
        if value.DESCRIPTOR.full_name != wanted:
            raise SerializationError(
                f"a message {value.DESCRIPTOR.full_name} where the schema has {wanted}"
            )
        return value

    def encode(message: Message) -> bytes:
        try:
            return bytes(message.SerializeToString())
        except EncodeError as error:
            raise SerializationError(f"no message {wanted}: {error}") from error

    return Encoding(encode, prepare, indexes)


def protobuf_decoding(
    writer: ParsedSchema,
    *,
    message_class: type[Message] | None = None,
    finish: Callable[[Any], Any] | None = None,
) -> Decoding:
    """To messages, and from those to what `finish` makes of them."""
    parsed = as_protobuf(writer)
    classes: dict[tuple[int, ...], Any] = {}

    def class_at(path: tuple[int, ...]) -> Any:
        found = classes.get(path)
        if found is None:
            name = parsed.message_name(path)
            found = classes[path] = message_class or parsed.message_class(name)
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
        return message

    return Decoding(decode, finish)


def _dict_of(message: Message) -> Any:
    return json_format.MessageToDict(message, preserving_proto_field_name=True)


def as_protobuf(schema: ParsedSchema) -> ProtobufSchema:
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
        subject = settings.reference_strategy(imported.name)
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
