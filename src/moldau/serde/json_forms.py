"""Values of all three formats as they stand in JSON: what console tools and the REST Proxy use.

Avro has its own JSON encoding (`moldau.data.avro.json_values`), Protobuf proto3's, and a value of a
JSON Schema is JSON already. A serializer here takes what `json.loads` gives, a deserializer returns
what `json.dumps` takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from moldau.client.errors import SerializationError
from moldau.data.errors import DataError
from moldau.data.schema_language import ParsedSchema
from moldau.serde.coding import Decoding, Encoding
from moldau.serde.configured import RegistryDeserializer, RegistrySerializer
from moldau.serde.reading import RegistryReader
from moldau.serde.registry_client import SchemaRegistryClient
from moldau.serde.settings import SerdeSettings
from moldau.serde.values import AVRO, JSON, Schema
from moldau.serde.writing import RegistryWriter

__all__ = ["JsonFormDeserializer", "JsonFormSerializer", "json_form_decoding", "json_form_encoding"]


class JsonFormSerializer(RegistrySerializer):
    """Writes values of `schema`, or of the one that the settings name."""

    def __init__(
        self,
        schema_type: str,
        schema: Schema | None = None,
        *,
        registry: SchemaRegistryClient | str | None = None,
        is_key: bool = False,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        def build(registry: SchemaRegistryClient, settings: SerdeSettings) -> RegistryWriter:
            return RegistryWriter(
                registry,
                settings,
                schema=schema,
                schema_type=schema_type,
                make_encoding=partial(json_form_encoding, validate=settings.validate_json),
            )

        super().__init__(build, registry=registry, is_key=is_key, config=config)


class JsonFormDeserializer(RegistryDeserializer):
    """Reads values with the schema that they were written with."""

    def __init__(
        self,
        schema_type: str,
        *,
        registry: SchemaRegistryClient | str | None = None,
        is_key: bool = False,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        def build(registry: SchemaRegistryClient, settings: SerdeSettings) -> RegistryReader:
            return RegistryReader(
                registry,
                settings,
                schema=None,
                schema_type=schema_type,
                make_decoding=partial(json_form_decoding, validate=settings.validate_json),
            )

        super().__init__(build, registry=registry, is_key=is_key, config=config)


def json_form_encoding(schema: ParsedSchema, *, validate: bool = True) -> Encoding:
    if schema.schema_type == AVRO:
        from moldau.data.avro.json_values import from_json
        from moldau.serde.avro import as_avro, avro_encoding

        prepare = _translated(from_json(as_avro(schema).root))
        return avro_encoding(schema, prepare=prepare, logical_types=False)
    if schema.schema_type == JSON:
        from moldau.serde.json_schema import json_encoding

        return json_encoding(schema, validate=validate)
    from moldau.serde.protobuf import protobuf_encoding

    return protobuf_encoding(schema)


def json_form_decoding(
    writer: ParsedSchema, reader: ParsedSchema | None = None, *, validate: bool = True
) -> Decoding:
    if writer.schema_type == AVRO:
        from moldau.data.avro.json_values import to_json
        from moldau.serde.avro import as_avro, avro_decoding

        finish = _translated(to_json(as_avro(reader or writer).root))
        return avro_decoding(
            writer, reader, finish=finish, logical_types=False, named_branches=True
        )
    if writer.schema_type == JSON:
        from moldau.serde.json_schema import json_decoding

        return json_decoding(reader or writer, validate=validate)
    from google.protobuf import json_format

    from moldau.serde.protobuf import protobuf_decoding

    return protobuf_decoding(
        writer,
        finish=partial(json_format.MessageToDict, always_print_fields_with_no_presence=True),
    )


def _translated(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def run(value: Any) -> Any:
        try:
            return convert(value)
        except DataError as error:
            raise SerializationError(str(error)) from None

    return run
