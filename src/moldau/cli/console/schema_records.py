"""Confluent's line readers and formatters: lines of JSON as records with a schema, and back.

`io.confluent.kafka.formatter.AvroMessageReader` and `AvroMessageFormatter`, and their twins for
JSON Schema and Protobuf, with Confluent's properties.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from moldau.cli.console.formatters import Output, deserializer_of
from moldau.cli.console.reader import LineError, LineMessageReader, LineRecord
from moldau.cli.support.machine.java_text import java_text
from moldau.client.errors import KafkaError, SerializationError
from moldau.data import json_text
from moldau.serde.configured import RegistrySerializer
from moldau.serde.framing import FramingError, read_frame
from moldau.serde.json_forms import JsonFormDeserializer, JsonFormSerializer
from moldau.serde.registry_client import SchemaRegistryClient
from moldau.serde.values import AVRO, JSON, PROTOBUF, Schema, SchemaReference

if TYPE_CHECKING:
    from moldau.cli.console.formatters import RawRecord

__all__ = [
    "AvroMessageFormatter",
    "AvroMessageReader",
    "JsonSchemaMessageFormatter",
    "JsonSchemaMessageReader",
    "ProtobufMessageFormatter",
    "ProtobufMessageReader",
]

DEFAULT_REGISTRY: Final = "http://localhost:8081"
_TIMESTAMP_TYPES: Final = {0: "CreateTime", 1: "LogAppendTime"}
_NUMBERS: Final = ("Long", "Integer", "Short")
Serialize = Callable[[str, Any, list[tuple[str, bytes | None]]], bytes | None]


def _registry_settings(settings: Mapping[str, str]) -> dict[str, str]:
    found = {"schema.registry.url": DEFAULT_REGISTRY, **settings}
    if "auto.register" in found:
        found.setdefault("auto.register.schemas", found["auto.register"])
    return found


class SchemaMessageReader:
    """`[headers DELIMITER] [key SEPARATOR] value` with key and value in JSON."""

    def __init__(self, schema_type: str) -> None:
        self._schema_type = schema_type
        self._lines = LineMessageReader()
        self._registry: SchemaRegistryClient | None = None
        self._key: Serialize | None = None
        self._value: Serialize | None = None

    def configure(self, settings: Mapping[str, str]) -> None:
        self._lines.configure(settings)
        config = _registry_settings(settings)
        self._registry = SchemaRegistryClient(config=config)
        self._value = self._with_schema(config, "value")
        if settings.get("parse.key", "").strip().lower() == "true":
            if "key.serializer" in settings:
                self._key = _plain_serializer(settings["key.serializer"], settings)
            else:
                self._key = self._with_schema(config, "key")

    def read_records(self, input_stream: Iterable[bytes]) -> Iterator[LineRecord]:
        for number, record in enumerate(self._lines.read_records(input_stream), 1):
            headers = list(record.headers)
            try:
                key = self._written(self._key, record.topic, record.key, headers)
                value = self._written(self._value, record.topic, record.value, headers)
            except (KafkaError, ValueError) as error:
                shown = " ".join(str(error).split())
                raise LineError(f"line number {number}: {shown}") from None
            yield replace(record, key=key, value=value, headers=tuple(headers))

    def close(self) -> None:
        if self._registry is not None:
            self._registry.close()

    @staticmethod
    def _written(
        serialize: Serialize | None,
        topic: str,
        text: bytes | None,
        headers: list[tuple[str, bytes | None]],
    ) -> bytes | None:
        if text is None or serialize is None:
            return text
        return serialize(topic, text, headers)

    def _with_schema(self, config: Mapping[str, str], side: str) -> Serialize:
        schema = self._schema(config, side)
        serializer: RegistrySerializer = JsonFormSerializer(
            self._schema_type,
            schema,
            registry=self._registry,
            is_key=side == "key",
            config=config,
        )

        def serialize(
            topic: str, text: bytes, headers: list[tuple[str, bytes | None]]
        ) -> bytes | None:
            try:
                value = json.loads(text)
            except (ValueError, RecursionError) as error:
                shown = text.decode(errors="replace")
                raise SerializationError(f"the {side} {shown!r} is not JSON: {error}") from None
            return serializer.serialize(topic, value, headers)

        return serialize

    def _schema(self, config: Mapping[str, str], side: str) -> Schema | None:
        number = config.get(f"{side}.schema.id")
        if number is not None:
            try:
                schema_id = int(number)
            except ValueError:
                raise LineError(f"Error parsing {side}.schema.id as int: {number}") from None
            return self._client.schema_by_id(schema_id).schema
        text = config.get(f"{side}.schema")
        if text is None:
            path = config.get(f"{side}.schema.file")
            if path is None:
                if config.get("use.latest.version", "").strip().lower() == "true":
                    return None
                raise LineError(
                    f"Must provide the {side} schema in either {side}.schema, {side}.schema.id, or "
                    f"{side}.schema.file"
                )
            try:
                text = Path(path).read_text()
            except (OSError, ValueError) as error:
                raise LineError(f"Error reading schema from {path}: {error}") from None
        references = _references(config.get(f"{side}.refs"), f"{side}.refs")
        return Schema(text, self._schema_type, references)

    @property
    def _client(self) -> SchemaRegistryClient:
        if self._registry is None:
            raise LineError("the reader is not configured")
        return self._registry


class SchemaMessageFormatter:
    """The selected parts of a record in Confluent's order, keys and values in JSON."""

    def __init__(self, schema_type: str) -> None:
        self._schema_type = schema_type
        self._flags: dict[str, bool] = {}
        self._registry: SchemaRegistryClient | None = None

    def configure(self, settings: Mapping[str, str]) -> None:
        names = ("timestamp", "partition", "offset", "headers", "key", "schema.ids")
        self._flags = {
            name: settings.get(f"print.{name}", "").strip().lower() == "true" for name in names
        }
        self._key_separator = settings.get("key.separator", "\t").encode()
        self._line_separator = settings.get("line.separator", "\n").encode()
        self._headers_separator = settings.get("headers.separator", "\n").encode()
        self._id_separator = settings.get("schema.id.separator", "\t").encode()
        self._null = settings.get("null.literal", "null").encode()
        self._key_plain = deserializer_of(settings, "key.deserializer", is_key=True)
        self._headers_plain = deserializer_of(settings, "headers.deserializer", is_key=False)
        config = _registry_settings(settings)
        self._registry = SchemaRegistryClient(config=config)
        self._key, self._value = (
            JsonFormDeserializer(
                self._schema_type, registry=self._registry, is_key=is_key, config=config
            )
            for is_key in (True, False)
        )

    def write_to(self, record: RawRecord, output: Output) -> None:
        parts = list(self._before(record))
        if self._flags["key"]:
            parts.append(self._shown_key(record))
        parts.append(self._shown(record, record.value, is_key=False))
        output.write(self._key_separator.join(parts) + self._line_separator)

    def close(self) -> None:
        if self._registry is not None:
            self._registry.close()

    def _before(self, record: RawRecord) -> Iterator[bytes]:
        if self._flags["timestamp"]:
            kind = _TIMESTAMP_TYPES.get(record.timestamp_type)
            yield b"NO_TIMESTAMP" if kind is None else f"{kind}:{record.timestamp}".encode()
        if self._flags["partition"]:
            yield b"Partition:%d" % record.partition
        if self._flags["offset"]:
            yield b"Offset:%d" % record.offset
        if self._flags["headers"]:
            shown = [
                name.encode() + b":" + self._header(record, value) for name, value in record.headers
            ]
            yield self._headers_separator.join(shown) if shown else b"NO_HEADERS"

    def _header(self, record: RawRecord, value: bytes | None) -> bytes:
        if value is None:
            return self._null
        if self._headers_plain is None:
            return bytes(value)
        return java_text(self._headers_plain(record.topic, value, record.headers))

    def _shown_key(self, record: RawRecord) -> bytes:
        if self._key_plain is None:
            return self._shown(record, record.key, is_key=True)
        if record.key is None:
            return self._null
        return java_text(self._key_plain(record.topic, record.key, record.headers))

    def _shown(self, record: RawRecord, data: bytes | None, *, is_key: bool) -> bytes:
        if data is None:
            return self._null
        deserializer = self._key if is_key else self._value
        value = deserializer.deserialize(record.topic, bytes(data), record.headers)
        text = json_text.compact(value).encode(errors="replace")
        if not self._flags["schema.ids"]:
            return text
        try:
            framed = read_frame(bytes(data), record.headers, is_key)
        except FramingError as error:
            raise SerializationError(str(error)) from None
        return text + self._id_separator + str(framed.id or framed.guid).encode()


