"""Changes as records, in Debezium's envelope.

A table's records have a key of the columns of its primary key, or of its replica identity, and a
value with the row before and after. A change of the key is a delete and an insert. A delete is
followed by a tombstone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from moldau.connect.connectors.postgres_cdc.machine.pgoutput import Absent, Change, Row, Value
from moldau.connect.connectors.postgres_cdc.machine.types import UNAVAILABLE, ColumnType
from moldau.data import builders
from moldau.data.errors import DataError
from moldau.data.schema import Schema, Type
from moldau.data.struct import Struct

_SNAPSHOT: Final = builders.schema(
    Type.STRING,
    optional=True,
    name="io.debezium.data.Enum",
    version=1,
    parameters={"allowed": "true,first,first_in_data_collection,last_in_data_collection,last,"
                "false,incremental"},
    default="false",
)  # fmt: skip
SOURCE: Final = builders.struct(
    {
        "version": builders.STRING,
        "connector": builders.STRING,
        "name": builders.STRING,
        "ts_ms": builders.INT64,
        "snapshot": _SNAPSHOT,
        "db": builders.STRING,
        "sequence": builders.OPTIONAL_STRING,
        "ts_us": builders.OPTIONAL_INT64,
        "ts_ns": builders.OPTIONAL_INT64,
        "schema": builders.STRING,
        "table": builders.STRING,
        "txId": builders.OPTIONAL_INT64,
        "lsn": builders.OPTIONAL_INT64,
        "xmin": builders.OPTIONAL_INT64,
    },
    name="io.debezium.connector.postgresql.Source",
)
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


@dataclass(frozen=True, slots=True)
class TableColumn:
    name: str
    type: ColumnType | None
    optional: bool
    is_key: bool


@dataclass(frozen=True, slots=True)
class Origin:
    """Where and when a change was made."""

    ts_us: int
    snapshot: str = "false"
    tx_id: int | None = None
    lsn: int | None = None
    sequence: str | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """A record of a change; a value of None is a tombstone."""

    key: Struct | None
    value: Struct | None


class Table:
    """The schemas of a table's records, and how its rows become values."""

    def __init__(
        self, prefix: str, database: str, schema: str, name: str, columns: Sequence[TableColumn]
    ) -> None:
        self.topic = f"{prefix}.{schema}.{name}"
        self._where = (prefix, database, schema, name)
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
                "source": SOURCE,
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
        self, change: Change, origin: Origin, now_us: int, *, tombstones: bool
    ) -> Iterator[Event]:
        new = None if change.new is None else self._struct(change.new)
        old = None if change.old is None else self._struct(change.old, partial=True)
        if change.op == "d":
            yield from self._delete(old, origin, now_us, tombstones)
            return
        if new is None:
            raise DataError(f"a change of {self.topic} has no row")
        if old is not None and self._key(old) != self._key(new):
            yield from self._delete(old, origin, now_us, tombstones)
            yield Event(self._key(new), self._envelope("c", None, new, origin, now_us))
            return
        before = old if change.op == "u" else None
        yield Event(self._key(new), self._envelope(change.op, before, new, origin, now_us))

    def read_event(self, row: Row, origin: Origin, now_us: int) -> Event:
        """A row of the snapshot."""
        struct = self._struct(row)
        return Event(self._key(struct), self._envelope("r", None, struct, origin, now_us))

    def _delete(
        self, old: Struct | None, origin: Origin, now_us: int, tombstones: bool
    ) -> Iterator[Event]:
        key = None if old is None else self._key(old)
        yield Event(key, self._envelope("d", old, None, origin, now_us))
        if tombstones and key is not None:
            yield Event(key, None)

    def _struct(self, row: Row, *, partial: bool = False) -> Struct:
        values = [
            self._value(column, kind, row[place], partial) for place, column, kind in self._columns
        ]
        return Struct.unchecked(self._row_schema, values)

    @staticmethod
    def _value(column: TableColumn, kind: ColumnType, given: Value, partial: bool) -> Any:
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
            raise DataError(f"column {column.name} has {given[:100]!r}: {error}") from None

    def _key(self, row: Struct) -> Struct | None:
        if self.key_schema is None:
            return None
        values = [row.get_without_default(name) for name in self._keys]
        return Struct.unchecked(self.key_schema, values)

    def _envelope(
        self, op: str, before: Struct | None, after: Struct | None, origin: Origin, now_us: int
    ) -> Struct:
        prefix, database, schema, table = self._where
        ts_us = origin.ts_us
        source = Struct.unchecked(
            SOURCE,
            [
                "3.0", "postgresql", prefix, ts_us // 1000, origin.snapshot, database,
                origin.sequence, ts_us, ts_us * 1000, schema, table, origin.tx_id, origin.lsn,
                None,
            ],
        )  # fmt: skip
        values = [
            before, after, source, None, op, now_us // 1000, now_us, now_us * 1000,
        ]  # fmt: skip
        return Struct.unchecked(self.schema, values)


def _optional(schema: Schema, optional: bool) -> Schema:
    return schema.as_optional() if optional else schema
