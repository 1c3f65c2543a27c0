"""Pull queries: rows of tables as they are now."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from moldau.services.sql.core import PreparedQuery, SqlCore
from moldau.services.sql.machine.errors import statement_error
from moldau.sql.engine.engine import Session
from moldau.sql.errors import KsqlException, KsqlStatementException
from moldau.sql.pull.executor import PullQuery
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
    push = PreparedQuery(replace(query, emit="CHANGES", limit=None), prepared.text, session)
    started = core.push(push, lambda key, row, timestamp: rows.append(row))
    try:
        core.wait_until_read(started, ends)
    finally:
        core.host.stop(started.id)
    is_limited = query.limit is not None and len(rows) >= query.limit
    message = "Limit Reached" if is_limited else "Query Completed"
    return PulledRows(started.id, started.built.schema.value, rows[: query.limit], message)