#: By the names of Confluent's classes.
AvroMessageReader = partial(SchemaMessageReader, AVRO)
JsonSchemaMessageReader = partial(SchemaMessageReader, JSON)
ProtobufMessageReader = partial(SchemaMessageReader, PROTOBUF)
AvroMessageFormatter = partial(SchemaMessageFormatter, AVRO)
JsonSchemaMessageFormatter = partial(SchemaMessageFormatter, JSON)
ProtobufMessageFormatter = partial(SchemaMessageFormatter, PROTOBUF)


def _references(text: str | None, name: str) -> tuple[SchemaReference, ...]:
    if text is None:
        return ()
    try:
        return tuple(
            SchemaReference(each["name"], each["subject"], int(each["version"]))
            for each in json.loads(text)
        )
    except (ValueError, KeyError, TypeError):
        raise LineError(
            f'{name} must be JSON such as [{{"name": "n", "subject": "s", "version": 1}}], '
            f"not {text}"
        ) from None


def _plain_serializer(name: str, settings: Mapping[str, str]) -> Serialize:
    """Of keys without a schema."""
    from moldau.client.serialization import resolve_serializer

    try:
        serializer: Any = resolve_serializer(name, True, dict(settings))
    except Exception as error:  # Custom classes may raise anything.
        raise LineError(f"Error initializing Key serializer: {error}") from None
    is_number = name.rpartition(".")[2].removesuffix("Serializer") in _NUMBERS
    call = getattr(serializer, "serialize", serializer)

    def serialize(topic: str, text: bytes, headers: list[tuple[str, bytes | None]]) -> bytes | None:
        shown = text.decode(errors="replace")
        if serializer is None:
            return text
        value: Any = int(shown) if is_number else shown
        found: bytes | None = call(topic, value, headers)
        return found

    return serialize
