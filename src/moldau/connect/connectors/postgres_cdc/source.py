"""The connector for PostgreSQL: one task, since a slot has one reader.

It begins with a snapshot: the slot is created together with a snapshot of the database, so that the
changes of the slot begin exactly where the snapshot ends. A snapshot that did not end is made again
from its start, with a new slot. With exactly-once support and `transaction.boundary=connector` a
whole snapshot is one transaction, and so are the changes of each transaction of the database.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from moldau.connect.api import (
    ConnectError,
    SourcePartition,
    SourceRecord,
    SourceTask,
)
from moldau.connect.connectors.capture.machine.envelope import (
    Table,
    TableColumn,
    is_resumable,
)
from moldau.connect.connectors.capture.machine.filters import Filters
from moldau.connect.connectors.capture.machine.snapshots import marked
from moldau.connect.connectors.capture.records import Capture, CaptureConnector
from moldau.connect.connectors.postgres_cdc.config import CONFIG
from moldau.connect.connectors.postgres_cdc.machine import pgoutput
from moldau.connect.connectors.postgres_cdc.machine.origin import SOURCE, Place, source_of
from moldau.connect.connectors.postgres_cdc.machine.progress import Progress
from moldau.connect.connectors.postgres_cdc.machine.types import Options, column_type
from moldau.connect.connectors.postgres_cdc.server import Server

_SNAPSHOT_MODES: Final = ("always", "initial", "initial_only", "when_needed")


class PostgresConnector(CaptureConnector):
    DESCRIPTION = "Changes of PostgreSQL's tables to topics, in Debezium's form"
    SETTINGS = CONFIG

    def task_class(self) -> type[SourceTask]:
        return PostgresTask

    def alter_offsets(
        self,
        props: Mapping[str, str],
        offsets: Mapping[SourcePartition, Mapping[str, Any] | None],
    ) -> bool:
        for partition, offset in offsets.items():
            if "server" not in partition:
                raise ConnectError(f"Partition {dict(partition)} must have the key 'server'")
            if offset is not None and not isinstance(offset.get("lsn_commit"), int):
                raise ConnectError("An offset must have the integer 'lsn_commit', or be null")
        return True


class PostgresTask(SourceTask):
    def __init__(self) -> None:
        super().__init__()
        self._stopped = threading.Event()
        self._config: dict[str, Any] = {}
        self._capture: Capture | None = None
        self._server: Server | None = None
        self._changes: _Changes | None = None
        self._snapshot: Iterator[SourceRecord] | None = None
        self._reported_at = 0.0
        # What is known to be in Kafka, and what was at the last commit.
        self._sent_lsn = 0
        self._safe_lsn = 0
        self._returned_lsn = 0
        # Where this task goes on after a failure: what it returned may be in a transaction that
        # is still open, and is not to be read again.
        self._returned: Mapping[str, Any] | None = None

    def start(self, props: Mapping[str, str]) -> None:
        self._config = CONFIG.parse(props)
        self._capture = Capture(self._config, props)
        self._server = Server(self._config)

    def poll(self) -> Sequence[SourceRecord] | None:
        server, capture = self._server, self._capture
        if server is None or capture is None or self._stopped.is_set():
            return None
        try:
            if self._changes is None:
                self._begin(server, capture)
            return self._next_batch(server) or None
        except ConnectError:
            self._reset()
            raise
        except Exception as error:
            self._reset()
            if self._stopped.is_set():
                return None
            if type(error).__module__.startswith("psycopg2"):
                raise server.failure(error) from error
            raise

    def _begin(self, server: Server, capture: Capture) -> None:
        config = self._config
        stored = self._returned or self.context.offset_storage_reader.offset(capture.partition)
        filters = Filters(config)
        server.ensure_publication(filters)
        changes = self._changes = _Changes(config, server, filters, capture)
        done = stored is not None and is_resumable(stored)
        mode = config["snapshot.mode"]
        again = mode == "always" and self._returned is None
        # The changes since then are lost with the slot, so that only a snapshot has them.
        again |= mode == "when_needed" and not server.has_slot()
        if mode in _SNAPSHOT_MODES and (not done or again):
            server.drop_slot()
            lsn, name = server.create_slot()
            changes.progress = Progress(lsn_commit=lsn, lsn=lsn)
            self._snapshot = changes.read_rows(name, self.context.transaction_context)
            return
        if stored is not None:
            changes.resume(Progress.of(stored))
            if not server.has_slot():
                raise ConnectError(
                    f"the replication slot {server.slot} is gone, so changes are missing: reset "
                    "the connector's offsets to begin with a new snapshot"
                )
        elif not server.has_slot():
            lsn, _ = server.create_slot()
            changes.progress = Progress(lsn_commit=lsn, lsn=lsn)

    def _next_batch(self, server: Server) -> list[SourceRecord]:
        size = self._config["max.batch.size"]
        if self._snapshot is not None:
            found = []
            for record in self._snapshot:
                found.append(record)
                if len(found) >= size:
                    break
            else:
                self._snapshot = None
            self._note(found)
            return found
        if self._config["snapshot.mode"] == "initial_only":
            self._stopped.wait(self._config["poll.interval.ms"] / 1000)
            return []
        changes = self._changes
        if changes is None:
            return []
        if not server.is_streaming:
            server.start_stream(changes.progress.lsn_commit)
        found = changes.read(
            size, self._config["poll.interval.ms"] / 1000, self.context.transaction_context
        )
        if changes.is_between and (beats := changes.capture.heartbeat(changes.progress.offset())):
            found += beats
            if query := self._config["heartbeat.action.query"]:
                server.rows(query)
        self._note(found)
        if self._returned is not None:
            self._returned_lsn = int(self._returned["lsn_commit"])
        self._report(server, changes.progress)
        return found

    def _note(self, found: Sequence[SourceRecord]) -> None:
        """Remember the place of the last record; inside of a snapshot there is none."""
        offset = found[-1].source_offset if found else None
        if offset is not None and is_resumable(offset):
            self._returned = offset

    def _report(self, server: Server, progress: Progress) -> None:
        """Now and then, or the server takes the connection for dead."""
        now = time.monotonic()
        if now - self._reported_at < self._config["status.update.interval.ms"] / 1000:
            return
        self._reported_at = now
        if progress.tx_id is None and self._returned_lsn <= self._safe_lsn:
            # All that was captured is safe, so what was not need not be kept either.
            self._safe_lsn = self._sent_lsn = max(self._safe_lsn, progress.lsn_commit)
        server.report(self._safe_lsn)

    def commit_record(self, record: SourceRecord, metadata: Any) -> None:
        if record.source_offset is not None:
            self._sent_lsn = max(self._sent_lsn, int(record.source_offset.get("lsn_commit") or 0))

    def commit(self) -> None:
        # Records that were sent while offsets were being committed count the next time.
        safe, self._safe_lsn = self._safe_lsn, self._sent_lsn
        if self._server is not None and safe:
            self._server.report(safe)

    def _reset(self) -> None:
        transaction = self.context.transaction_context
        if self._snapshot is not None and transaction is not None:
            # The snapshot is made again from its start.
            transaction.abort_transaction()
        self._snapshot = None
        self._changes = None
        if self._server is not None:
            self._server.close()

    def stop(self) -> None:
        self._stopped.set()
        server = self._server
        if server is not None:
            server.close()
            if self._config["slot.drop.on.stop"]:
                server.drop_slot()
                server.close()


class _Changes:
    """Turns rows and messages into records."""

    def __init__(
        self,
        config: Mapping[str, Any],
        server: Server,
        filters: Filters,
        capture: Capture,
    ) -> None:
        self.capture = capture
        self._config = config
        self._server = server
        self._filters = filters
        self._options = Options(
            decimals=config["decimal.handling.mode"],
            times=config["time.precision.mode"],
            include_unknown=config["include.unknown.datatypes"],
            binaries=config["binary.handling.mode"],
            intervals=config["interval.handling.mode"],
            hstores=config["hstore.handling.mode"],
            money_digits=config["money.fraction.digits"],
        )
        self.progress = Progress()
        self._tables: dict[int, tuple[Place, Table] | None] = {}
        self._resumed: Progress | None = None
        self._skipped = 0
        # The last record of a transaction is known only when its end comes.
        self._held: SourceRecord | None = None

    @property
    def is_between(self) -> bool:
        """Whether no transaction is open, so that the place is one to go on from."""
        return self.progress.tx_id is None and self._held is None

    def resume(self, progress: Progress) -> None:
        self._resumed = progress if progress.tx_id is not None else None
        self.progress = progress

    # The snapshot.

    def read_rows(self, snapshot: str, transaction: Any) -> Iterator[SourceRecord]:
        found: dict[tuple[str, str], tuple[Place, Table]] = {}
        wanted: list[tuple[str, str, list[str]]] = []
        for schema, name in self._server.tables(self._filters):
            if not self.capture.is_read(schema, name):
                continue
            columns = self._server.columns(schema, name, self._options)
            found[schema, name] = self._table(schema, name, columns)
            wanted.append((schema, name, [column.name for column in columns]))
        now_us = time.time_ns() // 1000
        offset = {**self.progress.offset(), "snapshot": True}
        held: SourceRecord | None = None
        size = self._config["snapshot.fetch.size"]
        rows = self._server.snapshot_rows(snapshot, wanted, size, self.capture.selects)
        for marker, (schema, name, row) in marked(rows):
            if held is not None:
                yield held
            place, table = found[schema, name]
            source = source_of(place, now_us, snapshot=marker, lsn=self.progress.lsn)
            held = self.capture.record(table, table.read_event(row, source, now_us), offset)
        if held is not None:
            held.source_offset = {**offset, "last_snapshot_record": True}
            if transaction is not None:
                transaction.commit_transaction(held)
            yield held

    def _table(self, schema: str, name: str, columns: Sequence[TableColumn]) -> tuple[Place, Table]:
        place = Place(self._config["topic.prefix"], self._server.database, schema, name)
        wanted = self.capture.columns.of_table(f"{schema}.{name}", columns)
        placeholder = self._config["unavailable.value.placeholder"]
        return place, Table(self.capture.topic(schema, name), wanted, SOURCE, placeholder)

    # The stream.

    def read(self, size_max: int, wait_s: float, transaction: Any) -> list[SourceRecord]:
        """Up to about `size_max` records; waits only if there are none."""
        found: list[SourceRecord] = []
        while len(found) < size_max:
            given = self._server.next_message(0.0 if found else wait_s)
            if given is None:
                break
            lsn, data = given
            self._take(lsn, pgoutput.read_message(data), found, transaction)
        return found

    def _take(
        self, lsn: int, message: pgoutput.Message, found: list[SourceRecord], transaction: Any
    ) -> None:
        match message:
            case pgoutput.Begin():
                resumed, self._resumed = self._resumed, None
                again = resumed is not None and resumed.tx_id == message.xid
                known = resumed if again and resumed is not None else Progress()
                self._skipped = known.events
                self.progress = self.progress.started(message.xid, message.commit_us)
                self._begin(lsn, known, found)
            case pgoutput.Relation():
                self._tables[message.oid] = self._related(message)
            case pgoutput.Change():
                self._change(lsn, message, found)
            case pgoutput.Truncate():
                for oid in message.relation_oids:
                    self._change(lsn, pgoutput.Change("t", oid, None, None), found)
            case pgoutput.Commit():
                self._end(message.commit_lsn, found)
                self.progress = self.progress.committed(message.end_lsn)
                held, self._held = self._held, None
                if held is not None:
                    # With the last record of a transaction the whole of it is done.
                    held.source_offset = self.progress.offset()
                    if transaction is not None:
                        transaction.commit_transaction(held)
                    found.append(held)

    def _begin(self, lsn: int, known: Progress, found: list[SourceRecord]) -> None:
        transactions = self.capture.transactions
        if transactions is None:
            return
        progress = self.progress = replace(self.progress, begun=True)
        begin = transactions.begin(_transaction_id(progress, lsn), progress.ts_us // 1000)
        if not known.begun and not known.events:
            self._hold(self.capture.boundary(begin, progress.offset()), found)

    def _end(self, lsn: int, found: list[SourceRecord]) -> None:
        transactions, progress = self.capture.transactions, self.progress
        if transactions is not None:
            end = transactions.end(_transaction_id(progress, lsn), progress.ts_us // 1000)
            self._hold(self.capture.boundary(end, progress.offset()), found)

    def _hold(self, record: SourceRecord, found: list[SourceRecord]) -> None:
        if self._held is not None:
            found.append(self._held)
        self._held = record

    def _related(self, relation: pgoutput.Relation) -> tuple[Place, Table] | None:
        if not self._filters.takes(relation.schema, relation.table):
            return None
        known = {
            column.name: column for column in self._columns_now(relation.schema, relation.table)
        }
        has_key = any(column.is_key for column in known.values())
        columns = []
        for each in relation.columns:
            kind = column_type(self._server.type(each.type_oid), each.modifier, self._options)
            now = known.get(each.name)
            is_key = now.is_key if has_key and now is not None else each.is_key
            optional = now.optional if now is not None else not is_key
            columns.append(TableColumn(each.name, kind, optional, is_key))
        return self._table(relation.schema, relation.table, columns)

    def _columns_now(self, schema: str, table: str) -> list[TableColumn]:
        """What the stream does not say: primary keys, and what may be null. The table may be gone
        by now, which is why names are asked for first."""
        if (schema, table) not in self._server.tables(self._filters):
            return []
        return self._server.columns(schema, table, self._options)

    def _change(self, lsn: int, change: pgoutput.Change, found: list[SourceRecord]) -> None:
        found_table = self._tables.get(change.relation_oid)
        if found_table is None:
            return
        place, table = found_table
        progress = self.progress
        source = source_of(
            place, progress.ts_us, tx_id=progress.tx_id, lsn=lsn, commit_lsn=progress.lsn_commit
        )
        now_us = time.time_ns() // 1000
        emitted, transactions = self.capture.emitted, self.capture.transactions
        for event in table.events(change.op, change.old, change.new, source, now_us, emitted):
            self.progress = self.progress.after_event(lsn)
            if transactions is not None and event.value is not None:
                tx_id, name = _transaction_id(progress, lsn), f"{place.schema}.{place.table}"
                event.value.put("transaction", transactions.change(tx_id, name))
            if self.progress.events > self._skipped:
                self._hold(self.capture.record(table, event, self.progress.offset()), found)


def _transaction_id(progress: Progress, lsn: int) -> str:
    """The transaction's number, and the place of what is in it."""
    return f"{progress.tx_id}:{lsn}"
