"""DB-API 2.0: connections and cursors (PEP 249)."""

from __future__ import annotations

import ssl
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from moldau.sql.client.binding import bind
from moldau.sql.client.errors import InterfaceError, NotSupportedError, ProgrammingError
from moldau.sql.client.http import DEFAULT_URL, RowStream, SqlClient
from moldau.sql.client.listings import listing_rows
from moldau.sql.client.push import PushRows
from moldau.sql.client.types import Description, describe, row_reader
from moldau.sql.syntax.lexer import EOF, tokens
from moldau.sql.syntax.variables import substitute

if TYPE_CHECKING:
    import pandas
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Connection", "Cursor", "connect"]

Parameters: TypeAlias = Sequence[Any] | Mapping[str, Any] | None
_QUERIES: Final = ("SELECT", "PRINT")
#: Statements of `executemany` that go in one request.
_BATCH: Final = 500


def connect(
    url: str = DEFAULT_URL,
    *,
    user: str | None = None,
    password: str | None = None,
    timeout: float = 60.0,
    tls: ssl.SSLContext | None = None,
    properties: Mapping[str, Any] | None = None,
) -> Connection:
    """A connection to a SQL server, ksqlDB's or Moldau's.

    `properties` are sent with each statement, as SET does; `timeout` counts in seconds for
    statements and for the start of queries. No request is sent before the first statement.
    """
    client = SqlClient(url, user=user, password=password, timeout_s=timeout, tls=tls)
    return Connection(client, properties)


