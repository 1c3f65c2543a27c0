"""Changes as records, in Debezium's envelope.

A table's records have a key of the columns of its primary key, or of its replica identity, and a
value with the row before and after. A change of the key is a delete and an insert, which name each
other's key in a header. A delete is followed by a tombstone.
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
TRANSACTION: Final = builders.struct(
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
NEW_KEY: Final = "__debezium.newkey"
OLD_KEY: Final = "__debezium.oldkey"


@dataclass(frozen=True, slots=True)
class ColumnType:
    """`convert` makes a value of the schema of what the database sends; `of_null` makes one where
    that is null."""

    schema: Schema
    convert: Callable[[Any], Any]
    of_null: Callable[[], Any] | None = None


@dataclass(frozen=True, slots=True)
class TableColumn:
    name: str
    type: ColumnType | None
    optional: bool
    is_key: bool
    in_value: bool = True


@dataclass(frozen=True, slots=True)
class Event:
    """A record of a change; a value of None is a tombstone. `other_key` is a header's name and the
    key that the row had before or has now."""

    key: Struct | None
    value: Struct | None
    other_key: tuple[str, Struct] | None = None


@dataclass(frozen=True, slots=True)
class Emitted:
    """What of a change becomes records. `skipped` are operations, such as `t`."""

    tombstones: bool = True
    skipped: frozenset[str] = frozenset()
    unchanged: bool = True
    """Whether an update that changes no captured column is a record."""


#: What stands for a text or bytes that a database does not send.
UNAVAILABLE: Final = "__debezium_unavailable_value"


def is_resumable(offset: Mapping[str, Any]) -> bool:
    """Whether a source can continue at an offset: inside of a snapshot it cannot."""
    return not offset.get("snapshot") or bool(offset.get("last_snapshot_record"))


class Table:
    """The schemas of a table's records, and how its rows become values."""

    def __init__(
        self,
        topic: str,
        columns: Sequence[TableColumn],
        source: Schema,
        unavailable: str = UNAVAILABLE,
    ) -> None:
        """`source` is the schema of what says where a change was made."""
        self.topic = topic
        self._unavailable = unavailable
        listed = [
            (place, column, column.type)
            for place, column in enumerate(columns)
            if column.type is not None
        ]
        self._columns = [each for each in listed if each[1].in_value]
        self._keys = [each for each in listed if each[1].is_key]
        self._row_schema = builders.struct(
            _fields(self._columns), name=f"{self.topic}.Value", optional=True
        )
        self.key_schema = (
            builders.struct(_fields(self._keys), name=f"{self.topic}.Key") if self._keys else None
        )
        self.schema = builders.struct(
            {
                "before": self._row_schema,
                "after": self._row_schema,
                "source": source,
                "transaction": TRANSACTION,
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
        emitted: Emitted,
    ) -> Iterator[Event]:
        """`op` is c, u, d or t. `old_row` is the row before, or only its key, or None."""
        if op in emitted.skipped:
            return
        if op == "t":
            yield Event(None, self._envelope("t", None, None, source, now_us))
            return
        new = None if new_row is None else self._struct(new_row)
        old = None if old_row is None else self._struct(old_row)
        old_key = None if old_row is None else self._key(old_row)
        if op == "d":
            yield from self._delete(old_key, None, old, source, now_us, emitted)
            return
        if new is None or new_row is None:
            raise DataError(f"a change of {self.topic} has no row")
        if op == "u" and not emitted.unchanged and new == old:
            return
        key = self._key(new_row)
        if old_key is not None and old_key != key and key is not None:
            yield from self._delete(old_key, (NEW_KEY, key), old, source, now_us, emitted)
            value = self._envelope("c", None, new, source, now_us)
            yield Event(key, value, (OLD_KEY, old_key))
            return
        before = old if op == "u" else None
        yield Event(key, self._envelope(op, before, new, source, now_us))

    def read_event(self, row: Row, source: Struct, now_us: int) -> Event:
        """A row of the snapshot."""
        value = self._envelope("r", None, self._struct(row), source, now_us)
        return Event(self._key(row), value)

    def _delete(
        self,
        key: Struct | None,
        other_key: tuple[str, Struct] | None,
        old: Struct | None,
        source: Struct,
        now_us: int,
        emitted: Emitted,
    ) -> Iterator[Event]:
        yield Event(key, self._envelope("d", old, None, source, now_us), other_key)
        if emitted.tombstones and key is not None:
            yield Event(key, None)

    def _struct(self, row: Row) -> Struct:
        values = [self._value(column, kind, row[place]) for place, column, kind in self._columns]
        return Struct.unchecked(self._row_schema, values)

    def _value(self, column: TableColumn, kind: ColumnType, given: Any) -> Any:
        if given is None:
            # Of an old row only the key may be known.
            return None if kind.of_null is None else kind.of_null()
        if isinstance(given, Absent):
            if kind.schema.type is Type.STRING:
                return self._unavailable
            return self._unavailable.encode() if kind.schema.type is Type.BYTES else None
        try:
            return kind.convert(given)
        except ValueError as error:
            raise DataError(f"column {column.name} has {str(given)[:100]!r}: {error}") from None

    def _key(self, row: Row) -> Struct | None:
        if self.key_schema is None:
            return None
        values = [self._value(column, kind, row[place]) for place, column, kind in self._keys]
        return Struct.unchecked(self.key_schema, values)

    def _envelope(
        self, op: str, before: Struct | None, after: Struct | None, source: Struct, now_us: int
    ) -> Struct:
        values = [before, after, source, None, op, now_us // 1000, now_us, now_us * 1000]
        return Struct.unchecked(self.schema, values)


def _fields(
    columns: Sequence[tuple[int, TableColumn, ColumnType]],
) -> list[tuple[str, Schema]]:
    return [
        (column.name, kind.schema.as_optional() if column.optional else kind.schema)
        for _, column, kind in columns
    ]
