"""MariaDB sink: tasks insert into staging tables, the driver moves all rows in one transaction.

That transaction also notes the batch's number in `moldau_batches`, under a lock on the query's row
there: a batch that runs again, or two drivers that race with it, put its rows into the table once.
CREATE and DROP end a transaction in MariaDB, so staging tables are dropped after the commit; those
that a crash left behind are dropped by the next commit of the same query.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from moldau.spark.tables.jdbc.machine import mariadb_text, statements
from moldau.spark.tables.jdbc.machine.address import Address
from moldau.spark.tables.jdbc.machine.halving import Range, by_halves
from moldau.spark.tables.jdbc.machine.json_values import (
    is_nested,
    json_text,
    json_value,
    row_json,
)
from moldau.spark.tables.jdbc.machine.statements import ROW_COLUMN, quoted
from moldau.spark.tables.machine.batches import Attempt, is_committed, short_digest
from moldau.spark.tables.machine.options import Options

from ..columns import require_columns
from ..errors import RejectedRowError, SchemaMismatchError, TableError
from ..sinks import Staged
from . import mariadb
from .rejected import Refusals, send_dead_letters

_ROWS_PER_INSERT = 5_000


class MariaDbSink:
    def __init__(self, options: Options, address: Address, schema: Any, *, overwrite: bool) -> None:
        self._options = options
        self._address = address
        self._frame = schema
        self._overwrite = overwrite
        self._table = options.text("table")
        self._where = f"table {self._table}"
        self._upsert = options.names("upsert")
        self._sequence_by = options.text("sequenceBy")
        self._columns: tuple[str, ...] = tuple(schema.names)
        *database, self._name = statements.table_parts(self._table)
        given = dict(address.parameters)["database"]
        self._database = database[-1].strip('"') if database else given
        self._name = self._name.strip('"')

    # Before a batch

    @property
    def keeps_staged(self) -> bool:
        return False

    def prepare(self) -> None:
        """Create the table if it is missing, check that the rows fit it if it is there."""
        require_columns(self._where, "upsert", self._upsert, self._frame)
        sequence = [self._sequence_by] if self._sequence_by else []
        require_columns(self._where, "sequenceBy", sequence, self._frame)
        columns = [
            (field.name, mariadb_text.column_type(field.type, is_key=field.name in self._upsert))
            for field in self._frame
        ]
        create = statements.create_table(self._table, columns, self._upsert)
        with mariadb.connect(self._address) as connection:
            try:
                if not self._present(connection):
                    connection.execute(f"{create} ENGINE=InnoDB")
                if not self._is_there(connection, statements.BATCHES_TABLE):
                    connection.execute(_create_batches(quoted(self._database)))
            except mariadb.errors() as error:
                raise TableError(
                    f"{self._where} cannot be created: {mariadb.reason(error)}"
                ) from None
            self._inspect(connection)

    def _present(self, connection: Any) -> list[str]:
        rows = connection.execute(
            "SELECT column_name FROM information_schema.columns "
            "WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
            [self._database, self._name],
        ).fetchall()
        return [row[0] for row in rows]

    def _is_there(self, connection: Any, table: str) -> bool:
        return bool(self._tables(connection, table))

    def _tables(self, connection: Any, prefix: str) -> list[str]:
        rows = connection.execute(
            "SELECT table_name FROM information_schema.tables "
            "WHERE table_schema = %s AND left(table_name, %s) = %s",
            [self._database, len(prefix), prefix],
        ).fetchall()
        return [row[0] for row in rows]

    def _inspect(self, connection: Any) -> None:
        present = self._present(connection)
        missing = [name for name in self._columns if name not in present]
        if missing:
            raise SchemaMismatchError(
                f"{self._where} has no column for {', '.join(missing)}",
                f"Its columns are {', '.join(present)}. ALTER TABLE ... ADD COLUMN, or leave them "
                "out in a step",
            )
        rows = connection.execute(
            "SELECT engine FROM information_schema.tables "
            "WHERE table_schema = %s AND table_name = %s",
            [self._database, self._name],
        ).fetchone()
        if rows is None or str(rows[0]).lower() != "innodb":
            raise TableError(
                f"{self._where} has the engine {rows and rows[0]}, which has no transactions",
                f"ALTER TABLE {self._table} ENGINE=InnoDB",
            )
        if self._upsert:
            self._check_keys(connection)

    def _check_keys(self, connection: Any) -> None:
        """An upsert replaces by any unique key of the table, so no other one may collide."""
        rows = connection.execute(
            "SELECT index_name, column_name FROM information_schema.statistics "
            "WHERE table_schema = %s AND table_name = %s AND non_unique = 0",
            [self._database, self._name],
        ).fetchall()
        indexes: dict[str, set[str]] = {}
        for index, column in rows:
            indexes.setdefault(index, set()).add(column)
        wanted = set(self._upsert)
        if wanted not in indexes.values():
            raise SchemaMismatchError(
                f"{self._where} has no unique key over {', '.join(self._upsert)}",
                f"CREATE UNIQUE INDEX ... ON {self._table} ({', '.join(self._upsert)})",
            )
        for index, columns in sorted(indexes.items()):
            if columns != wanted and columns <= set(self._columns):
                raise SchemaMismatchError(
                    f"{self._where} has another unique key, {index}: a row could replace another "
                    f"one that has the same {', '.join(sorted(columns))}",
                    "Upsert by that key, leave one of its columns out in a step, or drop it",
                )

    # In tasks

    def write(self, batches: Iterator[Any], attempt: Attempt) -> Staged:
        staging = self._staging_prefix(attempt.query_id) + f"{attempt.batch_id}_{attempt.token[:8]}"
        table = self._in_database(staging)
        refusals = Refusals(self._options)
        count = 0
        with mariadb.connect(self._address) as connection:
            connection.execute(
                f"CREATE TABLE {table} (PRIMARY KEY ({ROW_COLUMN})) ENGINE=InnoDB AS SELECT "
                f"{statements.names(self._columns)}, CAST(0 AS SIGNED) AS {ROW_COLUMN} "
                f"FROM {statements.qualified(self._table)} WHERE FALSE"
            )
            try:
                for batch in batches:
                    for rows in _slices(batch):
                        self._insert(connection, table, rows, count, refusals)
                        count += len(rows)
            except BaseException:
                # It was there for others from its first statement on.
                connection.execute(f"DROP TABLE IF EXISTS {table}")
                raise
        return Staged(attempt, count, ((table, count),), tuple(refusals.rows))

    def _in_database(self, table: str) -> str:
        return f"{quoted(self._database)}.{quoted(table)}"

    def _staging_prefix(self, query_id: str) -> str:
        return f"{statements.STAGING_PREFIX}{short_digest(query_id, self._table)}_"

    def _insert(
        self, connection: Any, table: str, rows: list[Any], first: int, refusals: Refusals
    ) -> None:
        stored = self._stored(rows)
        columns = (*self._columns, ROW_COLUMN)
        marks = ", ".join(mariadb.MARK for _ in columns)
        names = statements.names(columns).replace("%", "%%")
        statement = f"INSERT INTO {table.replace('%', '%%')} ({names}) VALUES ({marks})"
        numbered = [(*row, first + index) for index, row in enumerate(stored)]
        found: list[Exception] = []

        def moved(part: Range) -> bool:
            _, start, end = part
            try:
                self._whole(connection, statement, numbered[start : end + 1])
            except mariadb.errors() as error:
                if not mariadb.is_refusal(error):
                    raise
                found[:] = [error]
                return False
            return True

        def refuse(_: str, number: int) -> None:
            error = found[0]
            refusals.add(
                row_json(rows[number], self._frame), mariadb.reason(error), type(error).__name__
            )

        by_halves([(table, 0, len(rows) - 1)], moved, refuse)

    def _whole(self, connection: Any, statement: str, rows: list[Any]) -> None:
        """All of them or none: the driver may cut them into several statements."""
        connection.execute("SAVEPOINT moldau_rows")
        try:
            connection.insert_many(statement, rows)
        except mariadb.errors():
            connection.execute("ROLLBACK TO SAVEPOINT moldau_rows")
            raise

    def _stored(self, rows: list[Any]) -> list[list[Any]]:
        nested = [
            (index, field.type) for index, field in enumerate(self._frame) if is_nested(field.type)
        ]
        zoned = [
            index
            for index, field in enumerate(self._frame)
            if pa.types.is_timestamp(field.type) and field.type.tz
        ]
        stored = []
        for row in rows:
            values = list(row)
            for index, arrow_type in nested:
                if values[index] is not None:
                    values[index] = json_text(values[index], arrow_type)
            for index in zoned:
                if values[index] is not None:
                    # Sessions have UTC, and the driver writes no zones.
                    values[index] = values[index].replace(tzinfo=None)
            stored.append(values)
        return stored

    # On the driver

    def commit(self, staged: Sequence[Staged], batch_id: int) -> bool:
        if not staged:
            return False
        query_id = staged[0].attempt.query_id
        with mariadb.connect(self._address) as connection:
            done = is_committed(batch_id, self._locked_batch(connection, query_id))
            if not done:
                refusals = Refusals(self._options)
                refusals.rows += [row for part in staged for row in part.rejected]
                self._move(connection, staged, refusals)
                self._note(connection, query_id, batch_id)
                send_dead_letters(self._options, refusals.rows, batch_id)
            connection.commit()
            lost = [] if done else self._tables(connection, self._staging_prefix(query_id))
            mine = [table for part in staged for table, _ in part.parts]
            for table in {*mine, *(self._in_database(name) for name in lost)}:
                connection.execute(f"DROP TABLE IF EXISTS {table}")
        return not done

    def _locked_batch(self, connection: Any, query_id: str) -> int | None:
        """The query's last batch in this table; others that ask wait until we are done."""
        batches = self._in_database(statements.BATCHES_TABLE)
        connection.execute(
            f"INSERT IGNORE INTO {batches} (application_id, table_name, batch_id) "
            "VALUES (%s, %s, -1)",
            [query_id, self._table],
        )
        row = connection.execute(
            f"SELECT batch_id FROM {batches} WHERE application_id = %s AND table_name = %s "
            "FOR UPDATE",
            [query_id, self._table],
        ).fetchone()
        return None if row is None else int(row[0])

    def _note(self, connection: Any, query_id: str, batch_id: int) -> None:
        connection.execute(
            f"UPDATE {self._in_database(statements.BATCHES_TABLE)} SET batch_id = %s, "
            "committed_at = CURRENT_TIMESTAMP WHERE application_id = %s AND table_name = %s",
            [batch_id, query_id, self._table],
        )

    def _move(self, connection: Any, staged: Sequence[Staged], refusals: Refusals) -> None:
        if self._overwrite:
            connection.execute(f"DELETE FROM {statements.qualified(self._table)}")
        ranges = [(table, 0, count - 1) for part in staged for table, count in part.parts if count]
        if not ranges or self._moved(
            connection, [(table, None, None) for table, _, _ in ranges], refusals
        ):
            return

        def refuse(table: str, number: int) -> None:
            self._refuse(connection, table, number, refusals)

        by_halves(ranges, lambda part: self._moved(connection, [part], refusals), refuse)

    def _moved(
        self,
        connection: Any,
        staging: Sequence[tuple[str, int | None, int | None]],
        refusals: Refusals,
    ) -> bool:
        """Whether all of these rows went in; if not and refusals are not kept, it is an error."""
        try:
            # A statement that fails takes back itself only.
            connection.execute(self._statement(staging))
        except mariadb.errors() as error:
            if not mariadb.is_refusal(error):
                raise
            if refusals.keep:
                return False
            raise RejectedRowError(
                f"{self._where} refuses a row: {mariadb.reason(error)}",
                "Fix it in a step, use upsert: [keys] if the key is there already, or set "
                "onError: dead_letter",
            ) from None
        return True

    def _statement(self, staging: Sequence[tuple[str, int | None, int | None]]) -> str:
        return mariadb_text.move_staged(
            self._table, staging, self._columns, self._upsert, self._sequence_by
        )

    def _refuse(self, connection: Any, table: str, number: int, refusals: Refusals) -> None:
        names = statements.names(self._columns)
        row = connection.execute(
            f"SELECT {names} FROM {table} WHERE {ROW_COLUMN} = {number}"
        ).fetchone()
        if row is None:
            # It was refused when it was staged.
            return
        try:
            connection.execute(self._statement([(table, number, number)]))
        except mariadb.errors() as error:
            refusals.add(_shown(row, self._frame), mariadb.reason(error), type(error).__name__)

    def abort(self, staged: Sequence[Staged], batch_id: int) -> None:
        with mariadb.connect(self._address) as connection:
            for table in (table for part in staged for table, _ in part.parts):
                connection.execute(f"DROP TABLE IF EXISTS {table}")


def _create_batches(database: str) -> str:
    return (
        f"CREATE TABLE IF NOT EXISTS {database}.{statements.BATCHES_TABLE} ("
        "application_id varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, "
        "table_name varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, "
        "batch_id bigint NOT NULL, committed_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP, "
        "PRIMARY KEY (application_id, table_name)) ENGINE=InnoDB"
    )


def _slices(batch: Any) -> Iterator[list[Any]]:
    for start in range(0, batch.num_rows, _ROWS_PER_INSERT):
        part = batch.slice(start, _ROWS_PER_INSERT)
        yield list(zip(*(column.to_pylist() for column in part.columns), strict=True))


def _shown(row: Sequence[Any], schema: Any) -> str:
    """A row as the database gives it, in the form of `row_json`."""
    fields = {}
    for field, value in zip(schema, row, strict=True):
        if value is not None and is_nested(field.type):
            fields[field.name] = json.loads(value)
        elif value is not None and pa.types.is_boolean(field.type):
            fields[field.name] = bool(value)
        else:
            fields[field.name] = json_value(value, pa.string())
    return json.dumps(fields, ensure_ascii=False)
