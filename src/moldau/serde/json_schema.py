"""JSON with a Schema Registry: the payload is JSON text, and values are checked by their schema."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any

from moldau.client.errors import SerializationError
from moldau.data.json_schema import JsonSchema
from moldau.data.json_schema.validation import JsonSchemaValidator
from moldau.data.schema_language import ParsedSchema, SchemaError
from moldau.serde.coding import Decoding, Encoding
from moldau.serde.configured import RegistryDeserializer, RegistrySerializer, as_schema
from moldau.serde.reading import RegistryReader
from moldau.serde.registry_client import SchemaRegistryClient
from moldau.serde.settings import SerdeSettings
from moldau.serde.values import JSON, Schema
from moldau.serde.writing import RegistryWriter

__all__ = ["JsonSchemaDeserializer", "JsonSchemaSerializer", "json_decoding", "json_encoding"]

#: How many problems of a value a message names.
PROBLEMS_MAX = 5


class JsonSchemaSerializer(RegistrySerializer):
    """Writes what `json.dumps` writes, and dataclasses; `json.fail.invalid.schema=false` writes
    without checking."""

    def __init__(
        self,
        schema: str | Schema | None = None,
        *,
        registry: SchemaRegistryClient | str | None = None,
        to_dict: Callable[[Any], Any] | None = None,
        is_key: bool = False,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        """Without a schema, `use.latest.version` or `use.schema.id` says which."""
        self._schema = as_schema(schema, JSON)
        self._to_dict = to_dict
        super().__init__(self._build, registry=registry, is_key=is_key, config=config)

    def _build(self, registry: SchemaRegistryClient, settings: SerdeSettings) -> RegistryWriter:
        prepare = self._to_dict or _plain

        def encoding_of(schema: ParsedSchema) -> Encoding:
            return json_encoding(schema, validate=settings.validate_json, prepare=prepare)

        return RegistryWriter(
            registry, settings, schema=self._schema, schema_type=JSON, make_encoding=encoding_of
        )


class JsonSchemaDeserializer(RegistryDeserializer):
    """Reads what `json.loads` gives, or what `from_dict` makes of it. Values are checked by the
    deserializer's own schema if it has one, else by the writer's."""

    def __init__(
        self,
        schema: str | Schema | None = None,
        *,
        registry: SchemaRegistryClient | str | None = None,
        from_dict: Callable[[Any], Any] | None = None,
        is_key: bool = False,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self._schema = as_schema(schema, JSON)
        self._from_dict = from_dict
        super().__init__(self._build, registry=registry, is_key=is_key, config=config)

    def _build(self, registry: SchemaRegistryClient, settings: SerdeSettings) -> RegistryReader:
        def decoding_of(writer: ParsedSchema, reader: ParsedSchema | None) -> Decoding:
            return json_decoding(
                reader or writer, validate=settings.validate_json, finish=self._from_dict
            )

        return RegistryReader(
            registry, settings, schema=self._schema, schema_type=JSON, make_decoding=decoding_of
        )


def json_encoding(
    schema: ParsedSchema, *, validate: bool, prepare: Callable[[Any], Any] | None = None
) -> Encoding:
    check = _check_of(schema) if validate else None

    def encode(data: Any) -> bytes:
        if check is not None:
            check(data)
        try:
            return json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise SerializationError(f"no JSON: {error}") from error

    return Encoding(encode, prepare)


def json_decoding(
    schema: ParsedSchema, *, validate: bool, finish: Callable[[Any], Any] | None = None
) -> Decoding:
    check = _check_of(schema) if validate else None

    def decode(payload: bytes, indexes: bytes | None) -> Any:
        try:
            data = json.loads(payload)
        except (ValueError, RecursionError) as error:
            raise SerializationError(f"no JSON: {error}") from error
        if check is not None:
            check(data)
        return data

    return Decoding(decode, finish)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return value


def _check_of(schema: ParsedSchema) -> Callable[[Any], None]:
    if not isinstance(schema, JsonSchema):
        raise SerializationError(f"a schema of type {schema.schema_type} is no JSON Schema")
    try:
        validator = JsonSchemaValidator(schema)
    except SchemaError as error:
        raise SerializationError(str(error)) from None

    def check(value: Any) -> None:
        if validator.is_valid(value):
            return
        problems = validator.problems(value)
        shown = "; ".join(map(str, problems[:PROBLEMS_MAX]))
        more = len(problems) - PROBLEMS_MAX
        left_out = f"; and {more} more" if more > 0 else ""
        raise SerializationError(f"the value does not fit its schema: {shown}{left_out}")

    return check
