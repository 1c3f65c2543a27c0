"""Pull queries: rows of tables as they are now."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from moldau.services.sql.core import PreparedQuery, SqlCore
from moldau.services.sql.machine.errors import statement_error
from moldau.services.sql.machine.rows import row_writer
from moldau.sql.engine.engine import Session
from moldau.sql.errors import KsqlException, KsqlStatementException
from moldau.sql.pull.executor import PullQuery
from moldau.sql.pull.ordering import ordering_of
from moldau.sql.sources.data_source import DataSource
from moldau.sql.syntax.statements import Query
from moldau.sql.types import Column
from moldau.streams.errors import InvalidStateStoreError

__all__ = ["PulledRows", "pull"]

_STORE_WAIT_S = 10.0
_RETRY_S = 0.05
_OF_A_STREAM = "Unexpected data source type for table pull query: KSTREAM"


@dataclass(frozen=True, slots=True)
class PulledRows:
    """The answer to a pull query."""

    query_id: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    #: How the query ended, where that is said.
    message: str | None = None

    def as_array(self) -> str:
        """For /query."""
        write = row_writer([each.type for each in self.columns])
        schema = ", ".join(map(str, self.columns))
        header = json.dumps({"header": {"queryId": self.query_id, "schema": schema}})
        rows = [f'{{"row":{{"columns":{write(row)}}}}}' for row in self.rows]
        last = [] if self.message is None else [json.dumps({"finalMessage": self.message})]
        return "[" + ",\n".join([header, *rows, *last]) + "]\n"

    def as_lines(self) -> str:
        """For /query-stream."""
        write = row_writer([each.type for each in self.columns])
        header = {
            "queryId": self.query_id,
            "columnNames": [each.name for each in self.columns],
            "columnTypes": [str(each.type) for each in self.columns],
        }
        return "\n".join([json.dumps(header), *(write(row) for row in self.rows)]) + "\n"


def pull(core: SqlCore, prepared: PreparedQuery) -> PulledRows:
    """Execute a pull query: on the stores of the query that keeps its table, or, for a stream, by
    reading it up to where it ends now."""
    query = prepared.query
    if not isinstance(query, Query):
        raise KsqlStatementException("PRINT is not a query", prepared.text)
    try:
        try:
            with core.lock:
                planned = core.engine.pull_query(query, prepared.text, prepared.session)
        except KsqlException as error:
            # The engine refuses streams last of all: the query itself is right.
            source = core.engine.metastore.source(query.source.name)
            if source is None or _OF_A_STREAM not in str(error):
                raise
            return _read_stream(core, prepared, query, source)
        return _read_store(core, prepared, planned)
    except KsqlException as error:
        raise statement_error(error, prepared.text) from error


def _read_store(core: SqlCore, prepared: PreparedQuery, planned: PullQuery) -> PulledRows:
    streams = core.host.streams(planned.query_id)
    if streams is None:
        raise KsqlStatementException("The query of the table does not run", prepared.text)
    deadline = time.monotonic() + _STORE_WAIT_S
    while True:
        try:
            rows = list(planned.rows(streams.store(planned.store_name)))
            break
        except InvalidStateStoreError as error:
            # While partitions move or are restored; a client would try again, too.
            if time.monotonic() > deadline:
                raise KsqlStatementException(
                    f"Unable to execute pull query: {error}", prepared.text
                ) from error
            time.sleep(_RETRY_S)
    query_id = f"query_{time.time_ns()}"
    return PulledRows(query_id, planned.plan.schema.columns, rows)


def _read_stream(
    core: SqlCore, prepared: PreparedQuery, query: Query, source: DataSource
) -> PulledRows:
    """All rows that a stream has now."""
    ends = core.ends_of(source.topic)
    rows: list[Any] = []
    session = Session({**prepared.session.properties, "auto.offset.reset": "earliest"})
    plain = replace(query, emit="CHANGES", limit=None, order_by=(), offset=None)
    push = PreparedQuery(plain, prepared.text, session)
    started = core.push(push, lambda key, row, timestamp: rows.append(row))
    try:
        core.wait_until_read(started, ends)
    finally:
        core.host.stop(started.id)
    columns = started.built.schema.value
    is_limited = query.limit is not None and len(rows) >= query.limit + (query.offset or 0)
    message = "Limit Reached" if is_limited else "Query Completed"
    ordering = ordering_of(query, columns, core.engine.functions)
    return PulledRows(started.id, columns, ordering.apply(rows), message)
