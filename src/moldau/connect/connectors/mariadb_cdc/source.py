"""The connector for MariaDB and MySQL: one task, since a binary log is read in order.

It begins with a snapshot at an exact place of the binary log, and goes on from there. A snapshot
that did not end is made again from its start; with exactly-once support and
`transaction.boundary=connector` it is one transaction, and so are those of the database.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from moldau.connect.api import ConnectError, DataError, SourceRecord, SourceTask
from moldau.connect.connectors.capture.machine.envelope import Table, is_resumable
from moldau.connect.connectors.capture.machine.filters import Filters
from moldau.connect.connectors.capture.machine.snapshots import marked
from moldau.connect.connectors.capture.records import Capture, CaptureConnector
from moldau.connect.connectors.mariadb_cdc.config import CONFIG
from moldau.connect.connectors.mariadb_cdc.machine.origin import (
    SOURCES,
    Progress,
    connector_name,
    source_of,
)
from moldau.connect.connectors.mariadb_cdc.server import Committed, RowChange, Server

_SNAPSHOTS: Final = ("always", "initial", "initial_only", "when_needed")


class MariaDbConnector(CaptureConnector):
    DESCRIPTION = "Changes of MariaDB's and MySQL's tables to topics, in Debezium's form"
    SETTINGS = CONFIG

    def task_class(self) -> type[SourceTask]:
        return MariaDbTask


class MariaDbTask(SourceTask):
    def __init__(self) -> None:
        super().__init__()
        self._stopped = threading.Event()
        self._snapshot: Iterator[SourceRecord] | None = None
        self._progress: Progress | None = None
        self._tables: dict[tuple[str, str], tuple[int, Table] | None] = {}
        self._skipped = 0
        # Whether the record of the begin of the next transaction is in Kafka.
        self._is_begun = False
        # The last record of a transaction is known only when its end comes.
        self._held: SourceRecord | None = None
        # Where this task goes on after a failure: what it returned may be in a transaction that
        # is still open, and is not to be read again.
        self._returned: Mapping[str, Any] | None = None

    def start(self, props: Mapping[str, str]) -> None:
        config = self._config = CONFIG.parse(props)
        self._server = Server(config)
        self._filters = Filters(config, "database")
        self._capture = Capture(config, props)
        self._connector = connector_name(props.get("connector.class"))

    def poll(self) -> Sequence[SourceRecord] | None:
        if self._stopped.is_set():
            return None
        try:
            if self._progress is None:
                self._begin()
            found = self._next_batch()
            offset = found[-1].source_offset if found else None
            if offset is not None and is_resumable(offset):
                self._returned = offset
            return found or None
        except (ConnectError, DataError):
            self._reset()
            raise
        except Exception as error:
            self._reset()
            if self._stopped.is_set():
                return None
            if self._server.is_own(error):
                raise self._server.failure(error) from error
            raise

    def _begin(self) -> None:
        self._server.check()
        stored = self._returned or self.context.offset_storage_reader.offset(
            self._capture.partition
        )
        mode = self._config["snapshot.mode"]
        again = mode == "always" and self._returned is None
        if stored is not None and not again and is_resumable(stored):
            again = mode == "when_needed" and not self._server.has_log(str(stored["file"]))
        if stored is not None and not again and is_resumable(stored):
            self._progress = Progress.of(stored)
            self._skipped, self._is_begun = self._progress.events, self._progress.begun
            self._progress = Progress(self._progress.file, self._progress.pos)
        elif mode in _SNAPSHOTS:
            tables = [
                each for each in self._server.tables(self._filters) if self._capture.is_read(*each)
            ]
            self._progress, rows = self._server.snapshot(tables, self._capture.selects)
            self._snapshot = self._read_rows(self._progress, rows)
        else:
            self._progress = self._server.position()

    def _next_batch(self) -> list[SourceRecord]:
        size = self._config["max.batch.size"]
        found: list[SourceRecord] = []
        if self._snapshot is not None:
            for record in self._snapshot:
                found.append(record)
                if len(found) >= size:
                    return found
            self._snapshot = None
            return found
        if self._config["snapshot.mode"] != "initial_only":
            self._read_log(found, size)
            self._beat(found)
        if not found:
            self._stopped.wait(self._config["poll.interval.ms"] / 1000)
        return found

    # The snapshot.

    def _read_rows(
        self, progress: Progress, rows: Iterator[tuple[str, str, Sequence[Any]]]
    ) -> Iterator[SourceRecord]:
        now_us = time.time_ns() // 1000
        offset = {**progress.offset(), "snapshot": True}
        held: SourceRecord | None = None
        for marker, (database, name, row) in marked(rows):
            if held is not None:
                yield held
            found = self._table(database, name)
            if found is None:
                continue
            source = self._source(database, name, progress, marker)
            held = self._capture.record(found[1], found[1].read_event(row, source, now_us), offset)
        if held is not None:
            held.source_offset = {**offset, "last_snapshot_record": True}
            self._end_transaction(held)
            yield held

    def _source(self, database: str, table: str, progress: Progress, snapshot: str) -> Any:
        return source_of(
            self._connector,
            self._config["topic.prefix"],
            database,
            table,
            server_id=self._server.server_id,
            progress=progress,
            snapshot=snapshot,
        )

    def _table(self, database: str, name: str) -> tuple[int, Table] | None:
        key = (database, name)
        if key not in self._tables:
            self._tables[key] = None
            if self._filters.takes(database, name):
                columns = self._server.columns(database, name)
                wanted = self._capture.columns.of_table(f"{database}.{name}", columns)
                if columns:
                    topic = self._capture.topic(database, name)
                    self._tables[key] = len(columns), Table(topic, wanted, SOURCES[self._connector])
        return self._tables[key]

    def _end_transaction(self, record: SourceRecord) -> None:
        if self.context.transaction_context is not None:
            self.context.transaction_context.commit_transaction(record)

    # The binary log.

    def _read_log(self, found: list[SourceRecord], size: int) -> None:
        progress = self._progress
        if progress is None:
            return
        if not self._server.is_streaming:
            self._server.start_stream(progress)
        while len(found) < size and (event := self._server.next_event()) is not None:
            if isinstance(event, Committed):
                self._commit(event, found)
                continue
            for change in event:
                self._begin_transaction(change, found)
                self._change(change, found)

    def _begin_transaction(self, first: RowChange, found: list[SourceRecord]) -> None:
        """MariaDB's log names the begin of a transaction in another way than MySQL's, but both have
        its changes."""
        transactions, progress = self._capture.transactions, self._progress
        if transactions is None or progress is None or progress.begun:
            return
        progress = self._progress = progress.started(first.ts_s)
        begin = transactions.begin(progress.transaction_id, first.ts_s * 1000)
        if not self._is_begun and not self._skipped:
            self._hold(self._capture.boundary(begin, progress.offset()), found)

    def _hold(self, record: SourceRecord, found: list[SourceRecord]) -> None:
        if self._held is not None:
            found.append(self._held)
        self._held = record

    def _commit(self, event: Committed, found: list[SourceRecord]) -> None:
        progress, transactions = self._progress, self._capture.transactions
        if progress is not None:
            # A statement that changes a table has no begin.
            if transactions is not None and progress.begun:
                end = transactions.end(progress.transaction_id, event.ts_s * 1000)
                self._hold(self._capture.boundary(end, progress.offset()), found)
            self._progress = progress.committed(*event)
        self._skipped, self._is_begun = 0, False
        # A statement that changes a table ends a transaction, too.
        self._tables.clear()
        held, self._held = self._held, None
        if held is not None and self._progress is not None:
            held.source_offset = self._progress.offset()
            self._end_transaction(held)
            found.append(held)

    def _change(self, change: RowChange, found: list[SourceRecord]) -> None:
        known = self._table(change.database, change.table)
        if known is None or self._progress is None:
            return
        count, table = known
        if len(change.new or change.old or ()) != count:
            raise ConnectError(
                f"table {change.database}.{change.table} has {count} columns now and had "
                f"{len(change.new or change.old or ())} when a row was changed: the binary log has "
                "no names of columns to tell them apart"
            )
        progress = self._progress
        source = self._source(change.database, change.table, progress, "false")
        now_us = time.time_ns() // 1000
        emitted, transactions = self._capture.emitted, self._capture.transactions
        for event in table.events(change.op, change.old, change.new, source, now_us, emitted):
            self._progress = self._progress.after_event(change.ts_s)
            if transactions is not None and event.value is not None:
                name = f"{change.database}.{change.table}"
                block = transactions.change(self._progress.transaction_id, name)
                event.value.put("transaction", block)
            if self._progress.events > self._skipped:
                self._hold(self._capture.record(table, event, self._progress.offset()), found)

    def _beat(self, found: list[SourceRecord]) -> None:
        progress = self._progress
        if progress is None or self._held is not None or progress.events:
            return
        beats = self._capture.heartbeat(progress.offset())
        found += beats
        query = self._config["heartbeat.action.query"]
        if beats and query:
            self._server.rows(query)

    def _reset(self) -> None:
        transaction = self.context.transaction_context
        if self._snapshot is not None and transaction is not None:
            # The snapshot is made again from its start.
            transaction.abort_transaction()
        self._snapshot = self._progress = self._held = None
        self._skipped, self._is_begun = 0, False
        self._tables.clear()
        self._server.close()

    def stop(self) -> None:
        self._stopped.set()
        self._server.close()
