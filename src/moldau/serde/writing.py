"""The half of every serializer that does not depend on the format: schema, id, frame.

Decided here: which registered schema a topic's records are written with. The choice is remembered
per topic, so that from the second record on a serializer costs two look-ups and the encoding.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from moldau.client.errors import SerializationError
from moldau.data.schema_language import ParsedSchema
from moldau.serde import framing
from moldau.serde.coding import Encode, Encoding
from moldau.serde.languages import parse_schema
from moldau.serde.registry_client import SchemaRegistryClient
from moldau.serde.rules.contracts import DISABLED, WriteRules, rule_tools
from moldau.serde.rules.tools import RuleTools
from moldau.serde.settings import SerdeSettings
from moldau.serde.values import RegisteredSchema, Schema

__all__ = ["RegistryWriter"]

MakeEncoding = Callable[[ParsedSchema], Encoding]


@dataclass(frozen=True, slots=True)
class _Chosen:
    """How one topic's records are written."""

    encode: Encode
    prefix: bytes
    header: bytes | None
    until_s: float | None
    rules: WriteRules | None


class RegistryWriter:
    """Encodes, and says in front or in a header which schema it was."""

    def __init__(
        self,
        registry: SchemaRegistryClient,
        settings: SerdeSettings,
        *,
        schema: Schema | None,
        schema_type: str,
        make_encoding: MakeEncoding,
        record_name: str | None = None,
    ) -> None:
        """`record_name` is the message that is meant, where a schema has several."""
        self._tools: RuleTools | None = None
        self._registry = registry
        self._settings = settings.bound_to(registry)
        self._schema = schema
        self._schema_type = schema_type
        self._make_encoding = make_encoding
        self._header_name = framing.header_name(settings.is_key)
        self._own = None if schema is None else parse_schema(schema, registry)
        self._record_name = record_name or (None if self._own is None else self._own.name)
        self._by_topic: dict[str, _Chosen] = {}

    def write(self, topic: str, data: Any, headers: Any) -> bytes:
        chosen = self._by_topic.get(topic)
        if chosen is None or (chosen.until_s is not None and time.monotonic() >= chosen.until_s):
            chosen = self._by_topic[topic] = self._choose(topic)
        if chosen.rules is not None:
            encoded = chosen.rules.write(topic, data, headers)
        elif chosen.header is None:
            return chosen.prefix + chosen.encode(data)
        else:
            encoded = chosen.encode(data)
        if chosen.header is None:
            return chosen.prefix + encoded
        if headers is None:
            raise SerializationError(
                "the id of the schema goes into a header, but the record has no list of headers"
            )
        headers.append((self._header_name, chosen.header))
        return encoded

    def _choose(self, topic: str) -> _Chosen:
        registered = self._registered(topic)
        if registered.schema.schema_type != self._schema_type:
            raise SerializationError(
                f"topic {topic}: schema {registered.id} is of type "
                f"{registered.schema.schema_type}, this serializer writes {self._schema_type}"
            )
        parsed = self._own
        if parsed is None or self._schema is None or registered.schema.text != self._schema.text:
            parsed = parse_schema(registered.schema, self._registry)
        settings = self._settings
        if settings.use_latest and settings.latest_strict and self._own is not None:
            self._check_latest(topic, parsed, registered)
        encoding = self._make_encoding(parsed)
        indexes = encoding.indexes
        header = None
        if settings.id_in_header:
            if registered.guid is None:
                raise SerializationError(
                    f"the registry does not say the guid of schema {registered.id}",
                    advice="use PrefixSchemaIdSerializer with this registry",
                )
            header = framing.header_value(registered.guid, indexes)
        lives_s = self._registry.latest_ttl_s if settings.use_latest else None
        return _Chosen(
            encoding.whole(),
            framing.prefix(registered.id) + indexes,
            header,
            None if lives_s is None else time.monotonic() + lives_s,
            self._rules(topic, registered, parsed, encoding),
        )

    def _rules(
        self, topic: str, registered: RegisteredSchema, parsed: ParsedSchema, encoding: Encoding
    ) -> WriteRules | None:
        settings = self._settings
        if not registered.schema.rule_set and settings.validation_rules == DISABLED:
            return None
        subject = registered.subject or settings.strategy(topic, settings.is_key, parsed.name)
        if self._tools is None:
            self._tools = rule_tools(self._registry, settings)
        return WriteRules.of(subject, registered.schema, parsed, encoding, self._tools, settings)

    def close(self) -> None:
        if self._tools is not None:
            self._tools.close()

    def _registered(self, topic: str) -> RegisteredSchema:
        settings, registry = self._settings, self._registry
        if settings.schema_id is not None:
            return registry.schema_by_id(settings.schema_id)
        subject = settings.strategy(topic, settings.is_key, self._record_name)
        if settings.use_latest:
            return registry.latest(subject)
        if self._schema is None:
            raise SerializationError(
                f"there is no schema to write to topic {topic} with",
                advice="give the serializer a schema, or set use.latest.version or use.schema.id",
            )
        if settings.auto_register:
            found = registry.register_full(subject, self._schema, normalize=settings.normalize)
            if found.guid is None and settings.id_in_header:
                found = registry.lookup(subject, self._schema, normalize=settings.normalize)
        else:
            found = registry.lookup(subject, self._schema, normalize=settings.normalize)
        # Written with the schema as it was given: the registry's may be in another form. Its rules
        # and metadata count, which may be more than what was given.
        schema = self._schema
        if found.schema is not schema and (found.schema.rule_set or found.schema.metadata):
            schema = replace(schema, metadata=found.schema.metadata, rule_set=found.schema.rule_set)
        return RegisteredSchema(found.id, schema, subject, found.version, found.guid)

    def _check_latest(self, topic: str, latest: ParsedSchema, registered: RegisteredSchema) -> None:
        own = self._own
        problems = latest.incompatibilities(own) if own is not None else []
        if problems:
            raise SerializationError(
                f"topic {topic}: the latest schema, {registered.id}, cannot read what the "
                f"serializer's own schema writes: {problems[0]}",
                advice="set latest.compatibility.strict=false to write with it all the same",
            )
