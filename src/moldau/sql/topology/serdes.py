"""Serdes of rows and keys for streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moldau.sql.errors import KsqlException
from moldau.sql.planning.formats import Formats
from moldau.sql.ports import RowSerde, SchemaRegistry
from moldau.sql.sources.data_source import FormatInfo, KeyFormat
from moldau.sql.sources.schema import LogicalSchema
from moldau.sql.types import ArrayType, Column, MapType, SqlType, StructType
from moldau.streams.errors import StreamsError
from moldau.streams.records import MAX_TIMESTAMP
from moldau.streams.serdes import Serde, SessionWindowedSerde, TimeWindowedSerde

_KEPT_MAX = 1000


class Serdes:
    """Makes serdes for the formats of a plan."""

    def __init__(
        self,
        formats: Formats,
        registry: SchemaRegistry | None,
        application_id: str | None = None,
    ) -> None:
        """With `application_id`, the serdes of that application's stores and internal topics."""
        self._application_id = application_id
        self._formats = formats
        self._registry = registry
        #: Making a serde compiles code, and a statement asks for the same ones several times.
        self._made: dict[Any, RowSerde] = {}

    def plain_key(self, key_format: KeyFormat, schema: LogicalSchema) -> RowSerde:
        """The serde of key columns, without a window."""
        for column in schema.key:
            if _contains_map(column.type):
                raise KsqlException(
                    "Map keys, including types that contain maps, are not supported as they may "
                    "lead to unexpected behavior due to inconsistent serialization. Key column "
                    f"name: `{column.name}`. Column type: {column.type}. See "
                    "https://github.com/confluentinc/ksql/issues/6621 for more."
                )
        return self._serde(key_format.format, schema.key, key_format.features, is_key=True)

    def _serde(
        self,
        info: FormatInfo,
        columns: Sequence[Column],
        features: frozenset[str],
        *,
        is_key: bool,
    ) -> RowSerde:
        wanted = info, tuple(columns), features, is_key
        made = self._made.get(wanted)
        if made is not None:
            return made
        found = self._formats.of(info)
        try:
            made = found.serde(columns, features, self._registry, is_key=is_key)
            if self._application_id is not None and found.supports("SCHEMA_INFERENCE"):
                made = _InternalSerde(made, self._application_id)
            if len(self._made) >= _KEPT_MAX:
                self._made.clear()
            self._made[wanted] = made
            return made
        except KsqlException as error:
            if "format does not support schema" in str(error):
                raise
            shown = ", ".join(str(each) for each in columns)
            raise KsqlException(
                f"{'Key' if is_key else 'Value'} format does not support schema.\n"
                f"format: {found.name}\n"
                f"schema: Persistence{{columns=[{shown}], "
                f"features=[{', '.join(sorted(features))}]}}\n"
                f"reason: {error}"
            ) from error

    def key(self, key_format: KeyFormat, schema: LogicalSchema) -> Serde[Any]:
        inner = self.plain_key(key_format, schema)
        window = key_format.window
        if window is None:
            return inner
        if window.kind == "SESSION":
            return SessionWindowedSerde(inner)
        if window.size_ms is None:
            raise KsqlException(f"{window.kind} windows need a size")
        return TimeWindowedSerde(inner, min(window.size_ms, MAX_TIMESTAMP))

    def value(
        self, info: FormatInfo, schema: LogicalSchema, features: frozenset[str] = frozenset()
    ) -> RowSerde:
        return self._serde(info, schema.value, features, is_key=False)


class _InternalSerde:
    """Registers the schemas of a store under the name of its changelog topic.

    Stores give their own name, which queries have in common; internal topics start with the
    application's id.
    """

    __slots__ = ("_application_id", "_deserialize", "_serialize", "_topics")

    def __init__(self, inner: RowSerde, application_id: str) -> None:
        self._serialize = inner.serialize
        self._deserialize = inner.deserialize
        self._application_id = application_id
        #: A query has few stores and internal topics, and each row asks for the name of one.
        self._topics: dict[str, str] = {}

    def _topic(self, name: str) -> str:
        found = name
        if not name.startswith(self._application_id):
            found = f"{self._application_id}-{name}-changelog"
        self._topics[name] = found
        return found

    def serialize(self, topic: str, value: tuple[Any, ...] | None) -> bytes | None:
        return self._serialize(self._topics.get(topic) or self._topic(topic), value)

    def deserialize(self, topic: str, data: bytes | None) -> tuple[Any, ...] | None:
        return self._deserialize(self._topics.get(topic) or self._topic(topic), data)


class SinkSerde:
    """The serde of a sink: a row that cannot be written fails the query in Kafka Streams' words."""

    __slots__ = ("_serialize", "deserialize")

    def __init__(self, inner: RowSerde) -> None:
        self._serialize = inner.serialize
        self.deserialize = inner.deserialize

    def serialize(self, topic: str, value: tuple[Any, ...] | None) -> bytes | None:
        try:
            return self._serialize(topic, value)
        except Exception as error:
            raise StreamsError(
                f"Unable to serialize record. ProducerRecord(topic=[{topic}]): {error}"
            ) from error


def _contains_map(kind: SqlType) -> bool:
    match kind:
        case MapType():
            return True
        case ArrayType(item):
            return _contains_map(item)
        case StructType(fields):
            return any(_contains_map(each) for _, each in fields)
    return False
