"""A source task with transactions (KIP-618): records and their offsets are written together.

The transactional id is `GROUP-CONNECTOR-TASK`, so that a newer instance of a task fences an older
one. Where transactions end is decided by `transaction.boundary`: after each poll, by time, or by
the connector.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from moldau.client import Producer
from moldau.connect.api import ConnectError, SourcePartition, SourceRecord, SourceTask
from moldau.connect.machine.source_offsets import checked, key_bytes, value_bytes
from moldau.connect.runtime.own_offsets import Lease
from moldau.connect.runtime.source_task import SourceRunner
from moldau.invariant import present

logger = logging.getLogger(__name__)

_COMMIT_S = 60.0


class ConnectorTransactions:
    """The task's transaction context: what it asked for since the last look."""

    def __init__(self) -> None:
        self._batch: str | None = None
        self._records: dict[int, tuple[SourceRecord, str]] = {}

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        self._ask("commit", record)

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        self._ask("abort", record)

    def _ask(self, what: str, record: SourceRecord | None) -> None:
        if record is None:
            if self._batch not in (None, what):
                raise ConnectError("a batch can be committed or aborted, not both")
            self._batch = what
            return
        found = self._records.get(id(record))
        if found is not None and found[1] != what:
            raise ConnectError("a record can end a commit or an abort, not both")
        # The record is kept, so that its id stays its own.
        self._records[id(record)] = (record, what)

    def take(self, record: SourceRecord) -> str | None:
        found = self._records.pop(id(record), None)
        return None if found is None else found[1]

    def take_batch(self) -> str | None:
        found, self._batch = self._batch, None
        return found


class ExactlyOnceRunner:
    """Runs one source task, exactly once. The steps of a record are the plain runner's."""

    def __init__(
        self,
        runner: SourceRunner,
        *,
        offsets: Lease,
        boundary: str,
        interval_ms: int,
    ) -> None:
        self._runner = runner
        self._topic = present(offsets.topic, "exactly once is for distributed workers")
        self._lease = offsets
        self._boundary = boundary
        self._interval_s = interval_ms / 1000
        self._transactions = ConnectorTransactions()
        self._offsets: dict[SourcePartition, Mapping[str, Any]] = {}
        self._pending: list[tuple[SourceRecord, Any]] = []
        self._open = False
        self._next_commit = 0.0
        # Only who has something to say is asked: for the answer records must be written first.
        self._asks_task = type(runner.task).pre_commit is not SourceTask.pre_commit
        if boundary == "connector":
            runner.context.transaction_context = self._transactions

    @property
    def id(self) -> Any:
        return self._runner.id

    @property
    def counts(self) -> Any:
        return self._runner.counts

    @property
    def failures(self) -> Any:
        return self._runner.failures

    @property
    def life(self) -> Any:
        return self._runner.life

    def interrupt(self) -> None:
        self._runner.interrupt()

    def run(self) -> None:
        runner = self._runner
        producer = runner.producer = runner.open_producer()
        try:
            producer.init_transactions()
            runner.task.initialize(runner.context)
            runner.task.start(runner.config)
            runner.life.started()
            self._next_commit = time.monotonic() + self._interval_s
            self._loop(producer)
        finally:
            self._end(producer)

    def _loop(self, producer: Producer) -> None:
        runner = self._runner
        while not runner.life.stopping.is_set():
            if runner.life.wait_while_paused():
                continue
            records = runner.poll()
            if records:
                self._send(producer, records)
            if self._boundary == "poll":
                self._commit(producer)
            elif self._boundary == "interval":
                if time.monotonic() >= self._next_commit:
                    self._commit(producer)
                    self._next_commit = time.monotonic() + self._interval_s
            else:
                self._finish(producer, self._transactions.take_batch())

    def _send(self, producer: Producer, records: Iterable[SourceRecord]) -> None:
        for record in records:
            outgoing = self._runner.converted(record)
            if not self._open:
                producer.begin_transaction()
                self._open = True
            future = None if outgoing is None else self._runner.send(outgoing)
            self._pending.append((record, future))
            if record.source_partition is not None and record.source_offset is not None:
                checked("source offset", record.source_offset)
                self._offsets[SourcePartition(record.source_partition)] = record.source_offset
            if self._boundary == "connector":
                self._finish(producer, self._transactions.take(record))

    def _finish(self, producer: Producer, wanted: str | None) -> None:
        if wanted == "abort" and self._open:
            producer.abort_transaction()
            self._open = False
            self._pending.clear()
            # The records are gone for good: their offsets are committed without them.
        if wanted is not None:
            self._commit(producer)

    def _commit(self, producer: Producer) -> None:
        if not self._open and not self._offsets:
            return
        if not self._open:
            producer.begin_transaction()
            self._open = True
        task = self._runner.task
        if self._asks_task and self._pending:
            producer.flush(timeout=_COMMIT_S)
            for topic, key, value in task.pre_commit(_written(self._pending)):
                producer.send(topic, value, key)
        connector = self._runner.id.connector
        for partition, offset in self._offsets.items():
            producer.send(self._topic, value_bytes(offset), key_bytes(connector, partition))
        producer.commit_transaction(timeout=_COMMIT_S)
        self._open = False
        committed, self._offsets = self._offsets, {}
        self._lease.copy(connector, committed)
        pending, self._pending = self._pending, []
        self._runner.counts.commits += 1
        for record, metadata in _written(pending):
            if metadata is not None:
                self._runner.counts.written += 1
            task.commit_record(record, metadata)
        task.commit()

    def _end(self, producer: Producer) -> None:
        runner = self._runner
        failed = not runner.life.stopping.is_set()
        if failed:
            runner.interrupt()
        try:
            if not failed and not runner.life.abandoned and self._boundary != "connector":
                self._commit(producer)
            elif self._open:
                producer.abort_transaction(timeout=5)
        except Exception as error:
            logger.warning("task %s: the last transaction is not committed: %s", runner.id, error)
        finally:
            present(runner.producer, "opened above").close(timeout=5)
            runner.producer = None


def _written(pending: Sequence[tuple[SourceRecord, Any]]) -> list[tuple[SourceRecord, Any]]:
    """Records with their metadata, None for dropped ones; raises what went wrong with one."""
    return [(record, None if future is None else future.result(0)) for record, future in pending]
