"""What formats share: their properties, and how single columns are wrapped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from moldau.sql.errors import KsqlException
from moldau.sql.formats.errors import SerdeError
from moldau.sql.ports import Feature
from moldau.sql.types import (
    STRING,
    ArrayType,
    Column,
    MapType,
    SqlType,
    StructType,
)

WRAP_SINGLES = "WRAP_SINGLES"
UNWRAP_SINGLES = "UNWRAP_SINGLES"
SCHEMA_INFERENCE = "SCHEMA_INFERENCE"

FULL_SCHEMA_NAME = "fullSchemaName"
SCHEMA_ID = "schemaId"
SUBJECT_NAME = "subjectName"

Row = tuple[Any, ...]


def check_properties(name: str, properties: Mapping[str, str], supported: frozenset[str]) -> None:
    unknown = sorted(properties.keys() - supported)
    if unknown:
        raise KsqlException(
            f"{name} does not support the following configs: [{', '.join(unknown)}]"
        )
    for key, value in properties.items():
        if not value.strip():
            shown = ", ".join(f"{each}={properties[each]}" for each in properties)
            raise KsqlException(f"{key} cannot be empty. Format configuration: {{{shown}}}")


def without_registry(name: str) -> KsqlException:
    """The error of a format that has no schemas."""
    return KsqlException(f"{name} does not implement Schema Registry support")


def check_features(features: frozenset[Feature], supported: frozenset[Feature]) -> None:
    unsupported = sorted(features - supported)
    if unsupported:
        raise KsqlException(f"Unsupported features: [{', '.join(unsupported)}]")


def single_column(columns: Sequence[Column], features: frozenset[Feature]) -> Column | None:
    """The only column, if it is written without a struct around it."""
    if UNWRAP_SINGLES not in features:
        return None
    if len(columns) != 1:
        raise KsqlException("Unwrapping only valid for single columns")
    return columns[0]


def row_type(columns: Sequence[Column]) -> StructType:
    return StructType(tuple((each.name, each.type) for each in columns))


def check_map_keys(sql_type: SqlType, message: str) -> None:
    """Formats that name the entries of a map by texts take no other keys."""
    match sql_type:
        case MapType():
            if sql_type.key is not STRING:
                raise KsqlException(message)
            check_map_keys(sql_type.value, message)
        case ArrayType():
            check_map_keys(sql_type.item, message)
        case StructType():
            for _, each in sql_type.fields:
                check_map_keys(each, message)


class CallableSerde:
    """A serde of two functions, which are given neither None nor rows of another size."""

    __slots__ = ("_count", "_read", "_write")

    def __init__(
        self,
        write: Callable[[str, Row], bytes | None],
        read: Callable[[str, bytes], Row | None],
        count: int,
    ) -> None:
        self._write = write
        self._read = read
        self._count = count

    def serialize(self, topic: str, value: Row | None) -> bytes | None:
        if value is None:
            return None
        if len(value) != self._count:
            raise SerdeError(
                f"Column count mismatch on serialization. topic: {topic}, expected: "
                f"{self._count}, got: {len(value)}"
            )
        return self._write(topic, value)

    def deserialize(self, topic: str, data: bytes | None) -> Row | None:
        return None if data is None else self._read(topic, data)


class VoidSerde:
    """Neither writes nor reads anything."""

    __slots__ = ()

    def serialize(self, topic: str, value: Row | None) -> bytes | None:
        return None

    def deserialize(self, topic: str, data: bytes | None) -> Row | None:
        return None