class Connection:
    """Statements of a session. Threads may share it, but not its cursors."""

    def __init__(self, client: SqlClient, properties: Mapping[str, Any] | None = None) -> None:
        self.client = client
        #: What SET says: sent with each statement.
        self.properties: dict[str, Any] = dict(properties or {})
        #: What DEFINE says: replaces ${name} in statements, but never in their parameters.
        self.variables: dict[str, str] = {}
        self._closed = False
        self._cursors: weakref.WeakSet[Cursor] = weakref.WeakSet()

    def cursor(self) -> Cursor:
        self._check()
        made = Cursor(self)
        self._cursors.add(made)
        return made

    def execute(self, sql: str, parameters: Parameters = None) -> Cursor:
        """A new cursor that has executed a statement."""
        return self.cursor().execute(sql, parameters)

    def stream(self, sql: str, parameters: Parameters = None) -> PushRows:
        """The rows of a query for `async for`; it starts when the first is asked for."""
        self._check()
        text = self.bound(sql, parameters)
        return PushRows(lambda: self.client.query(text, self.properties))

    def pandas(self, sql: str, parameters: Parameters = None) -> pandas.DataFrame:
        """The rows of a query that ends, as a DataFrame of pandas."""
        return self.execute(sql, parameters).pandas()

    def spark(self, session: SparkSession, sql: str, parameters: Parameters = None) -> DataFrame:
        """The rows of a query that ends, as a DataFrame of Spark."""
        return self.execute(sql, parameters).spark(session)

    def bound(self, sql: str, parameters: Parameters) -> str:
        """A statement as it is sent: variables replaced, then parameters, with a semicolon."""
        text = bind(substitute(sql, self.variables), parameters)
        found = tokens(text)
        last = found[-2].kind if len(found) > 1 else EOF
        if last == EOF:
            raise ProgrammingError("The statement is empty")
        return text if last == ";" else f"{text}\n;"

    def commit(self) -> None:
        """Nothing: each statement takes effect at once."""
        self._check()

    def rollback(self) -> None:
        self._check()
        raise NotSupportedError("Statements cannot be rolled back: each takes effect at once")

    def close(self) -> None:
        """End the queries of all cursors."""
        self._closed = True
        for each in list(self._cursors):
            each.close()

    def _check(self) -> None:
        if self._closed:
            raise InterfaceError("The connection is closed")

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Cursor:
    """Rows of a query, read as they are fetched; or the answers of statements."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self.rowcount = -1
        self.rownumber: int | None = None
        self.description: list[Description] | None = None
        #: The answers of statements, as the server sent them.
        self.entities: list[dict[str, Any]] = []
        self.query_id = ""
        self._stream: RowStream | None = None
        self._rows: Iterator[tuple[Any, ...]] | None = None
        self._closed = False

    def execute(self, sql: str, parameters: Parameters = None) -> Cursor:
        """Send a statement, or start a query. Returns this cursor."""
        self._check()
        self._reset()
        text = self.connection.bound(sql, parameters)
        if tokens(text)[0].kind in _QUERIES:
            self._query(text)
        else:
            self._statement(text)
        return self

    def executemany(
        self, sql: str, seq_of_parameters: Iterable[Sequence[Any] | Mapping[str, Any]]
    ) -> Cursor:
        """A statement that is not a query, once for each of the parameters."""
        self._check()
        self._reset()
        count, batch = 0, []
        for parameters in seq_of_parameters:
            text = self.connection.bound(sql, parameters)
            if tokens(text)[0].kind in _QUERIES:
                raise ProgrammingError("executemany takes statements, not queries")
            batch.append(text)
            count += 1
            if len(batch) >= _BATCH:
                self._send("\n".join(batch))
                batch = []
        if batch:
            self._send("\n".join(batch))
        self.rowcount = count
        return self

    def callproc(self, name: str, parameters: Sequence[Any] = ()) -> Sequence[Any]:
        raise NotSupportedError("There are no stored procedures")

    def _send(self, text: str) -> None:
        connection = self.connection
        self.entities += connection.client.execute(text, connection.properties)

    def _statement(self, text: str) -> None:
        self._send(text)
        found = listing_rows(self.entities)
        if found is not None:
            names, rows = found
            self.description = describe(names, ["STRING"] * len(names))
            self.rowcount = len(rows)
            self.rownumber = 0
            self._rows = iter(rows)

    def _query(self, text: str) -> None:
        connection = self.connection
        stream = connection.client.query(text, connection.properties)
        self._stream = stream
        self.query_id = stream.query_id
        self.description = describe(stream.names, stream.types)
        self.rownumber = 0
        self._rows = map(row_reader(stream.types), stream.lines())

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row; of a push query, when it comes. None at the end."""
        row = next(self._fetched(), None)
        if row is not None and self.rownumber is not None:
            self.rownumber += 1
        return row

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        found = []
        for _ in range(self.arraysize if size is None else size):
            row = self.fetchone()
            if row is None:
                break
            found.append(row)
        return found

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left: of a query that ends."""
        found = list(self._fetched())
        if self.rownumber is not None:
            self.rownumber += len(found)
        if self.rowcount < 0:
            self.rowcount = self.rownumber or 0
        return found

    def pandas(self) -> pandas.DataFrame:
        """The rows that are left as a DataFrame of pandas."""
        from moldau.sql.client.frames import pandas_frame

        return pandas_frame(self._columns(), self.fetchall())

    def spark(self, session: SparkSession) -> DataFrame:
        """The rows that are left as a DataFrame of Spark."""
        from moldau.sql.client.frames import spark_frame

        return spark_frame(session, self._columns(), self.fetchall())

    def _columns(self) -> list[tuple[str, str]]:
        self._fetched()
        return [(each[0], each[1]) for each in self.description or ()]

    def nextset(self) -> None:
        """There is one set of rows only."""

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Nothing, as PEP 249 allows."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Nothing, as PEP 249 allows."""

    def close(self) -> None:
        """End the query."""
        self._reset()
        self._closed = True

    def _reset(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._stream = self._rows = self.description = self.rownumber = None
        self.entities, self.rowcount, self.query_id = [], -1, ""

    def _check(self) -> None:
        if self._closed:
            raise InterfaceError("The cursor is closed")

    def _fetched(self) -> Iterator[tuple[Any, ...]]:
        self._check()
        if self._rows is None:
            raise ProgrammingError("There are no rows: execute a query first")
        return self._rows

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self

    def __next__(self) -> tuple[Any, ...]:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
