"""Pull queries: rows of tables as they are now."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from moldau.services.sql.core import PreparedQuery, SqlCore
from moldau.services.sql.machine.errors import statement_error
from moldau.services.sql.machine.rows import exact_row_writer, row_reader, row_writer
from moldau.services.sql.peers import SKIP_FORWARDING, PeerFailed
from moldau.sql.engine.engine import Session
from moldau.sql.errors import KsqlException, KsqlStatementException
from moldau.sql.pull.executor import PullQuery
from moldau.sql.pull.ordering import ordering_of
from moldau.sql.pull.planner import HELP
from moldau.sql.sources.data_source import DataSource
from moldau.sql.syntax.statements import Query
from moldau.sql.types import Column
from moldau.streams import State
from moldau.streams.errors import InvalidStateStoreError, StreamsError

__all__ = ["PulledRows", "Writers", "json_rows", "pull"]

logger = logging.getLogger(__name__)

_STORE_WAIT_S = 10.0
_RETRY_S = 0.05
#: For another server of the service id: rows as values, and not as they are shown.
_EXACT = "request.ksql.query.pull.exact"
_OF_A_STREAM = "Unexpected data source type for table pull query: KSTREAM"


@dataclass(frozen=True, slots=True)
class PulledRows:
    """The answer to a pull query."""

    query_id: str
    columns: Sequence[Column]
    #: Each as a JSON array, or as its writer has made it.
    rows: Sequence[str]
    #: How the query ended, where that is said.
    message: str | None = None


#: What writes the rows of some columns.
Writers = Callable[[Sequence[Column]], Callable[[Sequence[Any]], str]]


def json_rows(columns: Sequence[Column]) -> Callable[[Sequence[Any]], str]:
    """Each row as a JSON array."""
    return row_writer([each.type for each in columns])


def pull(core: SqlCore, prepared: PreparedQuery, writers: Writers = json_rows) -> PulledRows:
    """Execute a pull query: on the stores of the query that keeps its table, or, for a stream, by
    reading it up to where it ends now."""
    query = prepared.query
    if not isinstance(query, Query):
        raise KsqlStatementException("PRINT is not a query", prepared.text)
    if not core.config["ksql.pull.queries.enable"]:
        error = KsqlStatementException(
            f"Pull queries are disabled.{HELP}\nPlease set ksql.pull.queries.enable=true to enable "
            "this feature.\n",
            prepared.text,
        )
        raise statement_error(error, prepared.text)
    try:
        try:
            with core.lock:
                planned = core.engine.pull_query(query, prepared.text, prepared.session)
        except KsqlException as error:
            # The engine refuses streams last of all: the query itself is right.
            source = core.engine.metastore.source(query.source.name)
            if source is None or _OF_A_STREAM not in str(error):
                raise
            return _read_stream(core, prepared, query, source, writers)
        return _read_store(core, prepared, planned, writers)
    except KsqlException as error:
        raise statement_error(error, prepared.text) from error


def _read_store(
    core: SqlCore, prepared: PreparedQuery, planned: PullQuery, writers: Writers
) -> PulledRows:
    columns = planned.plan.schema.columns
    query_id = f"query_{time.time_ns()}"
    types = [each.type for each in columns]
    ordering = planned.plan.ordering
    properties = prepared.session.properties
    needs_values = bool(ordering.keys) or writers is not json_rows
    local = _local_rows(core, prepared, planned)
    if properties.get(SKIP_FORWARDING):
        # The server that asks sorts and cuts; for that it needs values, not what is shown of them.
        is_exact = needs_values or properties.get(_EXACT)
        write = exact_row_writer(types) if is_exact else row_writer(types)
        return PulledRows(query_id, columns, [write(row) for row in local])
    if writers is not json_rows:
        prepared = replace(prepared, session=Session({**properties, _EXACT: True}))
    write = writers(columns)
    remote: list[str] = []
    if not _is_complete(planned, local):
        remote, copies = _remote_rows(core, prepared, planned)
        local = [*local, *copies]
    if needs_values:
        read = row_reader(types)
        rows = ordering.apply([*local, *map(read, remote)])
        return PulledRows(query_id, columns, [write(row) for row in rows])
    texts = [*map(write, local), *remote]
    return PulledRows(query_id, columns, ordering.apply(texts))


def _is_complete(planned: PullQuery, rows: Sequence[object]) -> bool:
    """A key is in one partition: no other server has more of it."""
    lookups = planned.plan.lookups
    is_one = all(each.key == lookups[0].key for each in lookups)
    return planned.plan.kind == "KEY_LOOKUP" and is_one and bool(rows)


def _local_rows(core: SqlCore, prepared: PreparedQuery, planned: PullQuery) -> list[Any]:
    """Of the partitions that this server is in charge of."""
    deadline = time.monotonic() + _STORE_WAIT_S
    while True:
        streams = core.host.streams(planned.query_id)
        if streams is None:
            raise KsqlStatementException("The query of the table does not run", prepared.text)
        try:
            return list(planned.unordered(streams.store(planned.store_name)))
        except InvalidStateStoreError as error:
            if _others(core, planned) and streams.state is State.RUNNING:
                # Other servers have all of its partitions.
                return []
            # While partitions move or are restored; a client would try again, too.
            if time.monotonic() > deadline:
                raise KsqlStatementException(
                    f"Unable to execute pull query: {error}", prepared.text
                ) from error
            time.sleep(_RETRY_S)


def _others(core: SqlCore, planned: PullQuery) -> list[str]:
    """The other servers that have a part of a table."""
    streams = core.host.streams(planned.query_id)
    if streams is None or not core.host.address:
        return []
    try:
        found = streams.streams_metadata_for_store(planned.store_name)
    except StreamsError:
        return []
    addresses = {f"{each.host_info.host}:{each.host_info.port}" for each in found}
    return sorted(addresses - {core.host.address})


def _copied_rows(core: SqlCore, planned: PullQuery, gone: Collection[str]) -> list[Any] | None:
    """What servers that are gone had, from the copies that are here; None if some are not."""
    streams = core.host.streams(planned.query_id)
    if streams is None:
        return None
    active = streams.active_partitions(planned.store_name)
    wanted = frozenset(each for address in gone for each in active.get(address, ()))
    try:
        store = streams.store(planned.store_name, stale=True, partitions=wanted)
        return list(planned.unordered(store)) if wanted <= store.partitions else None
    except InvalidStateStoreError:
        return None


def _remote_rows(
    core: SqlCore, prepared: PreparedQuery, planned: PullQuery
) -> tuple[list[str], list[Any]]:
    """Of other servers; and, of those that are gone, from copies that are here."""
    deadline = time.monotonic() + _STORE_WAIT_S
    found: dict[str, list[str]] = {}
    while True:
        problem, gone = "", []
        for address in _others(core, planned):
            if address in found:
                continue
            try:
                if not core.peers.is_alive(address):
                    raise PeerFailed(f"{address} is not alive")
                found[address] = core.peers.pull(
                    address,
                    prepared.text,
                    prepared.session.properties,
                    prepared.authorization,
                )
            except PeerFailed as error:
                problem = str(error)
                gone.append(address)
        copies: list[Any] | None = [] if not gone else None
        if gone and core.config["ksql.query.pull.enable.standby.reads"]:
            copies = _copied_rows(core, planned, gone)
        if copies is not None:
            return [row for rows in found.values() for row in rows], copies
        # The partitions of a server that has gone come to another one.
        if time.monotonic() > deadline:
            raise KsqlStatementException(
                f"Unable to execute pull query: {problem}. Try again when its partitions have "
                "moved to another server",
                prepared.text,
            )
        time.sleep(_RETRY_S)


def _read_stream(
    core: SqlCore, prepared: PreparedQuery, query: Query, source: DataSource, writers: Writers
) -> PulledRows:
    """All rows that a stream has now, or the first of them."""
    if not core.config["ksql.query.pull.stream.enabled"]:
        raise KsqlStatementException(
            "Pull queries on streams are disabled. To create a push query on the stream, add EMIT "
            "CHANGES to the end. To enable pull queries on streams, set the "
            "ksql.query.pull.stream.enabled config to 'true'.",
            prepared.text,
        )
    wanted = None
    if query.limit is not None and not query.order_by:
        wanted = query.limit + (query.offset or 0)
    ends = core.reads.ends_of(source.topic)
    rows: list[Any] = []
    session = Session({**prepared.session.properties, "auto.offset.reset": "earliest"})
    plain = replace(query, emit="CHANGES", limit=None, order_by=(), offset=None)
    push = PreparedQuery(plain, prepared.text, session)

    def is_enough() -> bool:
        return wanted is not None and len(rows) >= wanted

    def keep(key: Any, row: Any, timestamp: int) -> None:
        if not is_enough():
            rows.append(row)

    started = core.push(push, keep)
    try:
        core.reads.wait_until_read(started, ends, is_enough)
    finally:
        core.host.stop(started.id)
    columns = started.built.schema.value
    is_limited = query.limit is not None and len(rows) >= query.limit + (query.offset or 0)
    message = "Limit Reached" if is_limited else "Query Completed"
    write = writers(columns)
    ordering = ordering_of(query, columns, core.engine.functions)
    return PulledRows(started.id, columns, [write(row) for row in ordering.apply(rows)], message)
