"""Schemas of a registry as parsed ones."""

from __future__ import annotations

from moldau.client.errors import SerializationError
from moldau.data import languages
from moldau.data.schema_language import ParsedSchema, SchemaError
from moldau.serde.registry_client import SchemaRegistryClient
from moldau.serde.values import Schema

__all__ = ["parse_schema"]


def parse_schema(schema: Schema, registry: SchemaRegistryClient) -> ParsedSchema:
    """With the schemas that it refers to, which the registry has."""
    language = languages.STORED.get(schema.schema_type)
    if language is None:
        raise SerializationError(f"schemas of type {schema.schema_type} are not known here")
    references = registry.references_of(schema) if schema.references else ()
    try:
        return language().parse(schema.text, references)
    except SchemaError as error:
        raise SerializationError(f"the schema cannot be used: {error}") from None
