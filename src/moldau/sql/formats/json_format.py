"""JSON without schemas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moldau.sql.formats import common, json_reading, json_writing
from moldau.sql.formats.common import CallableSerde, Row
from moldau.sql.formats.errors import Misfit, SerdeError
from moldau.sql.ports import Feature, RowSerde, SchemaRegistry
from moldau.sql.types import Column, SqlType

_FEATURES = frozenset({common.WRAP_SINGLES, common.UNWRAP_SINGLES})
_MAP_KEYS = "JSON only supports MAP types with STRING keys"


class JsonFormat:
    name = "JSON"

    def __init__(self, properties: Mapping[str, str]) -> None:
        common.check_properties(self.name, properties, frozenset())

    def supports(self, feature: Feature) -> bool:
        return feature in _FEATURES

    def supports_key_type(self, sql_type: SqlType) -> bool:
        return True

    def inheritable_properties(self) -> frozenset[str]:
        return frozenset()

    def serde(
        self,
        columns: Sequence[Column],
        features: frozenset[Feature],
        registry: SchemaRegistry | None,
        *,
        is_key: bool,
    ) -> RowSerde:
        common.check_features(features, _FEATURES)
        return json_serde(columns, features, is_key=is_key)

    def schema_text(
        self, columns: Sequence[Column], features: frozenset[Feature]
    ) -> tuple[str, str]:
        raise common.without_registry(self.name)

    def columns_of(
        self, schema_type: str, text: str, features: frozenset[Feature], *, is_key: bool
    ) -> list[tuple[str, SqlType]]:
        raise common.without_registry(self.name)


def json_serde(
    columns: Sequence[Column], features: frozenset[Feature], *, is_key: bool
) -> CallableSerde:
    """JSON texts of rows, or of the only column."""
    row_type = common.row_type(columns)
    common.check_map_keys(row_type, _MAP_KEYS)
    single = common.single_column(columns, features)
    target = "key" if is_key else "value"
    if single is not None:
        write_value = json_writing.value_writer(single.type)
        read_value = json_reading.value_reader(single.type)

        def write_single(topic: str, row: Row) -> bytes | None:
            return None if row[0] is None else write_value(row[0]).encode()

        def read_single(topic: str, data: bytes) -> Row:
            try:
                return (read_value(data),)
            except Misfit as misfit:
                raise _failed(target, topic, misfit) from None

        return CallableSerde(write_single, read_single, 1)

    write_struct = json_writing.struct_writer(row_type)
    read_struct = json_reading.row_reader(row_type)

    def write(topic: str, row: Row) -> bytes:
        return write_struct(row).encode()

    def read(topic: str, data: bytes) -> Row:
        try:
            found = read_struct(data)
        except Misfit as misfit:
            raise _failed(target, topic, misfit) from None
        if found is None:
            raise SerdeError(f"Failed to deserialize {target} from topic: {topic}. It is null")
        return found

    return CallableSerde(write, read, len(columns))


def _failed(target: str, topic: str, misfit: Misfit) -> SerdeError:
    return SerdeError(f"Failed to deserialize {target} from topic: {topic}. {misfit}")
