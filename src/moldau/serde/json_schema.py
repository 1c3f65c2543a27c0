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
from moldau.serde.configured import RegistryDeserializer, RegistrySerializer, as_schema
from moldau.serde.reading import Decode, RegistryReader
from moldau.serde.registry_client import SchemaRegistryClient
from moldau.serde.settings import SerdeSettings
from moldau.serde.values import JSON, Schema
from moldau.serde.writing import Encode, RegistryWriter

__all__ = ["JsonSchemaDeserializer", "JsonSchemaSerializer"]

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
        def encoder_of(schema: ParsedSchema) -> tuple[Encode, bytes]:
            return self._encoder_of(schema, validate=settings.validate_json), b""

        return RegistryWriter(
            registry, settings, schema=self._schema, schema_type=JSON, make_encoder=encoder_of
        )

    def _encoder_of(self, schema: ParsedSchema, *, validate: bool) -> Encode:
        check = _check_of(schema) if validate else None
        to_dict = self._to_dict

        def encode(value: Any) -> bytes:
            if to_dict is not None:
                value = to_dict(value)
            elif dataclasses.is_dataclass(value) and not isinstance(value, type):
                value = dataclasses.asdict(value)
            if check is not None:
                check(value)
            try:
                return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
            except (TypeError, ValueError) as error:
                raise SerializationError(f"no JSON: {error}") from error

        return encode


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
        def decoder_of(writer: ParsedSchema, reader: ParsedSchema | None) -> Decode:
            return self._decoder_of(reader or writer, validate=settings.validate_json)

        return RegistryReader(
            registry, settings, schema=self._schema, schema_type=JSON, make_decoder=decoder_of
        )

    def _decoder_of(self, schema: ParsedSchema, *, validate: bool) -> Decode:
        check = _check_of(schema) if validate else None
        from_dict = self._from_dict

        def decode(payload: bytes, indexes: bytes | None) -> Any:
            try:
                value = json.loads(payload)
            except ValueError as error:
                raise SerializationError(f"no JSON: {error}") from error
            if check is not None:
                check(value)
            return value if from_dict is None else from_dict(value)

        return decode


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
