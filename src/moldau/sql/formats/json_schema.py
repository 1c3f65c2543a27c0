"""JSON_SR: JSON behind the id of a JSON Schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from moldau.data.json_schema.connect import (
    JsonSchemaDataConfig,
    schema_from_connect,
    schema_to_connect,
    value_from_connect,
    value_to_connect,
)
from moldau.data.json_schema.schema import JsonSchemaLanguage
from moldau.data.json_text import compact, parse
from moldau.data.schema import Schema
from moldau.sql.formats import common, connect_schemas, connect_values, registered
from moldau.sql.formats.common import CallableSerde, Row
from moldau.sql.formats.json_writing import struct_writer, value_writer
from moldau.sql.ports import Feature, RowSerde, SchemaRegistry, references_of
from moldau.sql.types import ArrayType, Column, MapType, SqlType, StructType

_FEATURES = frozenset({common.WRAP_SINGLES, common.UNWRAP_SINGLES, common.SCHEMA_INFERENCE})
_PROPERTIES = frozenset({common.FULL_SCHEMA_NAME, common.SCHEMA_ID})
_CONFIG = JsonSchemaDataConfig(decimal_format="NUMERIC")
_TYPE = "JSON"
_MAP_KEYS = "JSON only supports MAP types with STRING keys"


class JsonSchemaFormat:
    name = "JSON_SR"

    def __init__(self, properties: Mapping[str, str]) -> None:
        common.check_properties(self.name, properties, _PROPERTIES)
        schema_id = properties.get(common.SCHEMA_ID)
        self._schema_id = None if schema_id is None else int(schema_id)

    def supports(self, feature: Feature) -> bool:
        return feature in _FEATURES

    def supports_key_type(self, sql_type: SqlType) -> bool:
        return True

    def inheritable_properties(self) -> frozenset[str]:
        return frozenset()

    def schema_text(
        self, columns: Sequence[Column], features: frozenset[Feature]
    ) -> tuple[str, str]:
        common.check_features(features, _FEATURES)
        schema = connect_schemas.schema_of(columns, features)
        return _TYPE, schema_from_connect(schema, _CONFIG).canonical_text

    def columns_of(
        self, schema_type: str, text: str, features: frozenset[Feature], *, is_key: bool
    ) -> list[tuple[str, SqlType]]:
        common.check_features(features, _FEATURES)
        schema = schema_to_connect(JsonSchemaLanguage().parse(text, references_of(text)), _CONFIG)
        return connect_schemas.columns_of(
            schema, features, is_key=is_key, keep_case=self._schema_id is not None
        )

    def serde(
        self,
        columns: Sequence[Column],
        features: frozenset[Feature],
        registry: SchemaRegistry | None,
        *,
        is_key: bool,
    ) -> RowSerde:
        common.check_features(features, _FEATURES)
        single = common.single_column(columns, features)
        kind = common.row_type(columns) if single is None else single.type
        common.check_map_keys(kind, _MAP_KEYS)
        encode, text = self._writer(columns, features, registry, kind)
        ids = registered.IdWriter(registry, _TYPE, text, is_key=is_key, schema_id=self._schema_id)
        reader = registered.SchemaReader(registry, lambda _, text: _reader(text, kind))

        def write(topic: str, row: Row) -> bytes | None:
            value = row if single is None else row[0]
            return None if value is None else ids.prefix(topic) + encode(value)

        return CallableSerde(
            registered.writing(write),
            registered.reading(reader.read, single=single is not None),
            len(columns),
        )

    def _writer(
        self,
        columns: Sequence[Column],
        features: frozenset[Feature],
        registry: SchemaRegistry | None,
        kind: SqlType,
    ) -> tuple[Callable[[Any], bytes], str]:
        """How values are written, and the text of their schema."""
        if self._schema_id is not None:
            _, text = registered.registered_schema(registry, self._schema_id)
            named = schema_to_connect(
                JsonSchemaLanguage().parse(text, references_of(text)), _CONFIG
            )
            return _through_connect(named, connect_values.to_registered(kind, named, "JSON")), text
        schema = connect_schemas.schema_of(columns, features)
        text = schema_from_connect(schema, _CONFIG).canonical_text
        if _has_map(kind):
            # Maps are arrays of entries here, since their keys may be null in the schema.
            return _through_connect(schema, connect_values.to_connect(kind, schema)), text
        show = struct_writer(kind) if isinstance(kind, StructType) else value_writer(kind)
        return lambda value: show(value).encode(), text


def _through_connect(schema: Schema, to_value: Callable[[Any], Any]) -> Callable[[Any], bytes]:
    return lambda value: compact(value_from_connect(schema, to_value(value), _CONFIG)).encode()


def _has_map(kind: SqlType) -> bool:
    match kind:
        case MapType():
            return True
        case ArrayType():
            return _has_map(kind.item)
        case StructType():
            return any(_has_map(each) for _, each in kind.fields)
        case _:
            return False


def _reader(text: str, kind: SqlType) -> Callable[[bytes], Any]:
    schema = schema_to_connect(JsonSchemaLanguage().parse(text, references_of(text)), _CONFIG)
    convert = connect_values.from_connect(kind, schema)
    return lambda payload: convert(value_to_connect(schema, parse(payload, decimals=True)))
