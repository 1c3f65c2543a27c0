"""Media types of API v2, with those of v1 that old tutorials send."""

from __future__ import annotations

from typing import Final

__all__ = ["CONSUMED", "METADATA", "PRODUCED", "RECORDS", "format_of"]

_FORMATS: Final = ("binary", "json", "avro", "jsonschema", "protobuf")
V2: Final = "application/vnd.kafka.v2+json"

METADATA: Final = (
    V2,
    "application/vnd.kafka.v1+json; qs=0.8",
    "application/vnd.kafka+json; qs=0.7",
    "application/json; qs=0.5",
)
#: What metadata requests may send.
CONSUMED: Final = (
    V2,
    *(f"application/vnd.kafka.{each}.v2+json" for each in _FORMATS),
    "application/vnd.kafka.v1+json",
    "application/vnd.kafka+json",
    "application/json",
)
#: What produce requests send. v2 itself without a format is binary, as it was in v1.
PRODUCED: Final = (
    *(f"application/vnd.kafka.{each}.v2+json" for each in _FORMATS),
    V2,
    *(f"application/vnd.kafka.{each}.v1+json" for each in ("binary", "json", "avro")),
    "application/vnd.kafka.v1+json",
)
#: What records are read as; without a preference, the instance's own format.
RECORDS: Final = (
    V2,
    *(f"application/vnd.kafka.{each}.v2+json; qs=0.9" for each in _FORMATS),
    *(f"application/vnd.kafka.{each}.v1+json; qs=0.8" for each in ("binary", "json", "avro")),
    "application/json; qs=0.5",
)


def format_of(media_type: str) -> str | None:
    """BINARY, JSON, ...; None for a type that names no format."""
    word = media_type.removeprefix("application/vnd.kafka.").split(".")[0]
    return word.upper() if word in _FORMATS else None
