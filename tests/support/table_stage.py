"""Tables without Spark: sinks are called as Spark calls them, and read back by other readers.

A table is written through its sink only and read through its kind's own library only, so neither
can hide a fault of the other.
"""

from __future__ import annotations

import contextlib
import sqlite3
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from moldau.spark.tables.jdbc.machine.address import parse_address
from moldau.spark.tables.machine.batches import Attempt
from moldau.spark.tables.machine.options import check_options
from moldau.spark.tables.sinks import Staged

KINDS = ("delta", "iceberg", "postgresql", "mariadb", "sqlite")


class Table:
    """One table of one kind, written through its sink and read by the kind's own library."""

    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])

    def __init__(self, kind: str, **address: Any) -> None:
        self.kind = kind
        self.address = address
        self.query_id = str(uuid.uuid4())

    def sink(self, schema: Any = None, *, overwrite: bool = False, **options: Any) -> Any:
        """A sink that is ready for tasks, as Spark makes one before each batch."""
        schema = schema or self.schema
        kind = self.kind if self.kind in ("delta", "iceberg") else "jdbc"
        checked = check_options(kind, "sink", {**self.address, **options})
        made = _make(self.kind, checked, schema, overwrite=overwrite)
        made.prepare()
        return made

    def stage(self, sink: Any, batch_id: int, *parts: Sequence[tuple[Any, ...]]) -> list[Staged]:
        """What the tasks of a batch do, one per part; the batch is not committed."""
        return [
            sink.write(iter([self._batch(sink, rows)]), self.attempt(batch_id, partition))
            for partition, rows in enumerate(parts)
        ]

    def _batch(self, sink: Any, rows: Sequence[tuple[Any, ...]]) -> Any:
        schema = sink._frame
        columns = zip(*rows, strict=True) if rows else [[] for _ in schema]
        arrays = [pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def attempt(self, batch_id: int, partition: int) -> Attempt:
        return Attempt(self.query_id, batch_id, partition, str(uuid.uuid4()))

    def write(self, batch_id: int, *parts: Sequence[tuple[Any, ...]], **options: Any) -> bool:
        """A whole batch; whether it was new to the table."""
        sink = self.sink(**options)
        return bool(sink.commit(self.stage(sink, batch_id, *parts), batch_id))

    def rows(self) -> list[dict[str, Any]]:
        found = _read(self.kind, self.address)
        return sorted(found, key=lambda row: str(row.get("id")))

    def ids(self) -> list[Any]:
        return [row["id"] for row in self.rows()]

    def staged_things(self) -> list[str]:
        """Everything that a sink keeps outside of the table itself: empty when it is tidy."""
        return _leftovers(self.kind, self.address)


def _make(kind: str, options: Any, schema: Any, *, overwrite: bool) -> Any:
    if kind == "delta":
        from moldau.spark.tables.delta_sink import DeltaSink

        return DeltaSink(options, schema, overwrite=overwrite)
    if kind == "iceberg":
        from moldau.spark.tables.iceberg_sink import IcebergSink

        return IcebergSink(options, schema, overwrite=overwrite)
    if kind == "postgresql":
        from moldau.spark.tables.jdbc.postgres_sink import PostgresSink

        return PostgresSink(options, parse_address(options.address), schema, overwrite=overwrite)
    if kind == "mariadb":
        from moldau.spark.tables.jdbc.mariadb_sink import MariaDbSink

        return MariaDbSink(options, parse_address(options.address), schema, overwrite=overwrite)
    from moldau.spark.tables.jdbc.sqlite_sink import SqliteSink

    return SqliteSink(options, parse_address(options.address).path, schema, overwrite=overwrite)


def _read(kind: str, address: dict[str, Any]) -> list[dict[str, Any]]:
    if kind == "delta":
        from deltalake import DeltaTable

        return DeltaTable(address["delta"]).to_pyarrow_table().to_pylist()  # type: ignore[no-any-return]
    if kind == "iceberg":
        return iceberg(address).scan().to_arrow().to_pylist()  # type: ignore[no-any-return]
    with connected(kind, address) as connection:
        cursor = connection.execute("SELECT * FROM orders")
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def iceberg(address: dict[str, Any]) -> Any:
    """The table as somebody opens it who knows only pyiceberg."""
    from pyiceberg.catalog.sql import SqlCatalog

    folder = address["iceberg"]
    catalog = SqlCatalog("moldau", uri=f"sqlite:///{folder}/catalog.db", warehouse=folder)
    return catalog.load_table("shop.orders")


@contextlib.contextmanager
def connected(kind: str, address: dict[str, Any]) -> Iterator[Any]:
    if kind == "postgresql":
        import psycopg

        parameters = dict(parse_address(address["jdbc"]).parameters)
        with psycopg.connect(**parameters, autocommit=True) as connection:
            yield connection
    elif kind == "mariadb":
        import pymysql

        given = dict(parse_address(address["jdbc"]).parameters) | {"autocommit": True}
        given["port"] = int(given["port"])
        with pymysql.connect(**given) as opened:
            yield _WithExecute(opened)
    else:
        with contextlib.closing(sqlite3.connect(parse_address(address["jdbc"]).path)) as opened:
            opened.isolation_level = None
            yield opened


class _WithExecute:
    """PyMySQL's connection with the method that the other drivers' have."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Any = None) -> Any:
        cursor = self._connection.cursor()
        cursor.execute(statement, values)
        return cursor

    def executemany(self, statement: str, rows: Any) -> None:
        self._connection.cursor().executemany(statement, rows)


def _leftovers(kind: str, address: dict[str, Any]) -> list[str]:
    if kind == "postgresql":
        with connected(kind, address) as connection:
            rows = connection.execute(
                "SELECT relname FROM pg_class WHERE relname LIKE 'moldau_staging%'"
            ).fetchall()
        return [row[0] for row in rows]
    if kind == "mariadb":
        with connected(kind, address) as connection:
            rows = connection.execute("SHOW TABLES LIKE 'moldau_staging%'").fetchall()
        return [row[0] for row in rows]
    if kind == "sqlite":
        folder = Path(parse_address(address["jdbc"]).path + "-moldau-staging")
        return [path.name for path in folder.glob("*")]
    if kind == "delta":
        # Files that a commit removed stay for those who still read an older version.
        folder = Path(address["delta"])
        log = "".join(path.read_text() for path in folder.glob("_delta_log/*.json"))
        known = {path.name for path in folder.rglob("*.parquet") if path.name in log}
    else:
        table = iceberg(address)
        files = table.inspect.all_files().column("file_path").to_pylist()
        known = {path.rpartition("/")[2] for path in files}
        folder = Path(address["iceberg"])
    markers = [path.name for path in folder.rglob("_moldau/*") if path.is_file()]
    return markers + [p.name for p in folder.rglob("*.parquet") if p.name not in known]


def make_table(kind: str, folder: Path, server: Callable[[str], Any]) -> Table:
    """A table of this kind that does not exist yet; a database is started if it is needed."""
    if kind == "delta":
        return Table(kind, delta=str(folder / "orders"))
    if kind == "iceberg":
        return Table(kind, iceberg=str(folder / "warehouse"), table="shop.orders")
    if kind == "sqlite":
        return Table(kind, jdbc=f"jdbc:sqlite:{folder / 'shop.db'}", table="orders")
    running = server(kind)
    url = running.url(running.database())
    if kind == "mariadb":
        url += "?user=moldau&password=secret"
    return Table(kind, jdbc=url, table="orders")
