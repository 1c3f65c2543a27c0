"""A source task: poll, transform, convert, produce, and commit offsets of what Kafka has.

One thread runs the task. Records in flight are bounded by the producer's `buffer.memory`; an offset
is committed when its record and all before it, of the same source partition, are acknowledged.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from moldau.client import KafkaError, Producer
from moldau.client.producer._batch import all_done, errors_of
from moldau.connect.api import (
    ConnectError,
    PluginMetrics,
    RetriableError,
    SourcePartition,
    SourceRecord,
    SourceTask,
)
from moldau.connect.machine.ids import Stage, TaskId
from moldau.connect.machine.offsets import Submitted, SubmittedRecords
from moldau.connect.machine.source_offsets import checked
from moldau.connect.runtime.conversion import Outgoing, SourceConversion
from moldau.connect.runtime.failures import Failures, StepFailed
from moldau.connect.runtime.offset_stores import OffsetStore, Reader
from moldau.connect.runtime.task import Lifecycle
from moldau.connect.runtime.topics import TopicCreator

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class SourceCounts:
    """Connect's source-task-metrics."""

    polled: int = 0
    written: int = 0
    commits: int = 0
    commit_failures: int = 0


class Run:
    """Acknowledgements of records that were sent one after the other."""

    __slots__ = ("futures",)

    def __init__(self, futures: list[Any]) -> None:
        self.futures = futures

    def done(self) -> bool:
        futures = self.futures
        # The last one first: while it is under way, nothing else need be asked.
        return not futures or (futures[-1].done() and all_done(futures))

    def errors(self) -> list[KafkaError]:
        return errors_of(self.futures)

    def exception(self, timeout: float) -> None:
        """Wait, as a single acknowledgement does."""
        if self.futures:
            self.futures[-1].exception(timeout)


class SourceContext:
    """What the task may ask."""

    def __init__(self, config: Mapping[str, str], reader: Reader) -> None:
        self._config = dict(config)
        self.offset_storage_reader = reader
        self.transaction_context: Any = None
        self.plugin_metrics = PluginMetrics()

    def configs(self) -> dict[str, str]:
        return dict(self._config)


