"""RegistryFormats: Avro, JSON Schema and Protobuf in requests, by a Schema Registry.

The registry's client blocks, so whatever may ask the registry runs in a thread; what is known by
then is used on the loop. Decided here: which schema a request means, in Confluent's order: an id, a
version of a subject, a text, the latest version of the subject.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Generic, TypeVar

from moldau.client.errors import ConfigError, KafkaError, SerializationError
from moldau.data import languages
from moldau.data.schema_language import SchemaError
from moldau.http.machine.errors import HttpError
from moldau.serde.coding import Decode
from moldau.serde.errors import RegistryError
from moldau.serde.framing import FramingError, prefix, read_frame
from moldau.serde.json_forms import json_form_decoding, json_form_encoding
from moldau.serde.languages import parse_schema
from moldau.serde.registry_client import SchemaRegistryClient
from moldau.serde.rules.contracts import DISABLED, ReadRules, WriteRules, rule_tools
from moldau.serde.settings import SerdeSettings, parse_settings
from moldau.serde.subjects import resolve_strategy
from moldau.serde.values import RegisteredSchema, Schema
from moldau.services.rest.machine import bodies
from moldau.services.rest.machine.errors import bad_request, constraint
from moldau.services.rest.machine.formats import EncodedSchema
from moldau.services.rest.schema_formats import ResolvedSchema

__all__ = ["RegistryFormats"]

V = TypeVar("V")
#: Schemas that requests named, and decoders.
CACHED_MAX: Final = 1000
#: How long the latest version is taken for the latest.
LATEST_S: Final = 1
_TYPES: Final = {"AVRO": "AVRO", "JSONSCHEMA": "JSON", "PROTOBUF": "PROTOBUF"}
_FORMATS: Final = {schema_type: name for name, schema_type in _TYPES.items()}
_STRATEGY: Final = "subject_name_strategy"


class RegistryFormats:
    """See the module. Made on the loop that it runs on."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        """`properties` are the proxy's: `schema.registry.KEY` is a setting of the client. Raises
        ConfigError."""
        config = _client_settings(properties)
        self._registry = SchemaRegistryClient(config=config)
        self._settings = SerdeSettings.of(parse_settings(config), is_key=False, config=config)
        self._rules = rule_tools(self._registry, self._settings)
        self._resolved: _Recent[ResolvedSchema] = _Recent()
        self._encoders: _Recent[ResolvedSchema] = _Recent()
        self._decoders: _Recent[tuple[str, Decode, ReadRules | None]] = _Recent()

    async def resolve(
        self, topic: str, *, format: str | None, is_key: bool, data: Mapping[str, Any]
    ) -> ResolvedSchema:
        wanted = _Wanted.of(topic, format, is_key, data)
        found = self._resolved.get(wanted)
        if found is None:
            found = await asyncio.to_thread(self._resolve, wanted)
            if wanted.is_fixed:
                self._resolved.put(wanted, found)
        return found

    async def decode(self, topic: str, format: str, data: bytes, *, is_key: bool) -> Any:
        try:
            framed = read_frame(bytes(data), None, is_key)
            key = (topic, framed.id, is_key)
            found = self._decoders.get(key)
            if found is None:
                found = await asyncio.to_thread(self._decoder_of, topic, framed.id or 0, is_key)
                self._decoders.put(key, found)
            schema_type, decode, rules = found
            if schema_type != _TYPES[format]:
                raise SerializationError(f"the record was written as {schema_type}")
            if rules is None:
                return decode(framed.payload, framed.indexes)
            # Rules may ask the registry for keys.
            return await asyncio.to_thread(
                rules.read, topic, framed.payload, framed.indexes, None, bytes(data)
            )
        except (FramingError, KafkaError) as error:
            raise HttpError(
                408, f"A record's key or value is not {format}: {error}", error_code=40801
            ) from None

    def close(self) -> None:
        self._rules.close()
        self._registry.close()

    # In a thread.

    def _decoder_of(
        self, topic: str, schema_id: int, is_key: bool
    ) -> tuple[str, Decode, ReadRules | None]:
        found = self._registry.schema_by_id(schema_id)
        parsed = parse_schema(found.schema, self._registry)
        decoding = json_form_decoding(parsed)
        rules = None
        if found.schema.rule_set:
            rules = ReadRules.of(
                self._registry,
                f"{topic}-{'key' if is_key else 'value'}",
                written=(found, parsed),
                latest=None,
                decoding=decoding,
                plain=decoding,
                tools=self._rules,
                is_key=is_key,
            )
        return found.schema.schema_type, decoding.whole(), rules

    def _resolve(self, wanted: _Wanted) -> ResolvedSchema:
        found = self._find(wanted)
        if wanted.format is not None and found.schema.schema_type != _TYPES[wanted.format]:
            raise _invalid_schema(
                f"schema {found.id} is of type {found.schema.schema_type}, not {wanted.format}"
            )
        key = (wanted.topic, found.id, found.subject, found.version)
        made = self._encoders.get(key)
        if made is None:
            made = self._made(wanted, found)
            self._encoders.put(key, made)
        return made

    def _made(self, wanted: _Wanted, found: RegisteredSchema) -> ResolvedSchema:
        try:
            parsed = parse_schema(found.schema, self._registry)
            encoding = json_form_encoding(parsed)
        except SerializationError as error:
            raise _invalid_schema(str(error)) from None
        encode, head = encoding.whole(), prefix(found.id) + encoding.indexes
        settings = replace(self._settings, is_key=wanted.is_key)
        if found.schema.rule_set or settings.validation_rules != DISABLED:
            rules = WriteRules.of(
                found.subject or "", found.schema, parsed, encoding, self._rules, settings
            )
            if rules is not None:
                encode = partial(_with_rules, rules, wanted.topic)

        def encoded(value: Any) -> bytes:
            try:
                return head + encode(value)
            except KafkaError as error:
                raise bad_request(str(error)) from None

        name = _FORMATS.get(found.schema.schema_type, found.schema.schema_type)
        return ResolvedSchema(EncodedSchema(name, found.id, found.version, found.subject), encoded)

    def _find(self, wanted: _Wanted) -> RegisteredSchema:
        if wanted.schema_id is not None:
            return self._by_id(wanted, wanted.schema_id)
        if wanted.version is not None:
            subject = wanted.subject_without_schema()
            version = wanted.version
            return self._ask(
                f"Error when fetching schema by version. subject = {subject}, version = {version}",
                lambda: self._registry.version(subject, version, deleted=False),
            )
        if wanted.text is not None:
            return self._by_text(wanted, wanted.text)
        subject = wanted.subject_without_schema()
        return self._ask(
            f"Error when fetching latest schema version. subject = {subject}",
            lambda: self._registry.latest(subject),
        )

    def _by_id(self, wanted: _Wanted, schema_id: int) -> RegisteredSchema:
        schema = self._ask(
            f"Error when fetching schema by id. schemaId = {schema_id}",
            lambda: self._registry.schema_by_id(schema_id),
        ).schema
        subject = wanted.subject_of(parse_schema(schema, self._registry).name)
        found = self._ask(
            f"Error when fetching schema version. subject = {subject}, schema = {schema.text}",
            lambda: self._registry.lookup(subject, schema),
        )
        return RegisteredSchema(schema_id, schema, subject, found.version)

    def _by_text(self, wanted: _Wanted, text: str) -> RegisteredSchema:
        format = wanted.format or "AVRO"
        schema_type = _TYPES[format]
        try:
            parsed = languages.NEW[schema_type]().parse(text)
        except SchemaError as error:
            raise _invalid_schema(
                f"Error when parsing raw schema. format = {format}, schema = {text[:1000]}: {error}"
            ) from None
        subject = wanted.subject_of(parsed.name)
        schema = Schema(text, schema_type)
        try:
            found = self._registry.lookup(subject, schema)
        except RegistryError:
            shown = parsed.canonical_text
            self._ask(
                f"Error when registering schema. format = {format}, subject = {subject}, "
                f"schema = {shown}",
                lambda: self._registry.register_full(subject, schema),
            )
            found = self._ask(
                f"Error when fetching schema version. subject = {subject}, schema = {shown}",
                lambda: self._registry.lookup(subject, schema),
            )
        return RegisteredSchema(found.id, schema, subject, found.version)

    @staticmethod
    def _ask(what: str, ask: Callable[[], RegisteredSchema]) -> RegisteredSchema:
        try:
            return ask()
        except RegistryError as error:
            if error.error_code == 40301 or error.status == 403:
                raise HttpError(403, what, error_code=40301) from None
            raise constraint(f"Error serializing message. {what}: {error}", 42207) from None
        except KafkaError as error:
            raise constraint(f"Error serializing message. {what}: {error}", 42207) from None


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a request says about its schema."""

    topic: str
    format: str | None
    is_key: bool
    schema_id: int | None
    version: int | None
    text: str | None
    subject: str | None
    strategy: str | None

    @classmethod
    def of(cls, topic: str, format: str | None, is_key: bool, data: Mapping[str, Any]) -> _Wanted:
        """Raises HttpError."""
        wanted = cls(
            topic,
            format,
            is_key,
            bodies.integer(data, "schema_id"),
            bodies.integer(data, "schema_version"),
            bodies.text(data, "schema"),
            bodies.text(data, "subject"),
            bodies.text(data, _STRATEGY),
        )
        if wanted.strategy is not None:
            if wanted.subject is not None:
                raise bad_request(f"subject and {_STRATEGY} exclude each other.")
            try:
                resolve_strategy(_STRATEGY, wanted.strategy)
            except ConfigError:
                raise bad_request(
                    f"{_STRATEGY} {wanted.strategy[:100]} is none of TOPIC_NAME, RECORD_NAME, "
                    "TOPIC_RECORD_NAME."
                ) from None
        named = sum(each is not None for each in (wanted.schema_id, wanted.version, wanted.text))
        if named > 1:
            raise bad_request("Unsupported argument: only one of schema_id, schema_version, schema")
        return wanted

    @property
    def is_fixed(self) -> bool:
        """Whether it means the same schema tomorrow."""
        return self.schema_id is not None or self.version is not None or self.text is not None

    def subject_of(self, record_name: str | None) -> str:
        if self.subject is not None:
            return self.subject
        try:
            strategy = resolve_strategy(_STRATEGY, self.strategy)
            return strategy(self.topic, self.is_key, record_name)
        except SerializationError as error:
            raise bad_request(str(error)) from None

    def subject_without_schema(self) -> str:
        if self.subject is None and self.strategy not in (None, "TOPIC_NAME"):
            raise bad_request(
                f"Cannot use {_STRATEGY}={self.strategy} without schema_id or schema."
            )
        return self.subject_of(None)


def _with_rules(rules: WriteRules, topic: str, value: Any) -> bytes:
    return rules.write(topic, value, None)


class _Recent(Generic[V]):
    """The most recently used values."""

    def __init__(self) -> None:
        self._values: OrderedDict[Hashable, V] = OrderedDict()

    def get(self, key: Hashable) -> V | None:
        return self._values.get(key)

    def put(self, key: Hashable, value: V) -> None:
        self._values[key] = value
        if len(self._values) > CACHED_MAX:
            self._values.popitem(last=False)


def _client_settings(properties: Mapping[str, str]) -> dict[str, str]:
    """Confluent's proxy gives the client what stands behind `schema.registry.`."""
    settings = {"latest.cache.ttl.sec": str(LATEST_S)}
    start = "schema.registry."
    for name, value in properties.items():
        if name == "schema.registry.url" or name.startswith(f"{start}ssl."):
            settings[name] = value
        elif name.startswith(start):
            settings[name.removeprefix(start)] = value
    return settings


def _invalid_schema(reason: str) -> HttpError:
    return constraint(f"Invalid schema: {reason}", 42205)
