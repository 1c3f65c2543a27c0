"""The half of every deserializer that does not depend on the format: id, schema, decoder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from moldau.client.errors import SerializationError
from moldau.data.schema_language import ParsedSchema
from moldau.serde.coding import Decode, Decoding
from moldau.serde.framing import Framed, FramingError, read_frame
from moldau.serde.languages import parse_schema
from moldau.serde.registry_client import SchemaRegistryClient
from moldau.serde.rules.contracts import ReadRules, rule_tools
from moldau.serde.rules.tools import RuleTools
from moldau.serde.settings import SerdeSettings
from moldau.serde.values import RegisteredSchema, Schema

__all__ = ["RegistryReader"]

#: For data of the first schema, to be read as the second if there is one.
MakeDecoding = Callable[[ParsedSchema, ParsedSchema | None], Decoding]

#: Decoders are kept for so many schemas and topics, then made again.
DECODERS_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class _Reading:
    """How the data of one schema is read."""

    decode: Decode
    rules: ReadRules | None


class RegistryReader:
    """Finds the schema that bytes name, and decodes them with it."""

    def __init__(
        self,
        registry: SchemaRegistryClient,
        settings: SerdeSettings,
        *,
        schema: Schema | None,
        schema_type: str,
        make_decoding: MakeDecoding,
    ) -> None:
        """`schema` is the one to read as; without it, it is the writer's."""
        self._tools: RuleTools | None = None
        self._registry = registry
        self._settings = settings.bound_to(registry)
        self._schema_type = schema_type
        self._make_decoding = make_decoding
        self._own = None if schema is None else parse_schema(schema, registry)
        self._readings: dict[tuple[str, int | str | None], _Reading] = {}

    def read(self, topic: str, data: bytes, headers: Any) -> Any:
        try:
            framed = read_frame(data, headers, self._settings.is_key)
        except FramingError as error:
            raise SerializationError(f"topic {topic}: {error}") from None
        named = framed.id if framed.guid is None else framed.guid
        # What is read as the latest version, and rules, may differ from topic to topic.
        key = (topic, named)
        reading = self._readings.get(key)
        if reading is None:
            reading = self._reading_for(topic, framed)
            if len(self._readings) >= DECODERS_MAX:
                self._readings.clear()
            if not (self._settings.use_latest and self._registry.latest_ttl_s is not None):
                self._readings[key] = reading
        if reading.rules is not None:
            return reading.rules.read(topic, framed.payload, framed.indexes, headers, data)
        return reading.decode(framed.payload, framed.indexes)

    def close(self) -> None:
        if self._tools is not None:
            self._tools.close()

    def _reading_for(self, topic: str, framed: Framed) -> _Reading:
        registered = self._writer_of(framed)
        if registered.schema.schema_type != self._schema_type:
            raise SerializationError(
                f"topic {topic}: written with schema {registered.id} of type "
                f"{registered.schema.schema_type}, this deserializer reads {self._schema_type}"
            )
        writer = parse_schema(registered.schema, self._registry)
        reader, latest = self._own, None
        settings = self._settings
        if settings.use_latest:
            subject = settings.strategy(topic, settings.is_key, writer.name)
            latest = self._registry.latest(subject)
            reader = parse_schema(latest.schema, self._registry)
        decoding = self._make_decoding(writer, reader)
        return _Reading(
            decoding.whole(), self._rules(topic, registered, writer, latest, reader, decoding)
        )

    def _rules(
        self,
        topic: str,
        registered: RegisteredSchema,
        writer: ParsedSchema,
        latest: RegisteredSchema | None,
        reader: ParsedSchema | None,
        decoding: Decoding,
    ) -> ReadRules | None:
        settings = self._settings
        if not registered.schema.rule_set and (latest is None or latest.id == registered.id):
            return None
        subject = settings.strategy(topic, settings.is_key, writer.name)
        if self._tools is None:
            self._tools = rule_tools(self._registry, settings)
        return ReadRules.of(
            self._registry,
            subject,
            written=(registered, writer),
            latest=None if latest is None or reader is None else (latest, reader),
            decoding=decoding,
            plain=self._make_decoding(writer, None),
            tools=self._tools,
            is_key=settings.is_key,
        )

    def _writer_of(self, framed: Framed) -> RegisteredSchema:
        if framed.guid is not None:
            return self._registry.schema_by_guid(framed.guid)
        if framed.id is None:
            raise SerializationError("the bytes name no schema")
        return self._registry.schema_by_id(framed.id)
