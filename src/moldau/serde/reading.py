"""The half of every deserializer that does not depend on the format: id, schema, decoder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from moldau.client.errors import SerializationError
from moldau.data.schema_language import ParsedSchema
from moldau.serde.coding import Decode, Decoding
from moldau.serde.framing import Framed, FramingError, read_frame
from moldau.serde.languages import parse_schema
from moldau.serde.registry_client import SchemaRegistryClient
from moldau.serde.settings import SerdeSettings
from moldau.serde.values import RegisteredSchema, Schema

__all__ = ["RegistryReader"]

#: For data of the first schema, to be read as the second if there is one.
MakeDecoding = Callable[[ParsedSchema, ParsedSchema | None], Decoding]

#: Decoders are kept for so many schemas and topics, then made again.
DECODERS_MAX: Final = 10_000


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
        self._registry = registry
        self._settings = settings
        self._schema_type = schema_type
        self._make_decoding = make_decoding
        self._own = None if schema is None else parse_schema(schema, registry)
        self._decoders: dict[tuple[str, int | str | None], Decode] = {}

    def read(self, topic: str, data: bytes, headers: Any) -> Any:
        try:
            framed = read_frame(data, headers, self._settings.is_key)
        except FramingError as error:
            raise SerializationError(f"topic {topic}: {error}") from None
        named = framed.id if framed.guid is None else framed.guid
        # What is read as the latest version may differ from topic to topic.
        key = (topic if self._settings.use_latest else "", named)
        decode = self._decoders.get(key)
        if decode is None:
            decode = self._decoder_for(topic, framed)
            if len(self._decoders) >= DECODERS_MAX:
                self._decoders.clear()
            if not (self._settings.use_latest and self._registry.latest_ttl_s is not None):
                self._decoders[key] = decode
        return decode(framed.payload, framed.indexes)

    def _decoder_for(self, topic: str, framed: Framed) -> Decode:
        registered = self._writer_of(framed)
        if registered.schema.schema_type != self._schema_type:
            raise SerializationError(
                f"topic {topic}: written with schema {registered.id} of type "
                f"{registered.schema.schema_type}, this deserializer reads {self._schema_type}"
            )
        writer = parse_schema(registered.schema, self._registry)
        reader = self._own
        if self._settings.use_latest:
            subject = self._settings.strategy(topic, self._settings.is_key, writer.name)
            reader = parse_schema(self._registry.latest(subject).schema, self._registry)
        return self._make_decoding(writer, reader).whole()

    def _writer_of(self, framed: Framed) -> RegisteredSchema:
        if framed.guid is not None:
            return self._registry.schema_by_guid(framed.guid)
        if framed.id is None:
            raise SerializationError("the bytes name no schema")
        return self._registry.schema_by_id(framed.id)
