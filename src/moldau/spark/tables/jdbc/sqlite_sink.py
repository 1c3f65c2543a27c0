"""SQLite sink: tasks stage Arrow files beside the database, the driver inserts them at once.

SQLite has one writer at a time, so tasks do not write to it; the commit does, in one transaction
that also notes the batch's number in `moldau_batches`. Staged files carry the query's digest in
their names: those that a crash left behind are removed by the next commit of the same query.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from moldau.spark.tables.jdbc.machine import statements
from moldau.spark.tables.jdbc.machine.json_values import row_json
from moldau.spark.tables.machine.batches import Attempt, is_committed, short_digest
from moldau.spark.tables.machine.options import Options

from ..columns import require_columns
from ..errors import SchemaMismatchError, TableError
from ..sinks import Staged
from . import sqlite
from .rejected import Refusals, send_dead_letters


class SqliteSink:
    def __init__(self, options: Options, path: str, schema: Any, *, overwrite: bool) -> None:
        self._options = options
        self._path = path
        self._staging = Path(f"{path}-moldau-staging")
        self._frame = schema
        self._overwrite = overwrite
        self._table = options.text("table")
        self._where = f"table {self._table}"
        self._upsert = options.names("upsert")
        self._sequence_by = options.text("sequenceBy")

    @property
    def keeps_staged(self) -> bool:
        return False

    def prepare(self) -> None:
        require_columns(self._where, "upsert", self._upsert, self._frame)
        sequence = [self._sequence_by] if self._sequence_by else []
        require_columns(self._where, "sequenceBy", sequence, self._frame)
        columns = [(f.name, statements.sqlite_type(f.type)) for f in self._frame]
        connection = sqlite.connect(self._path, create=True)
        try:
            connection.execute(statements.create_table(self._table, columns, self._upsert))
            connection.execute(statements.create_batches())
            name = statements.table_parts(self._table)[-1].strip('"')
            rows = connection.execute("SELECT name FROM pragma_table_info(?)", [name]).fetchall()
        except sqlite3.Error as error:
            raise TableError(f"{self._where} cannot be created: {error}") from None
        finally:
            connection.close()
        present = [row[0] for row in rows]
        missing = [name for name in self._frame.names if name not in present]
        if missing:
            raise SchemaMismatchError(
                f"{self._where} has no column for {', '.join(missing)}",
                f"Its columns are {', '.join(present)}. ALTER TABLE ... ADD COLUMN, or leave them "
                "out in a step",
            )

    def write(self, batches: Iterator[Any], attempt: Attempt) -> Staged:
        self._staging.mkdir(exist_ok=True)
        prefix = self._staging_prefix(attempt.query_id)
        path = self._staging / f"{prefix}{attempt.batch_id}-{attempt.token}.arrow"
        count = 0
        try:
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, self._frame) as writer:
                for batch in batches:
                    writer.write_batch(batch.cast(self._frame))
                    count += batch.num_rows
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return Staged(attempt, count, (str(path),))

    def _staging_prefix(self, query_id: str) -> str:
        return f"{short_digest(query_id, self._table)}-"

    def commit(self, staged: Sequence[Staged], batch_id: int) -> bool:
        if not staged:
            return False
        query_id = staged[0].attempt.query_id
        connection = sqlite.connect(self._path)
        try:
            connection.execute("BEGIN IMMEDIATE")
            done = is_committed(batch_id, self._last_batch(connection, query_id))
            if not done:
                refusals = Refusals(self._options)
                self._insert(connection, staged, refusals)
                self._note(connection, query_id, batch_id)
                send_dead_letters(self._options, refusals.rows, batch_id)
            connection.execute("COMMIT")
        finally:
            # A connection that is closed without COMMIT takes its transaction back.
            connection.close()
        self._remove_staged(query_id)
        return not done

    def _last_batch(self, connection: sqlite3.Connection, query_id: str) -> int | None:
        row = connection.execute(
            f"SELECT batch_id FROM {statements.BATCHES_TABLE} "
            "WHERE application_id = ? AND table_name = ?",
            [query_id, self._table],
        ).fetchone()
        return None if row is None else int(row[0])

    def _note(self, connection: sqlite3.Connection, query_id: str, batch_id: int) -> None:
        connection.execute(
            f"INSERT INTO {statements.BATCHES_TABLE} (application_id, table_name, batch_id) "
            "VALUES (?, ?, ?) ON CONFLICT (application_id, table_name) DO UPDATE SET "
            "batch_id = excluded.batch_id, committed_at = CURRENT_TIMESTAMP",
            [query_id, self._table, batch_id],
        )

    def _insert(
        self, connection: sqlite3.Connection, staged: Sequence[Staged], refusals: Refusals
    ) -> None:
        if self._overwrite:
            connection.execute(f"DELETE FROM {statements.qualified(self._table)}")
        statement = statements.insert_row(
            self._table, self._frame.names, self._upsert, self._sequence_by
        )
        storing = [sqlite.storing(field.type) for field in self._frame]
        for path in (path for part in staged for path in part.parts):
            with pa.memory_map(path) as file:
                reader = pa.ipc.open_file(file)
                for index in range(reader.num_record_batches):
                    columns = [column.to_pylist() for column in reader.get_batch(index).columns]
                    rows = list(zip(*columns, strict=True))
                    self._insert_rows(connection, statement, rows, storing, refusals)

    def _insert_rows(
        self,
        connection: sqlite3.Connection,
        statement: str,
        rows: list[Any],
        storing: list[Any],
        refusals: Refusals,
    ) -> None:
        for row in rows:
            stored = [
                value if value is None or store is None else store(value)
                for value, store in zip(row, storing, strict=True)
            ]
            try:
                # A statement that fails takes back itself only, so the others of the batch stay.
                connection.execute(statement, stored)
            except (sqlite3.IntegrityError, sqlite3.DataError, OverflowError) as error:
                refusals.add(row_json(row, self._frame), str(error), type(error).__name__)
            except sqlite3.OperationalError as error:
                if "ON CONFLICT" not in str(error):
                    raise
                raise SchemaMismatchError(
                    f"{self._where} has no unique key over {', '.join(self._upsert)}: {error}",
                    f"CREATE UNIQUE INDEX ... ON {self._table} ({', '.join(self._upsert)})",
                ) from None

    def _remove_staged(self, query_id: str) -> None:
        for path in self._staging.glob(f"{self._staging_prefix(query_id)}*.arrow"):
            path.unlink(missing_ok=True)
        try:
            os.rmdir(self._staging)
        except OSError:
            # Another query stages there too.
            return

    def abort(self, staged: Sequence[Staged], batch_id: int) -> None:
        for path in (path for part in staged for path in part.parts):
            Path(path).unlink(missing_ok=True)
