"""KAFKA and NONE: primitives as Kafka's own serializers write them, and nothing."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from moldau.sql.errors import KsqlException
from moldau.sql.formats import common
from moldau.sql.formats.common import CallableSerde, Row, VoidSerde
from moldau.sql.formats.errors import SerdeError
from moldau.sql.ports import Feature, RowSerde, SchemaRegistry
from moldau.sql.types import BIGINT, BYTES, DOUBLE, INTEGER, STRING, Column, SqlType
from moldau.sql.values.arithmetic import base_name


def _packed(code: str) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    layout = struct.Struct(code)

    def read(data: bytes) -> Any:
        if len(data) != layout.size:
            raise SerdeError(f"Size of data received is not {layout.size}")
        return layout.unpack(data)[0]

    return layout.pack, read


_PRIMITIVES: dict[SqlType, tuple[Callable[[Any], bytes], Callable[[bytes], Any]]] = {
    INTEGER: _packed(">i"),
    BIGINT: _packed(">q"),
    DOUBLE: _packed(">d"),
    STRING: (str.encode, lambda data: data.decode("utf-8", "replace")),
    BYTES: (bytes, bytes),
}


class KafkaFormat:
    name = "KAFKA"

    def __init__(self, properties: Mapping[str, str]) -> None:
        common.check_properties(self.name, properties, frozenset())

    def supports(self, feature: Feature) -> bool:
        return feature == common.UNWRAP_SINGLES

    def supports_key_type(self, sql_type: SqlType) -> bool:
        return sql_type in _PRIMITIVES

    def serde(
        self,
        columns: Sequence[Column],
        features: frozenset[Feature],
        registry: SchemaRegistry | None,
        *,
        is_key: bool,
    ) -> RowSerde:
        common.check_features(features, frozenset({common.UNWRAP_SINGLES}))
        if not columns:
            return VoidSerde()
        if len(columns) != 1:
            shown = ", ".join(map(str, columns))
            raise KsqlException(f"The 'KAFKA' format only supports a single field. Got: [{shown}]")
        primitive = _PRIMITIVES.get(columns[0].type)
        if primitive is None:
            raise KsqlException(
                f"The 'KAFKA' format does not support type '{base_name(columns[0].type)}'"
            )
        return _primitive_serde(*primitive)

    def inheritable_properties(self) -> frozenset[str]:
        return frozenset()

    def schema_text(
        self, columns: Sequence[Column], features: frozenset[Feature]
    ) -> tuple[str, str]:
        raise common.without_registry(self.name)

    def columns_of(
        self, schema_type: str, text: str, features: frozenset[Feature], *, is_key: bool
    ) -> list[tuple[str, SqlType]]:
        raise common.without_registry(self.name)


def _primitive_serde(write: Callable[[Any], bytes], read: Callable[[bytes], Any]) -> CallableSerde:
    def write_row(topic: str, row: Row) -> bytes | None:
        return None if row[0] is None else write(row[0])

    def read_row(topic: str, data: bytes) -> Row:
        try:
            return (read(data),)
        except SerdeError as error:
            raise SerdeError(f"Error deserializing KAFKA message from topic: {topic}") from error

    return CallableSerde(write_row, read_row, 1)


class NoneFormat:
    name = "NONE"

    def __init__(self, properties: Mapping[str, str]) -> None:
        common.check_properties(self.name, properties, frozenset())

    def supports(self, feature: Feature) -> bool:
        return False

    def supports_key_type(self, sql_type: SqlType) -> bool:
        return False

    def serde(
        self,
        columns: Sequence[Column],
        features: frozenset[Feature],
        registry: SchemaRegistry | None,
        *,
        is_key: bool,
    ) -> RowSerde:
        common.check_features(features, frozenset())
        if columns:
            shown = ", ".join(map(str, columns))
            raise KsqlException(
                f"The 'NONE' format can only be used when no columns are defined. Got: [{shown}]"
            )
        return VoidSerde()

    def inheritable_properties(self) -> frozenset[str]:
        return frozenset()

    def schema_text(
        self, columns: Sequence[Column], features: frozenset[Feature]
    ) -> tuple[str, str]:
        raise common.without_registry(self.name)

    def columns_of(
        self, schema_type: str, text: str, features: frozenset[Feature], *, is_key: bool
    ) -> list[tuple[str, SqlType]]:
        raise common.without_registry(self.name)
