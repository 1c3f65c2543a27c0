"""AVRO: records are named io.confluent.ksql.avro_schemas.KsqlDataSourceSchema by default."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from moldau.data.avro.connect_data import AvroData
from moldau.data.avro.encoding import AvroDecoder, AvroEncoder
from moldau.data.avro.language import AvroLanguage, AvroSchema
from moldau.data.errors import DataError
from moldau.data.schema import Schema
from moldau.sql.errors import KsqlException
from moldau.sql.formats import common, connect_schemas, connect_values, registered
from moldau.sql.formats.avro_flat import flat_reader, flat_writer
from moldau.sql.formats.avro_values import reader, writer
from moldau.sql.formats.common import CallableSerde, Row
from moldau.sql.formats.registered import PREFIX_SIZE
from moldau.sql.ports import Feature, RowSerde, SchemaRegistry, references_of
from moldau.sql.types import Column, SqlType

NAMESPACE = "io.confluent.ksql.avro_schemas"
_DEFAULT_NAME = f"{NAMESPACE}.KsqlDataSourceSchema"
_FEATURES = frozenset({common.WRAP_SINGLES, common.UNWRAP_SINGLES, common.SCHEMA_INFERENCE})
_PROPERTIES = frozenset({common.FULL_SCHEMA_NAME, common.SCHEMA_ID})
_MAP_KEYS = "Avro only supports MAPs with STRING keys"


def key_schema_name(source: str) -> str:
    """The name of a key's record: ORDER_ITEMS gives ...OrderItemsKey."""
    return f"{NAMESPACE}.{''.join(part.capitalize() for part in source.split('_'))}Key"


class AvroFormat:
    name = "AVRO"

    def __init__(self, properties: Mapping[str, str]) -> None:
        common.check_properties(self.name, properties, _PROPERTIES)
        self._full_name = properties.get(common.FULL_SCHEMA_NAME, _DEFAULT_NAME).strip()
        schema_id = properties.get(common.SCHEMA_ID)
        self._schema_id = None if schema_id is None else int(schema_id)

    def supports(self, feature: Feature) -> bool:
        return feature in _FEATURES

    def supports_key_type(self, sql_type: SqlType) -> bool:
        return True

    def inheritable_properties(self) -> frozenset[str]:
        return frozenset()

    def _schema(
        self, data: AvroData, columns: Sequence[Column], features: frozenset[Feature]
    ) -> AvroSchema:
        plain = connect_schemas.schema_of(columns, features)
        named = connect_schemas.avro_compatible(plain, self._full_name)
        try:
            return data.avro_schema(named)
        except DataError as error:
            raise KsqlException(f"Schema is not compatible with Avro: {_said(error)}") from error

    def schema_text(
        self, columns: Sequence[Column], features: frozenset[Feature]
    ) -> tuple[str, str]:
        common.check_features(features, _FEATURES)
        return self.name, self._schema(AvroData(), columns, features).canonical_text

    def columns_of(
        self, schema_type: str, text: str, features: frozenset[Feature], *, is_key: bool
    ) -> list[tuple[str, SqlType]]:
        common.check_features(features, _FEATURES)
        schema = AvroData().connect_schema(
            AvroLanguage().parse(text, references_of(text), strict=False)
        )
        if schema is None:
            raise KsqlException("The Avro schema is recursive: it has no columns")
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
        common.check_map_keys(common.row_type(columns), _MAP_KEYS)
        data = AvroData()
        single = common.single_column(columns, features)
        kind = common.row_type(columns) if single is None else single.type
        avro = self._schema(data, columns, features)
        encode: Callable[[Any], bytes]
        if self._schema_id is None:
            to_value, encoder = writer(kind), AvroEncoder(avro.root, logical_types=False)
            encode = lambda value: encoder.encode(to_value(value))  # noqa: E731
        else:
            _, text = registered.registered_schema(registry, self._schema_id)
            avro = AvroLanguage().parse(text, references_of(text), strict=False)
            found = data.connect_schema(avro)
            if found is None:
                raise KsqlException("The Avro schema is recursive: rows cannot be written with it")
            encode = _registered_encoder(data, found, kind)
        ids = registered.IdWriter(
            registry, self.name, avro.canonical_text, is_key=is_key, schema_id=self._schema_id
        )
        schemas = registered.SchemaReader(registry, lambda _, text: _reader(data, text, kind))

        flat = flat_writer(kind, avro.root) if self._schema_id is None else None

        def write(topic: str, row: Row) -> bytes | None:
            value = row if single is None else row[0]
            if value is None:
                return None
            return ids.prefix(topic) + encode(value)

        guarded, prefixes = registered.writing(write), ids.prefixes

        def write_flat(topic: str, row: Row) -> bytes | None:
            try:
                return flat(prefixes.get(topic) or ids.prefix(topic), row)  # type: ignore[misc]
            except Exception:
                # The general way writes it, or says what is wrong.
                return guarded(topic, row)

        general, readers = (
            registered.reading(schemas.read, single=single is not None),
            schemas.readers,
        )

        def read_row(topic: str, data: bytes) -> Row | None:
            try:
                found: Row | None = readers[data[:PREFIX_SIZE]](data[PREFIX_SIZE:])
                return found
            except Exception:
                # A schema that is met first; or the general way says what is wrong.
                return general(topic, data)

        return CallableSerde(
            guarded if flat is None else write_flat,
            read_row if single is None else general,
            len(columns),
        )


def _registered_encoder(data: AvroData, schema: Schema, kind: SqlType) -> Callable[[Any], bytes]:
    to_value = connect_values.to_registered(kind, schema, "Avro")
    return lambda value: data.to_avro(schema, to_value(value))


def _reader(data: AvroData, text: str, kind: SqlType) -> Callable[[bytes], Any]:
    avro = AvroLanguage().parse(text, references_of(text), strict=False)
    # Connect's rules say whether the types fit; most data need not go through its values.
    convert = connect_values.from_connect(kind, data.connect_schema(avro))
    direct = reader(kind, avro.root)
    if direct is None:
        return lambda payload: convert(data.from_avro(avro, payload).value)
    decode, flat = AvroDecoder(avro.root, logical_types=False).decode, flat_reader(kind, avro.root)
    if flat is None:
        return lambda payload: direct(decode(payload))

    def read(payload: bytes) -> Any:
        try:
            return flat(payload)
        except Exception:
            # The general way reads it, or says what is wrong.
            return direct(decode(payload))

    return read


def _said(error: DataError) -> str:
    """The reason alone: Avro's own words come last."""
    text = str(error)
    mark = "is not an Avro schema: "
    return text[text.index(mark) + len(mark) :] if mark in text else text
