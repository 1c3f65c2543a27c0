"""The languages of schemas, each loaded when the first schema of it is parsed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from moldau.data.schema_language import SchemaLanguage

__all__ = ["LANGUAGES"]


@cache
def _avro() -> SchemaLanguage:
    from moldau.data.avro import AVRO

    return AVRO


@cache
def _json() -> SchemaLanguage:
    from moldau.data.json_schema import JSON_SCHEMA

    return JSON_SCHEMA


@cache
def _protobuf() -> SchemaLanguage:
    from moldau.data.protobuf import PROTOBUF

    return PROTOBUF


#: In the order in which Confluent's registry lists them.
LANGUAGES: Mapping[str, Callable[[], SchemaLanguage]] = {
    "JSON": _json,
    "PROTOBUF": _protobuf,
    "AVRO": _avro,
}
