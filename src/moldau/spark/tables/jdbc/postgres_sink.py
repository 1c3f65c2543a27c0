"""PostgreSQL sink: tasks COPY into staging tables, the driver moves all rows in one transaction.

That transaction also notes the batch's number in `moldau_batches`, under a lock on the query's row
there: a batch that runs again, or two drivers that race with it, put its rows into the table once.
A staging table appears only when its COPY is complete (one transaction), and disappears with the
commit; those of attempts that crashed are dropped by the next commit of the same query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from moldau.spark.tables.jdbc.machine import statements
from moldau.spark.tables.jdbc.machine.address import Address
from moldau.spark.tables.jdbc.machine.halving import by_halves
from moldau.spark.tables.jdbc.machine.json_values import is_nested, json_text, row_json
from moldau.spark.tables.jdbc.machine.statements import ROW_COLUMN, quoted
from moldau.spark.tables.machine.batches import Attempt, is_committed, short_digest
from moldau.spark.tables.machine.options import Options

from ..columns import require_columns
from ..errors import RejectedRowError, SchemaMismatchError, TableError
from ..sinks import Staged
from . import postgres
from .rejected import Refusals, send_dead_letters


class PostgresSink:
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
        self._schema_name = ""
        self._not_null: tuple[str, ...] = ()

    @property
    def keeps_staged(self) -> bool:
        return False

    def prepare(self) -> None:
        """Create the table if it is missing, check that the rows fit it if it is there."""
        require_columns(self._where, "upsert", self._upsert, self._frame)
        sequence = [self._sequence_by] if self._sequence_by else []
        require_columns(self._where, "sequenceBy", sequence, self._frame)
        with postgres.connect(self._address, autocommit=True) as connection:
            self._create_if_missing(
                connection,
                self._table,
                lambda: statements.create_table(
                    self._table,
                    [(f.name, statements.postgresql_type(f.type)) for f in self._frame],
                    self._upsert,
                ),
            )
            self._inspect(connection)
            batches = f"{quoted(self._schema_name)}.{statements.BATCHES_TABLE}"
            self._create_if_missing(
                connection, batches, lambda: statements.create_batches(quoted(self._schema_name))
            )

    def _create_if_missing(self, connection: Any, table: str, statement: Callable[[], str]) -> None:
        errors = postgres.driver().errors
        if _oid(connection, table) is not None:
            return
        try:
            connection.execute(statement())
        except (errors.UniqueViolation, errors.DuplicateTable):
            # Two processes made it at the same moment; it is there now.
            return
        except errors.Error as error:
            raise TableError(f"table {table} cannot be created: {_reason(error)}") from None

    def _inspect(self, connection: Any) -> None:
        rows = connection.execute(
            "SELECT n.nspname, a.attname, a.attnotnull, a.attgenerated <> '' "
            "FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid "
            "JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE c.oid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
            [_oid(connection, self._table)],
        ).fetchall()
        self._schema_name = rows[0][0]
        present = [row[1] for row in rows]
        missing = [name for name in self._columns if name not in present]
        if missing:
            raise SchemaMismatchError(
                f"{self._where} has no column for {', '.join(missing)}",
                f"Its columns are {', '.join(present)}. ALTER TABLE ... ADD COLUMN, or leave them "
                "out in a step",
            )
        self._not_null = tuple(r[1] for r in rows if r[2] and r[1] in self._columns)

    # In tasks

    def write(self, batches: Iterator[Any], attempt: Attempt) -> Staged:
        staging = self._staging_prefix(attempt.query_id) + f"{attempt.batch_id}_{attempt.token[:8]}"
        table = f"{quoted(self._schema_name)}.{quoted(staging)}"
        refusals = Refusals(self._options)
        count = 0
        with postgres.connect(self._address) as connection:
            connection.execute(
                f"CREATE UNLOGGED TABLE {table} AS SELECT {statements.names(self._columns)}, "
                f"0::bigint AS {ROW_COLUMN} FROM {statements.qualified(self._table)} WITH NO DATA"
            )
            for name in self._not_null:
                connection.execute(f"ALTER TABLE {table} ALTER {quoted(name)} SET NOT NULL")
            for batch in batches:
                rows = list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
                self._copy(connection, table, rows, count, refusals)
                count += len(rows)
        return Staged(attempt, count, ((table, count),), tuple(refusals.rows))

    def _staging_prefix(self, query_id: str) -> str:
        return f"{statements.STAGING_PREFIX}{short_digest(query_id, self._table)}_"

    def _copy(
        self, connection: Any, table: str, rows: list[Any], first: int, refusals: Refusals
    ) -> None:
        """COPY the rows; those that are refused are found by halving, each half on its own."""
        psycopg = postgres.driver()
        waiting = [(0, len(rows))]
        while waiting:
            start, end = waiting.pop()
            if start == end:
                continue
            try:
                with connection.transaction():
                    self._copy_range(connection, table, rows[start:end], first + start)
            except (psycopg.DataError, psycopg.IntegrityError) as error:
                if refusals.keep and end - start > 1:
                    middle = (start + end) // 2
                    # Taken from the end, so the first half comes first.
                    waiting += [(middle, end), (start, middle)]
                    continue
                row = rows[start] if end - start == 1 else _failed_row(error, rows[start:end])
                shown = row_json(row, self._frame) if row else "(not reported by the database)"
                refusals.add(shown, _reason(error), type(error).__name__)

    def _copy_range(self, connection: Any, table: str, rows: list[Any], first: int) -> None:
        nested = [
            (index, field.type) for index, field in enumerate(self._frame) if is_nested(field.type)
        ]
        statement = f"COPY {table} ({statements.names(self._columns)}, {ROW_COLUMN}) FROM STDIN"
        with connection.cursor().copy(statement) as copy:
            for number, row in enumerate(rows, first):
                values = list(row)
                for index, arrow_type in nested:
                    if values[index] is not None:
                        values[index] = json_text(values[index], arrow_type)
                values.append(number)
                copy.write_row(values)

    # On the driver

    def commit(self, staged: Sequence[Staged], batch_id: int) -> bool:
        if not staged:
            return False
        query_id = staged[0].attempt.query_id
        tables = [table for part in staged for table, _ in part.parts]
        with postgres.connect(self._address) as connection:
            done = is_committed(batch_id, self._locked_batch(connection, query_id))
            if not done:
                refusals = Refusals(self._options)
                refusals.rows += [row for part in staged for row in part.rejected]
                self._move(connection, staged, refusals)
                self._note(connection, query_id, batch_id)
                send_dead_letters(self._options, refusals.rows, batch_id)
                tables += self._lost(connection, query_id, tables)
            for table in tables:
                connection.execute(f"DROP TABLE IF EXISTS {table}")
        return not done

    def _locked_batch(self, connection: Any, query_id: str) -> int | None:
        """The query's last batch in this table; others that ask wait until we are done."""
        batches = f"{quoted(self._schema_name)}.{statements.BATCHES_TABLE}"
        connection.execute(
            f"INSERT INTO {batches} (application_id, table_name, batch_id) VALUES (%s, %s, -1) "
            "ON CONFLICT DO NOTHING",
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
            f"UPDATE {quoted(self._schema_name)}.{statements.BATCHES_TABLE} "
            "SET batch_id = %s, committed_at = CURRENT_TIMESTAMP "
            "WHERE application_id = %s AND table_name = %s",
            [batch_id, query_id, self._table],
        )

    def _lost(self, connection: Any, query_id: str, kept: list[str]) -> list[str]:
        rows = connection.execute(
            "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname = %s AND c.relkind = 'r' AND starts_with(c.relname, %s)",
            [self._schema_name, self._staging_prefix(query_id)],
        ).fetchall()
        found = [f"{quoted(self._schema_name)}.{quoted(row[0])}" for row in rows]
        return [table for table in found if table not in kept]

    def _move(self, connection: Any, staged: Sequence[Staged], refusals: Refusals) -> None:
        if self._overwrite:
            connection.execute(f"DELETE FROM {statements.qualified(self._table)}")
        ranges = [(table, 0, count - 1) for part in staged for table, count in part.parts if count]
        if not ranges:
            return
        if not self._moved(connection, [(table, None, None) for table, _, _ in ranges], refusals):
            by_halves(
                ranges,
                lambda part: self._moved(connection, [part], refusals),
                lambda table, number: self._refuse(connection, table, number, refusals),
            )

    def _moved(
        self,
        connection: Any,
        staging: Sequence[tuple[str, int | None, int | None]],
        refusals: Refusals,
    ) -> bool:
        """Whether all of these rows went in; if not and refusals are not kept, it is an error."""
        psycopg = postgres.driver()
        statement = statements.move_staged(
            self._table, staging, self._columns, self._upsert, self._sequence_by
        )
        try:
            with connection.transaction():
                connection.execute(statement)
        except psycopg.errors.InvalidColumnReference as error:
            raise SchemaMismatchError(
                f"{self._where} has no unique key over {', '.join(self._upsert)}: {_reason(error)}",
                f"CREATE UNIQUE INDEX ON {self._table} ({statements.names(self._upsert)})",
            ) from None
        except (psycopg.DataError, psycopg.IntegrityError) as error:
            if refusals.keep:
                return False
            raise RejectedRowError(
                f"{self._where} refuses a row: {_reason(error)}",
                "Fix it in a step, use upsert: [keys] if the key is there already, or set "
                "onError: dead_letter",
            ) from None
        return True

    def _refuse(self, connection: Any, table: str, number: int, refusals: Refusals) -> None:
        psycopg = postgres.driver()
        row = connection.execute(
            f"SELECT (to_jsonb(t) - '{ROW_COLUMN}')::text FROM {table} t WHERE {ROW_COLUMN} = %s",
            [number],
        ).fetchone()
        statement = statements.move_staged(
            self._table, [(table, number, number)], self._columns, self._upsert, self._sequence_by
        )
        try:
            with connection.transaction():
                connection.execute(statement)
        except (psycopg.DataError, psycopg.IntegrityError) as error:
            refusals.add(row[0], _reason(error), type(error).__name__)

    def abort(self, staged: Sequence[Staged], batch_id: int) -> None:
        with postgres.connect(self._address) as connection:
            for table in (table for part in staged for table, _ in part.parts):
                connection.execute(f"DROP TABLE IF EXISTS {table}")


def _oid(connection: Any, table: str) -> int | None:
    row = connection.execute(
        "SELECT to_regclass(%s)::oid", [statements.qualified(table)]
    ).fetchone()
    return row[0] if row else None


def _reason(error: Any) -> str:
    """What the database says, with the column and the value where it names them."""
    diag = error.diag
    parts = [diag.message_primary or str(error).strip()]
    if diag.column_name:
        parts.append(f"column {diag.column_name}")
    if diag.constraint_name:
        parts.append(f"constraint {diag.constraint_name}")
    if diag.message_detail:
        parts.append(diag.message_detail)
    if diag.context and "column" in diag.context:
        parts.append(diag.context.partition(", ")[2].splitlines()[0])
    return "; ".join(parts)


def _failed_row(error: Any, rows: list[Any]) -> Any:
    """The row whose line PostgreSQL names in a failed COPY."""
    words = (error.diag.context or "").replace(",", " ").replace(":", " ").split()
    if "line" in words:
        number = words[words.index("line") + 1]
        if number.isdigit() and 0 < int(number) <= len(rows):
            return rows[int(number) - 1]
    return None
