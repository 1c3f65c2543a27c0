"""Where and when a change was made: the `source` of Debezium's envelope, and where to continue.

An offset is the place of the binary log after the last whole transaction, and how many records of
the next one are known to be in Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from moldau.connect.connectors.capture.machine.envelope import SNAPSHOT
from moldau.data import builders
from moldau.data.struct import Struct

_SOURCE: Final = builders.struct(
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
        "table": builders.OPTIONAL_STRING,
        "server_id": builders.INT64,
        "gtid": builders.OPTIONAL_STRING,
        "file": builders.STRING,
        "pos": builders.INT64,
        "row": builders.INT32,
        "thread": builders.OPTIONAL_INT64,
        "query": builders.OPTIONAL_STRING,
    },
    name="io.debezium.connector.mysql.Source",
)
MYSQL: Final = "mysql"
MARIADB: Final = "mariadb"
SOURCES: Final = {
    name: _SOURCE.replace(name=f"io.debezium.connector.{name}.Source") for name in (MYSQL, MARIADB)
}


def connector_name(class_name: str | None) -> str:
    """Debezium has a connector for each of the two, and sources name it."""
    return MARIADB if class_name == "io.debezium.connector.mariadb.MariaDbConnector" else MYSQL


@dataclass(frozen=True, slots=True)
class Progress:
    """`events` counts records of the transaction that begins at `file` and `pos`. `begun` says that
    the record of its begin was made, which is not one of these."""

    file: str
    pos: int
    events: int = 0
    ts_s: int = 0
    begun: bool = False

    @classmethod
    def of(cls, offset: Mapping[str, Any]) -> Progress:
        return cls(
            str(offset["file"]),
            int(offset["pos"]),
            int(offset.get("events") or 0),
            int(offset.get("ts_sec") or 0),
            bool(offset.get("begun")),
        )

    def offset(self) -> dict[str, Any]:
        found = {"file": self.file, "pos": self.pos, "events": self.events, "ts_sec": self.ts_s}
        return {**found, "begun": True} if self.begun else found

    @property
    def transaction_id(self) -> str:
        return f"file={self.file},pos={self.pos}"

    def started(self, ts_s: int) -> Progress:
        return replace(self, ts_s=ts_s, begun=True)

    def after_event(self, ts_s: int) -> Progress:
        return replace(self, events=self.events + 1, ts_s=ts_s)

    def committed(self, file: str, pos: int, ts_s: int) -> Progress:
        return Progress(file, pos, 0, ts_s)


def source_of(
    connector: str,
    prefix: str,
    database: str,
    table: str,
    *,
    server_id: int,
    progress: Progress,
    snapshot: str,
) -> Struct:
    ts_us = progress.ts_s * 1_000_000
    values = [
        "3.0", connector, prefix, ts_us // 1000, snapshot, database, None, ts_us, ts_us * 1000,
        table, server_id, None, progress.file, progress.pos, progress.events, None, None,
    ]  # fmt: skip
    return Struct.unchecked(SOURCES[connector], values)
