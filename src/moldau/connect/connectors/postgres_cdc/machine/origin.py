"""Where and when a change of PostgreSQL was made: the `source` of Debezium's envelope."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from moldau.connect.connectors.capture.machine.envelope import SNAPSHOT
from moldau.data import builders
from moldau.data.struct import Struct

SOURCE: Final = builders.struct(
    {
        "version": builders.STRING,
        "connector": builders.STRING,
        "name": builders.STRING,
        "ts_ms": builders.INT64,
        "snapshot": SNAPSHOT,
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


@dataclass(frozen=True, slots=True)
class Place:
    """A table."""

    prefix: str
    database: str
    schema: str
    table: str


def source_of(
    place: Place,
    ts_us: int,
    *,
    snapshot: str = "false",
    tx_id: int | None = None,
    lsn: int | None = None,
    commit_lsn: int | None = None,
) -> Struct:
    """`sequence` orders changes: the end of the last transaction before, and the change's place."""
    sequence = ",".join("null" if each is None else f'"{each}"' for each in (commit_lsn, lsn))
    values = [
        "3.0", "postgresql", place.prefix, ts_us // 1000, snapshot, place.database,
        f"[{sequence}]", ts_us, ts_us * 1000, place.schema, place.table, tx_id, lsn, None,
    ]  # fmt: skip
    return Struct.unchecked(SOURCE, values)