class SourceRunner:
    """Runs one source task, at least once."""

    def __init__(
        self,
        id: TaskId,
        task: SourceTask,
        config: Mapping[str, str],
        *,
        life: Lifecycle,
        conversion: SourceConversion,
        failures: Failures,
        producer: Callable[[], Producer],
        offsets: OffsetStore,
        topics: TopicCreator,
        on_topic: Callable[[str], None],
        flush_interval_ms: int,
        flush_timeout_ms: int,
    ) -> None:
        self.id = id
        self.task = task
        self.config = config
        self.life = life
        self.conversion = conversion
        self.failures = failures
        self.offsets = offsets
        self.topics = topics
        self.counts = SourceCounts()
        self.context = SourceContext(config, Reader(offsets, id.connector))
        self._make_producer = producer
        self.producer: Producer | None = None
        self._on_topic = on_topic
        self._seen_topics: set[str] = set()
        self._last_topic: str | None = None
        self._submitted = SubmittedRecords()
        self._flush_interval_s = flush_interval_ms / 1000
        self._flush_timeout_s = flush_timeout_ms / 1000
        self._wants_records = type(task).commit_record is not SourceTask.commit_record
        self._check_key: Mapping[str, Any] | None = None

    # The thread.

    def run(self) -> None:
        """Until the task is stopped; raises what makes it fail."""
        self.producer = self.open_producer()
        try:
            self.task.initialize(self.context)
            self.task.start(self.config)
            self.life.started()
            self._loop()
        finally:
            self._end()

    def open_producer(self) -> Producer:
        return self._make_producer()

    def _loop(self) -> None:
        next_commit = time.monotonic() + self._flush_interval_s
        while not self.life.stopping.is_set():
            if self.life.wait_while_paused():
                continue
            records = self.poll()
            if records:
                self.send_all(records)
            self._submitted.drain(self._done)
            if time.monotonic() >= next_commit:
                self.commit_offsets(wait=False)
                next_commit = time.monotonic() + self._flush_interval_s

    def poll(self) -> Sequence[SourceRecord] | None:
        try:
            records = self.task.poll()
        except RetriableError as error:
            logger.warning("task %s: poll failed and is retried: %s", self.id, error)
            self.life.stopping.wait(1.0)
            return None
        if records:
            self.counts.polled += len(records)
        return records

    def send_all(self, records: Iterable[SourceRecord]) -> None:
        if not self._wants_records:
            self._send_runs(records)
            return
        for record in records:
            outgoing = self.converted(record)
            acknowledgement = None if outgoing is None else self.send(outgoing)
            self._submitted.add(
                record.source_partition, record.source_offset, acknowledgement, record
            )

    def _send_runs(self, records: Iterable[SourceRecord]) -> None:
        """Records of one source partition in a row are acknowledged as one."""
        partition: Mapping[str, Any] | None = None
        offset: Mapping[str, Any] | None = None
        futures: list[Any] = []
        record = None
        convert, send = self.conversion.convert, self._producer().send
        for record in records:
            if record.source_partition is not partition:
                if futures or offset is not None:
                    self._submitted.add(partition, offset, Run(futures), record)
                partition, offset, futures = record.source_partition, None, []
                checked("source partition", partition)
            try:
                outgoing = convert(record)
            except StepFailed as failed:
                outgoing = self._after_failure(failed, record)
            if outgoing is not None:
                if outgoing[0] is not self._last_topic:
                    self._meet(outgoing[0])
                futures.append(send(*outgoing))
            if record.source_offset is not None:
                offset = record.source_offset
        if record is not None:
            self._submitted.add(partition, offset, Run(futures), record)

    def converted(self, record: SourceRecord) -> Outgoing | None:
        """The record for Kafka; None if it is dropped or skipped."""
        if record.source_partition is not self._check_key:
            checked("source partition", record.source_partition)
            self._check_key = record.source_partition
        try:
            return self.conversion.convert(record)
        except StepFailed as failed:
            return self._after_failure(failed, record)

    def _after_failure(self, failed: StepFailed, record: SourceRecord) -> Outgoing | None:
        """What becomes of the record after all: None if it is skipped."""
        try:
            return self.failures.retried(failed, lambda: self.conversion.convert(record))
        except StepFailed as final:
            pending = self.failures.handle(final, record)
            if pending is not None:
                pending.result(self._flush_timeout_s)
            return None

    def send(self, outgoing: Outgoing) -> Any:
        if outgoing[0] is not self._last_topic:
            self._meet(outgoing[0])
        return self._producer().send(*outgoing)

    def _meet(self, topic: str) -> None:
        """Make sure that the topic is there, the first time."""
        if topic not in self._seen_topics:
            self.topics.ensure(topic)
            self._seen_topics.add(topic)
            self._on_topic(topic)
        self._last_topic = topic

    def _producer(self) -> Producer:
        if self.producer is None:
            raise ConnectError(f"task {self.id} has ended")
        return self.producer

    # Acknowledgements and offsets.

    def _done(self, submitted: Submitted) -> None:
        future, _, record = submitted
        metadata = None
        if isinstance(future, Run):
            for error in future.errors():
                self._send_failed(record, error)
            self.counts.written += len(future.futures)
            return
        if future is not None:
            acknowledged: Any = future
            error = acknowledged.exception(0)
            if error is not None:
                self._send_failed(record, error)
            else:
                self.counts.written += 1
                if self._wants_records:
                    metadata = acknowledged.metadata()
        if self._wants_records:
            self.task.commit_record(record, metadata)

    def _send_failed(self, record: SourceRecord, error: KafkaError) -> None:
        if self.failures.settings.tolerate_all:
            self.failures.counts.skipped += 1
            if self.failures.settings.log:
                logger.error("task %s: a record was not written: %s", self.id, error)
            return
        raise ConnectError(
            f"{self.id}: failed to send a record to {record.topic} "
            f"(stage {Stage.KAFKA_PRODUCE.value}): {error}"
        ) from error

    def commit_offsets(self, *, wait: bool) -> bool:
        """Store what may be committed; with `wait`, first what is in flight."""
        if wait:
            self._wait_for_acknowledgements()
        self._submitted.drain(self._done)
        offsets = self._submitted.take_committable()
        if not offsets:
            self.task.commit()
            return True
        try:
            for each in offsets.values():
                checked("source offset", each)
            self.offsets.put(self.id.connector, _as_offsets(offsets), self._flush_timeout_s)
        except ConnectError as error:
            logger.error("task %s: offsets are not committed: %s", self.id, error)
            self.counts.commit_failures += 1
            self._submitted.put_back(offsets)
            return False
        self.counts.commits += 1
        self.task.commit()
        return True

    def _wait_for_acknowledgements(self) -> None:
        deadline = time.monotonic() + self._flush_timeout_s
        while time.monotonic() < deadline:
            self._submitted.drain(self._done)
            waiting = next(self._submitted.waiting(), None)
            if waiting is None:
                return
            acknowledgement: Any = waiting[0]
            with suppress(KafkaError):
                acknowledgement.exception(max(deadline - time.monotonic(), 0.0))
        logger.warning(
            "task %s: %d records are not acknowledged yet", self.id, self._submitted.pending
        )

    # The end.

    def interrupt(self) -> None:
        """From another thread: make `poll` return."""
        try:
            self.task.stop()
        except Exception as error:
            logger.warning("task %s: stop failed: %s", self.id, error)

    def _end(self) -> None:
        if not self.life.stopping.is_set():
            # It failed: nobody has stopped it yet.
            self.interrupt()
        try:
            if not self.life.abandoned:
                self.commit_offsets(wait=True)
        except Exception as error:
            logger.warning("task %s: the last offsets are not committed: %s", self.id, error)
        finally:
            if self.producer is not None:
                self.producer.close(timeout=0 if self.life.abandoned else self._flush_timeout_s)
                self.producer = None


def _as_offsets(
    offsets: Mapping[SourcePartition, Mapping[str, Any]],
) -> dict[SourcePartition, Mapping[str, Any] | None]:
    return dict(offsets)
