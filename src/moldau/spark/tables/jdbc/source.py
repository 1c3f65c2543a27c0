"""Rows of PostgreSQL, MariaDB and SQLite: a table or query at once, in parts, or as it grows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from moldau.spark.tables.jdbc.machine import queries, statements
from moldau.spark.tables.jdbc.machine.address import MARIADB, POSTGRESQL, SQLITE, Address
from moldau.spark.tables.jdbc.machine.queries import Cursor, Progress
from moldau.spark.tables.machine.options import Options

from ..errors import OptionError, TableError
from . import mariadb, postgres, sqlite

_FETCH_SIZE = 10_000
_LIBRARIES: dict[str, Any] = {POSTGRESQL: postgres, MARIADB: mariadb, SQLITE: sqlite}


class JdbcSource:
    """What a query needs to read a database; travels to tasks by pickle."""

    def __init__(self, options: Options, address: Address) -> None:
        self._options = options
        self._address = address
        query = options.text("query").strip().rstrip(";")
        self._relation = f"({query})" if query else statements.qualified(options.text("table"))

    def _connect(self) -> Any:
        is_file = self._address.database == SQLITE
        where: Any = self._address.path if is_file else self._address
        return contextlib.closing(self._library().connect(where))

    def _library(self) -> Any:
        return _LIBRARIES[self._address.database]

    def columns(self) -> list[tuple[str, Any, str]]:
        try:
            with self._connect() as connection:
                found: list[tuple[str, Any, str]] = self._library().relation_columns(
                    connection, self._relation
                )
        except self._library().errors() as error:
            raise TableError(
                f"{self._what()} cannot be read: {_first_line(error)}", "Check table: or query:"
            ) from None
        if not found:
            raise TableError(f"{self._what()} has no columns, or there is no such table")
        return found

    def _escaped(self, text: str) -> str:
        """Text for a statement with placeholders, which begin with % in some libraries."""
        return text.replace("%", "%%") if self._library().MARK == "%s" else text

    def _what(self) -> str:
        table = self._options.text("table")
        return f"table {table}" if table else "the query"

    def schema(self) -> Any:
        return pa.schema([(name, arrow_type) for name, arrow_type, _ in self.columns()])

    # A batch of parts

    def conditions(self) -> Sequence[tuple[str, list[Any]]]:
        column = self._options.text("partitionColumn")
        if not column:
            return [("", [])]
        self._require("partitionColumn")
        options = self._options
        cut = queries.parts(
            column,
            options.text("lowerBound"),
            options.text("upperBound"),
            options.number("numPartitions"),
        )
        return [(condition, []) for condition in cut]

    def read(self, condition: tuple[str, list[Any]], schema: Any, order: str = "") -> Iterator[Any]:
        where, values = condition
        expressions = {
            name: _wanted(name, given, expression, schema, self._library().AS_TEXT)
            for name, given, expression in self.columns()
        }
        missing = [name for name in schema.names if name not in expressions]
        if missing:
            raise TableError(f"{self._what()} has no column {', '.join(missing)} any more")
        selected = ", ".join(expressions[name] for name in schema.names)
        statement = self._escaped(f"SELECT {selected} FROM {self._relation} moldau_source")
        statement += f" WHERE {where}" if where else ""
        statement += f" ORDER BY {order}" if order else ""
        fetch_size = self._options.number("fetchsize", _FETCH_SIZE)
        with self._connect() as connection:
            yield from self._library().select(connection, statement, values, schema, fetch_size)

    def _require(self, *options: str) -> None:
        """The columns that these options name exist. SQLite would take a wrong one for a text."""
        present = [name for name, _, _ in self.columns()]
        for option in options:
            if option in self._options and self._options.text(option) not in present:
                raise TableError(
                    f"{self._what()} has no column {self._options.text(option)!r}, which {option} "
                    "names",
                    f"Its columns are {', '.join(present)}",
                )

    # A stream

    def checked_cursor(self) -> Cursor:
        """The cursor, once it is known that its columns exist."""
        cursor = self.cursor()
        self._require("incrementing.column.name", "timestamp.column.name")
        return cursor

    def cursor(self) -> Cursor:
        options = self._options
        if "mode" not in options:
            raise OptionError(
                "jdbc source: a stream needs to know how to recognise new rows",
                "Add mode: incrementing, timestamp or timestamp+incrementing and its columns",
            )
        delay_ms = options.number("timestamp.delay.interval.ms")
        now = self._library().delayed_now(delay_ms) if delay_ms else ""
        return Cursor(
            options.text("timestamp.column.name"),
            options.text("incrementing.column.name"),
            self._library().MARK,
            now,
        )

    def latest(self, start: Progress, rows_max: int) -> Progress:
        cursor = self.cursor()
        statement, values = cursor.latest(self._escaped(self._relation), start, rows_max)
        with self._connect() as connection:
            row = connection.execute(statement, values).fetchone()
        return start if row is None else cursor.position(row)


def _wanted(name: str, given: Any, expression: str, schema: Any, text: str) -> str:
    """The column, as text if `schema:` asks for text where the database has something else."""
    as_text = name in schema.names and schema.field(name).type == pa.string() != given
    return f"CAST({expression} AS {text})" if as_text else expression


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
