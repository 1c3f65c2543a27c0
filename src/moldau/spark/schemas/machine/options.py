"""The options of `format("moldau")` for columns with schemas. Pure.

`valueFormat` and `keyFormat` (avro, json-schema, protobuf) make typed columns; `valueSubject` and
`keySubject` say whose schema they have, by default `TOPIC-value` and `TOPIC-key`. Settings of the
registry's client have Confluent's names, of which `schema.registry.url` is needed. Where a sink
writes a schema's id is `value.schema.id.serializer`, as for Confluent's serializers; sources find
it in either place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from moldau.client.config.registry_keys import REGISTRY_KEYS
from moldau.serde.framing import FramingError, id_in_header
from moldau.spark.topic_options import Given, OptionError

__all__ = ["NAMES", "ColumnSchema", "SchemaOptions", "parse_schema_options"]

_FORMATS: Final = {
    "avro": "AVRO",
    "json-schema": "JSON",
    "jsonschema": "JSON",
    "json_schema": "JSON",
    "protobuf": "PROTOBUF",
}
_OWN: Final = (
    "keyFormat",
    "keySubject",
    "keySchema",
    "valueFormat",
    "valueSubject",
    "valueSchema",
    "deadLetterTopic",
)
NAMES: Final = (*_OWN, *REGISTRY_KEYS)
URL: Final = "schema.registry.url"


@dataclass(frozen=True, slots=True)
class ColumnSchema:
    """What one column's bytes are; `schema` is the text that a sink writes with, if it is given."""

    schema_type: str
    subject: str | None
    schema: str | None = None
    #: Whether a sink writes the schema's id to a header.
    id_in_header: bool = False


@dataclass(frozen=True, slots=True)
class SchemaOptions:
    columns: Mapping[str, ColumnSchema] = field(default_factory=dict)
    registry: Mapping[str, str] = field(default_factory=dict, repr=False)
    dead_letter_topic: str | None = None

    @property
    def ids_in_headers(self) -> bool:
        return any(each.id_in_header for each in self.columns.values())

    def __bool__(self) -> bool:
        return bool(self.columns)


def parse_schema_options(options: Given, topics: Iterable[str]) -> SchemaOptions:
    """Raises OptionError. `topics` are those of the query, if they are known."""
    known = list(topics)
    columns = {}
    for side in ("key", "value"):
        text = options.get(f"{side}Format")
        if text is None:
            for other in ("Subject", "Schema"):
                if options.get(f"{side}{other}") is not None:
                    raise OptionError(f"Option '{side}{other}' needs '{side}Format'.")
            continue
        schema_type = _FORMATS.get(text.strip().lower())
        if schema_type is None:
            raise OptionError(
                f"Option '{side}Format' is '{text}': use avro, json-schema or protobuf."
            )
        subject = options.get(f"{side}Subject")
        if subject is None and len(known) == 1:
            subject = f"{known[0]}-{side}"
        columns[side] = ColumnSchema(
            schema_type,
            subject,
            options.get(f"{side}Schema"),
            _is_in_header(options, f"{side}.schema.id.serializer"),
        )
    registry = {name: value for name in REGISTRY_KEYS if (value := options.get(name)) is not None}
    if columns and not registry.get(URL, "").strip():
        raise OptionError(
            f"Option '{URL}' must be specified for keyFormat and valueFormat, such as "
            "http://127.0.0.1:8081"
        )
    for side, column in columns.items():
        if column.subject is None:
            raise OptionError(
                f"Option '{side}Subject' must be specified: the query has not exactly one topic, "
                "whose name would say it."
            )
    return SchemaOptions(columns, registry, options.get("deadLetterTopic"))


def _is_in_header(options: Given, name: str) -> bool:
    given = options.get(name)
    try:
        return id_in_header(given)
    except FramingError:
        raise OptionError(
            f"Option '{name}' is '{given}': use PrefixSchemaIdSerializer or "
            "HeaderSchemaIdSerializer."
        ) from None
