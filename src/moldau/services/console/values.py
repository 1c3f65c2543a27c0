"""Values: keys and values of records as JSON, with the schemas of the cluster's registry.

The registry's client blocks, so whatever may ask it runs in a thread; a schema that is known is
used on the loop. Without a registry, bytes that begin like Confluent's frame are shown as bytes.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from moldau.client.errors import KafkaError
from moldau.serde.coding import Decode
from moldau.serde.framing import FramingError, prefix, read_frame
from moldau.serde.json_forms import json_form_decoding, json_form_encoding
from moldau.serde.languages import parse_schema
from moldau.serde.registry_client import SchemaRegistryClient
from moldau.services.console.config import ClusterConfig
from moldau.services.console.machine.decoding import (
    Decoded,
    decode_internal,
    decode_plain,
    encode_plain,
)

__all__ = ["Headers", "Values"]

Headers = Iterable[tuple[str, bytes | None]]
#: Schemas and failures that are remembered.
CACHED_MAX: Final = 1000
FAILED_S: Final = 5.0
_KINDS: Final = {"AVRO": "avro", "JSON": "json-schema", "PROTOBUF": "protobuf"}
_WITH_SCHEMA: Final = frozenset({"auto", *_KINDS.values()})


class Values:
    """Of one cluster."""

    def __init__(self, cluster: ClusterConfig) -> None:
        self._url = cluster.service_url("schema.registry.url")
        self._settings = _client_settings(cluster.texts)
        self._registry: SchemaRegistryClient | None = None
        self._decoders: OrderedDict[int, tuple[str, Decode] | str] = OrderedDict()

    @property
    def registry(self) -> SchemaRegistryClient | None:
        if self._registry is None and self._url is not None:
            self._registry = SchemaRegistryClient(config=self._settings)
        return self._registry

    async def decode(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        *,
        key_format: str = "auto",
        value_format: str = "auto",
    ) -> tuple[Decoded, Decoded]:
        internal = decode_internal(topic, key, value)
        if internal is not None and key_format == value_format == "auto":
            return internal
        return (
            await self._part(key, headers, key_format, is_key=True),
            await self._part(value, headers, value_format, is_key=False),
        )

    async def encode(
        self, topic: str, format: str, value: Any, *, is_key: bool, schema_id: int | None = None
    ) -> bytes | None:
        """`avro`, `protobuf` and `json-schema` take the given schema, or the latest of the topic's
        subject. Raises ValueError."""
        if format not in _KINDS.values():
            return encode_plain(format, value)
        if self.registry is None:
            raise ValueError(f"{format} needs a Schema Registry: start with --schema-registry URL")
        if value is None:
            return None
        try:
            return await asyncio.to_thread(self._encoded, topic, format, value, is_key, schema_id)
        except KafkaError as error:
            raise ValueError(str(error)) from None

    def close(self) -> None:
        if self._registry is not None:
            self._registry.close()

    async def _part(
        self, data: bytes | None, headers: Headers, format: str, *, is_key: bool
    ) -> Decoded:
        if data is None or format not in _WITH_SCHEMA:
            return decode_plain(data, format)
        try:
            framed = read_frame(data, headers, is_key)
        except FramingError as error:
            found = decode_plain(data)
            return found if format == "auto" else found._replace(note=f"not {format}: {error}")
        if framed.id is None or self.registry is None:
            return decode_plain(data)
        decoder = self._decoders.get(framed.id)
        if decoder is None:
            decoder = await asyncio.to_thread(self._decoder, framed.id)
            self._decoders[framed.id] = decoder
            if len(self._decoders) > CACHED_MAX:
                self._decoders.popitem(last=False)
            if isinstance(decoder, str):
                # The registry may be back soon, and a search must not wait for it at each record.
                forget = self._decoders.pop
                asyncio.get_running_loop().call_later(FAILED_S, forget, framed.id, None)
        if isinstance(decoder, str):
            return decode_plain(data)._replace(note=decoder)
        kind, decode = decoder
        try:
            return Decoded(kind, decode(framed.payload, framed.indexes), None, framed.id)
        except (KafkaError, ValueError, TypeError, LookupError) as error:
            return decode_plain(data, "bytes")._replace(note=f"schema {framed.id}: {error}")

    # In a thread.

    def _decoder(self, schema_id: int) -> tuple[str, Decode] | str:
        """How to read values of a schema, or why they cannot be read."""
        registry = self.registry
        if registry is None:
            return "no Schema Registry"
        try:
            found = registry.schema_by_id(schema_id)
            decoding = json_form_decoding(parse_schema(found.schema, registry))
            return _KINDS[found.schema.schema_type], decoding.whole()
        except KafkaError as error:
            return f"schema {schema_id}: {error}"

    def _encoded(
        self, topic: str, format: str, value: Any, is_key: bool, schema_id: int | None
    ) -> bytes:
        registry = self.registry
        if registry is None:
            raise ValueError("no Schema Registry")
        if schema_id is None:
            found = registry.latest(f"{topic}-{'key' if is_key else 'value'}")
        else:
            found = registry.schema_by_id(schema_id)
        if _KINDS[found.schema.schema_type] != format:
            kind = _KINDS[found.schema.schema_type]
            raise ValueError(f"schema {found.id} is {kind}, not {format}")
        encoding = json_form_encoding(parse_schema(found.schema, registry))
        return prefix(found.id) + encoding.indexes + encoding.whole()(value)


def _client_settings(texts: Mapping[str, str]) -> dict[str, str]:
    settings = {"latest.cache.ttl.sec": "1"}
    for name, value in texts.items():
        if name == "schema.registry.url" or name.startswith("schema.registry.ssl."):
            settings[name] = value
        elif name.startswith("schema.registry."):
            settings[name.removeprefix("schema.registry.")] = value
    return settings
