"""Changes as records, in Debezium's envelope.

A table's records have a key of the columns of its primary key, or of its replica identity, and a
value with the row before and after. A change of the key is a delete and an insert. A delete is
followed by a tombstone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeAlias

from moldau.data import builders
from moldau.data.errors import DataError
from moldau.data.schema import Schema, Type
from moldau.data.struct import Struct

#: The field `snapshot` of every source.
SNAPSHOT: Final = builders.schema(
    Type.STRING,
    optional=True,
    name="io.debezium.data.Enum",
    version=1,
    parameters={"allowed": "true,first,first_in_data_collection,last_in_data_collection,last,"
                "false,incremental"},
    default="false",
)  # fmt: skip
_TRANSACTION: Final = builders.struct(
    {
        "id": builders.STRING,
        "total_order": builders.INT64,
        "data_collection_order": builders.INT64,
    },
    name="event.block",
    version=1,
    optional=True,
)


class Absent(Enum):
    """A value that a database does not send: it was not changed, and is stored apart."""

    UNCHANGED = "unchanged"


#: Values as the database sends them.
Row: TypeAlias = Sequence[Any]
UNAVAILABLE: Final = "__debezium_unavailable_value"


@dataclass(frozen=True, slots=True)
class ColumnType:
    """`convert` makes a value of the schema of what the database sends."""

    schema: Schema
    convert: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class TableColumn:
    name: str
    type: ColumnType | None
    optional: bool
    is_key: bool


@dataclass(frozen=True, slots=True)
class Event:
    """A record of a change; a value of None is a tombstone."""

    key: Struct | None
    value: Struct | None


def is_resumable(offset: Mapping[str, Any]) -> bool:
    """Whether a source can continue at an offset: inside of a snapshot it cannot."""
    return not offset.get("snapshot") or bool(offset.get("last_snapshot_record"))


class Table:
    """The schemas of a table's records, and how its rows become values."""

    def __init__(self, topic: str, columns: Sequence[TableColumn], source: Schema) -> None:
        """`source` is the schema of what says where a change was made."""
        self.topic = topic
        self._columns = [
            (place, column, column.type)
            for place, column in enumerate(columns)
            if column.type is not None
        ]
        fields = [
            (column.name, _optional(kind.schema, column.optional))
            for _, column, kind in self._columns
        ]
        self._row_schema = builders.struct(fields, name=f"{self.topic}.Value", optional=True)
        keys = [(column.name, kind.schema) for _, column, kind in self._columns if column.is_key]
        self._keys = [name for name, _ in keys]
        self.key_schema = builders.struct(keys, name=f"{self.topic}.Key") if keys else None
        self.schema = builders.struct(
            {
                "before": self._row_schema,
                "after": self._row_schema,
                "source": source,
                "transaction": _TRANSACTION,
                "op": builders.STRING,
                "ts_ms": builders.OPTIONAL_INT64,
                "ts_us": builders.OPTIONAL_INT64,
                "ts_ns": builders.OPTIONAL_INT64,
            },
            name=f"{self.topic}.Envelope",
            version=2,
        )

    def events(
        self,
        op: str,
        old_row: Row | None,
        new_row: Row | None,
        source: Struct,
        now_us: int,
        *,
        tombstones: bool,
    ) -> Iterator[Event]:
        """`op` is c, u or d. `old_row` is the row before, or only its key, or None."""
        new = None if new_row is None else self._struct(new_row)
        old = None if old_row is None else self._struct(old_row)
        if op == "d":
            yield from self._delete(old, source, now_us, tombstones)
            return
        if new is None:
            raise DataError(f"a change of {self.topic} has no row")
        if old is not None and self._key(old) != self._key(new):
            yield from self._delete(old, source, now_us, tombstones)
            yield Event(self._key(new), self._envelope("c", None, new, source, now_us))
            return
        before = old if op == "u" else None
        yield Event(self._key(new), self._envelope(op, before, new, source, now_us))

    def read_event(self, row: Row, source: Struct, now_us: int) -> Event:
        """A row of the snapshot."""
        struct = self._struct(row)
        return Event(self._key(struct), self._envelope("r", None, struct, source, now_us))

    def _delete(
        self, old: Struct | None, source: Struct, now_us: int, tombstones: bool
    ) -> Iterator[Event]:
        key = None if old is None else self._key(old)
        yield Event(key, self._envelope("d", old, None, source, now_us))
        if tombstones and key is not None:
            yield Event(key, None)

    def _struct(self, row: Row) -> Struct:
        values = [self._value(column, kind, row[place]) for place, column, kind in self._columns]
        return Struct.unchecked(self._row_schema, values)

    @staticmethod
    def _value(column: TableColumn, kind: ColumnType, given: Any) -> Any:
        if given is None:
            # Of an old row only the key may be known.
            return None
        if isinstance(given, Absent):
            if kind.schema.type is Type.STRING:
                return UNAVAILABLE
            return UNAVAILABLE.encode() if kind.schema.type is Type.BYTES else None
        try:
            return kind.convert(given)
        except ValueError as error:
            raise DataError(f"column {column.name} has {str(given)[:100]!r}: {error}") from None

    def _key(self, row: Struct) -> Struct | None:
        if self.key_schema is None:
            return None
        values = [row.get_without_default(name) for name in self._keys]
        return Struct.unchecked(self.key_schema, values)

    def _envelope(
        self, op: str, before: Struct | None, after: Struct | None, source: Struct, now_us: int
    ) -> Struct:
        values = [before, after, source, None, op, now_us // 1000, now_us, now_us * 1000]
        return Struct.unchecked(self.schema, values)


def _optional(schema: Schema, optional: bool) -> Schema:
    return schema.as_optional() if optional else schema
