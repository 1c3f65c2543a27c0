"""Schemas of a registry as parsed ones, each language imported when it is first used."""

from __future__ import annotations

from moldau.client.errors import SerializationError
from moldau.data.schema_language import ParsedSchema, SchemaError, SchemaLanguage
from moldau.serde.registry_client import SchemaRegistryClient
from moldau.serde.values import AVRO, JSON, PROTOBUF, Schema

__all__ = ["language_of", "parse_schema"]


def language_of(schema_type: str) -> SchemaLanguage:
    if schema_type == AVRO:
        from moldau.data.avro.language import AvroLanguage

        return AvroLanguage()
    if schema_type == JSON:
        from moldau.data.json_schema import JsonSchemaLanguage

        return JsonSchemaLanguage()
    if schema_type == PROTOBUF:
        from moldau.data.protobuf import ProtobufLanguage

        return ProtobufLanguage()
    raise SerializationError(f"schemas of type {schema_type} are not known here")


def parse_schema(schema: Schema, registry: SchemaRegistryClient) -> ParsedSchema:
    """With the schemas that it refers to, which the registry has."""
    references = registry.references_of(schema) if schema.references else ()
    try:
        return language_of(schema.schema_type).parse(schema.text, references)
    except SchemaError as error:
        raise SerializationError(f"the schema cannot be used: {error}") from None
