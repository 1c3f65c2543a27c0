"""A sink task: consume, convert, transform, put, and commit what the target has.

One thread runs the task. While the target is down (`put` raises RetriableError) the same records
are put again and again, all partitions being paused; nothing is skipped and nothing more is read.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moldau.client import (
    CommitFailedError,
    Consumer,
    ConsumerRebalanceListener,
    KafkaError,
    OffsetAndMetadata,
    TopicPartition,
    WakeupError,
)
from moldau.client.consumer_record import ConsumerRecord
from moldau.connect.api import (
    ConnectError,
    DataError,
    RetriableError,
    SinkRecord,
    SinkTask,
)
from moldau.connect.machine.ids import TaskId
from moldau.connect.runtime.conversion import SinkConversion
from moldau.connect.runtime.failures import Failures, StepFailed, ToleranceExceeded
from moldau.connect.runtime.sink_context import Reporter, SinkContext
from moldau.connect.runtime.task import Lifecycle

logger = logging.getLogger(__name__)

_POLL_S_MAX = 1.0
_LOOK_S = 1.0
_BACKOFF_MS_MIN, _BACKOFF_MS_MAX = 100, 10_000


@dataclass(slots=True)
class SinkCounts:
    """Connect's sink-task-metrics."""

    read: int = 0
    sent: int = 0
    commits: int = 0
    commit_failures: int = 0
    lag: int = 0


class SinkRunner(ConsumerRebalanceListener):
    """Runs one sink task."""

    def __init__(
        self,
        id: TaskId,
        task: SinkTask,
        config: Mapping[str, str],
        *,
        life: Lifecycle,
        conversion: SinkConversion,
        failures: Failures,
        consumer: Callable[[], Consumer[bytes, bytes]],
        on_topic: Callable[[str], None],
        flush_interval_ms: int,
        record_by_record: bool,
    ) -> None:
        self.id = id
        self.task = task
        self.config = config
        self.life = life
        self.failures = failures
        self.counts = SinkCounts()
        self._conversion = conversion
        self._make_consumer = consumer
        self._on_topic = on_topic
        self._seen_topics: set[str] = set()
        self._interval_s = flush_interval_ms / 1000
        self._record_by_record = record_by_record
        self._reporter = Reporter(failures)
        self.context = SinkContext(config, self._reporter if failures.settings.reports else None)
        self.context.is_held = lambda: self._is_paused or self._paused_for_retry
        self.consumer: Consumer[bytes, bytes] | None = None
        self._batch: list[SinkRecord] = []
        self._batch_offsets: dict[TopicPartition, int] = {}
        self._delivered: dict[TopicPartition, int] = {}
        self._committed: dict[TopicPartition, int] = {}
        self._paused_for_retry = False
        self._put_attempts = 0
        self._put_again_at = 0.0
        self._next_commit = 0.0
        self._next_look = 0.0
        self._is_paused = False
        self._rebalance_error: BaseException | None = None

    # The thread.

    def run(self) -> None:
        """Until the task is stopped; raises what makes it fail."""
        self.consumer = self._make_consumer()
        self.context.consumer = self.consumer
        try:
            self.task.initialize(self.context)
            self.task.start(self.config)
            self._subscribe(self.consumer)
            self.life.started()
            self._next_commit = time.monotonic() + self._interval_s
            while not self.life.stopping.is_set():
                self._iterate(self.consumer)
        finally:
            self._end()

    def _subscribe(self, consumer: Consumer[bytes, bytes]) -> None:
        topics = [each.strip() for each in self.config.get("topics", "").split(",") if each.strip()]
        if topics:
            consumer.subscribe(topics, self)
        else:
            consumer.subscribe(re.compile(self.config["topics.regex"]), self)

    def _iterate(self, consumer: Consumer[bytes, bytes]) -> None:
        self._follow_target_state(consumer)
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + _LOOK_S
            self.counts.lag = self._lag(consumer)
        if now >= self._next_commit or self.context.take_commit_request():
            self._commit(closing=False)
            self._next_commit = time.monotonic() + self._interval_s
        wait_s = min(_POLL_S_MAX, max(self._next_commit - time.monotonic(), 0.0))
        if self._paused_for_retry:
            wait_s = min(wait_s, max(self._put_again_at - now, 0.0))
        elif self._batch:
            wait_s = 0.0
        self._rewind(consumer)
        try:
            records = consumer.poll(wait_s)
        except WakeupError:
            return
        self._raise_rebalance_error()
        if records:
            self._convert(records)
        if self._is_paused and not self._batch:
            return
        if not self._paused_for_retry or time.monotonic() >= self._put_again_at:
            self._deliver(consumer)

    @staticmethod
    def _lag(consumer: Consumer[bytes, bytes]) -> int:
        lags = [consumer.current_lag(each) for each in consumer.assignment()]
        return sum(each for each in lags if each is not None)

    def _follow_target_state(self, consumer: Consumer[bytes, bytes]) -> None:
        if self.life.paused != self._is_paused:
            self._is_paused = self.life.paused
            if self._is_paused:
                self._commit(closing=False)
                consumer.pause(consumer.assignment())
            elif not self._paused_for_retry:
                self._resume(consumer)
        self.life.note()

    def _resume(self, consumer: Consumer[bytes, bytes]) -> None:
        wanted = set(consumer.assignment()) - self.context.paused
        consumer.resume(wanted)

    # Records.

    def _convert(self, records: Any) -> None:
        convert = self._conversion.convert
        batch, offsets = self._batch, self._batch_offsets
        for partition in records.partitions():
            if partition.topic not in self._seen_topics:
                self._seen_topics.add(partition.topic)
                self._on_topic(partition.topic)
            found = records.records(partition)
            self.counts.read += len(found)
            for record in found:
                try:
                    made = convert(record)
                except StepFailed as failed:
                    made = self._after_failure(failed, record)
                if made is not None:
                    batch.append(made)
            offsets[partition] = found[-1].offset + 1

    def _after_failure(
        self, failed: StepFailed, record: ConsumerRecord[bytes, bytes]
    ) -> SinkRecord | None:
        try:
            return self.failures.retried(failed, lambda: self._conversion.convert(record))
        except StepFailed as final:
            self._reporter.wait_for(self.failures.handle(final, record))
            return None

    def _deliver(self, consumer: Consumer[bytes, bytes]) -> None:
        try:
            self._put(self._batch)
        except RetriableError as error:
            self._retry_later(consumer, error)
            return
        self.counts.sent += len(self._batch)
        self._delivered.update(self._batch_offsets)
        self._batch = []
        self._batch_offsets = {}
        self._put_attempts = 0
        if self._paused_for_retry:
            self._paused_for_retry = False
            if not self._is_paused:
                self._resume(consumer)

    def _put(self, batch: Sequence[SinkRecord]) -> None:
        try:
            self.task.put(batch)
        except DataError:
            if not self._record_by_record or not batch:
                raise
            self._put_one_by_one(batch)

    def _put_one_by_one(self, batch: Sequence[SinkRecord]) -> None:
        for record in batch:
            try:
                self.task.put([record])
            except DataError as error:
                self._reporter.report(record, error)

    def _retry_later(self, consumer: Consumer[bytes, bytes], error: RetriableError) -> None:
        self._put_attempts += 1
        wanted = self.context.take_timeout()
        if wanted is None:
            wanted = min(_BACKOFF_MS_MIN << min(self._put_attempts - 1, 10), _BACKOFF_MS_MAX)
        logger.warning("task %s: put failed and is repeated in %d ms: %s", self.id, wanted, error)
        self._put_again_at = time.monotonic() + wanted / 1000
        self._paused_for_retry = True
        consumer.pause(consumer.assignment())

    def _rewind(self, consumer: Consumer[bytes, bytes]) -> None:
        for partition, offset in self.context.take_offsets().items():
            if partition in consumer.assignment():
                consumer.seek(partition, offset)
                self._delivered[partition] = offset
                self._committed[partition] = offset
                self._drop_batch({partition})

    def _drop_batch(self, partitions: set[TopicPartition]) -> None:
        """What was read of them is not put any more."""
        for partition in partitions:
            self._batch_offsets.pop(partition, None)
        self._batch = [
            each
            for each in self._batch
            if TopicPartition(each.original_topic, each.original_partition) not in partitions
        ]

    # Offsets.

    def _commit(self, *, closing: bool) -> None:
        """Commit what the task says is safe. What fails is tried again at the next interval."""
        consumer = self.consumer
        if consumer is None:
            return
        self._reporter.settle()
        # Records that the task wants to read again are not to be committed.
        self._rewind(consumer)
        current = {
            partition: OffsetAndMetadata(offset) for partition, offset in self._delivered.items()
        }
        if not current:
            return
        try:
            allowed = self.task.pre_commit(current)
        except Exception as error:
            self.counts.commit_failures += 1
            if closing:
                logger.warning("task %s: the last offsets are not committed: %s", self.id, error)
                return
            logger.error("task %s: pre_commit failed, rewinding: %s", self.id, error)
            self._rewind_to_committed(consumer)
            return
        wanted = {
            partition: each
            for partition, each in (allowed or {}).items()
            if partition in current
            and each.offset <= current[partition].offset
            and self._committed.get(partition) != each.offset
        }
        if not wanted:
            return
        try:
            consumer.commit_sync(wanted)
        except CommitFailedError:
            # The group has moved on: others read these partitions now, and some records twice.
            self.counts.commit_failures += 1
            return
        except KafkaError as error:
            self.counts.commit_failures += 1
            logger.error("task %s: offsets are not committed: %s", self.id, error)
            return
        self.counts.commits += 1
        self._committed.update({partition: each.offset for partition, each in wanted.items()})

    def _rewind_to_committed(self, consumer: Consumer[bytes, bytes]) -> None:
        for partition in consumer.assignment():
            offset = self._committed.get(partition)
            if offset is not None:
                consumer.seek(partition, offset)
                self._delivered[partition] = offset
        self._batch = []
        self._batch_offsets = {}

    # Rebalances: called inside of `poll`.

    def on_partitions_assigned(self, partitions: Any) -> None:
        consumer = self.consumer
        if consumer is None:
            return
        fresh = list(partitions)
        for partition in fresh:
            position = consumer.position(partition)
            self._delivered[partition] = position
            self._committed[partition] = position
        if self._paused_for_retry or self._is_paused:
            consumer.pause(fresh)
        self._guarded(lambda: self.task.open(fresh))
        # A task that keeps offsets in its target sets them in `open`, before anything is read.
        self._guarded(lambda: self._rewind(consumer))

    def on_partitions_revoked(self, partitions: Any) -> None:
        gone = list(partitions)
        self._guarded(lambda: self._commit(closing=True))
        self._guarded(lambda: self._close(gone))

    def on_partitions_lost(self, partitions: Any) -> None:
        gone = list(partitions)
        self._guarded(lambda: self._close(gone))

    def _close(self, gone: Sequence[TopicPartition]) -> None:
        if not gone:
            return
        self.task.close(gone)
        for partition in gone:
            self._delivered.pop(partition, None)
            self._committed.pop(partition, None)
            self.context.paused.discard(partition)
        self._drop_batch(set(gone))

    def _guarded(self, call: Callable[[], None]) -> None:
        """A failure inside of a rebalance fails the task after it."""
        try:
            call()
        except Exception as error:
            self._rebalance_error = self._rebalance_error or error

    def _raise_rebalance_error(self) -> None:
        error, self._rebalance_error = self._rebalance_error, None
        if error is not None:
            raise error

    # The end.

    def interrupt(self) -> None:
        """From another thread: make `poll` return."""
        if self.consumer is not None:
            self.consumer.wakeup()

    def _end(self) -> None:
        consumer = self.consumer
        try:
            if not self.life.abandoned:
                if consumer is not None:
                    self._commit(closing=True)
                self.task.close(set(self._delivered))
        except Exception as error:
            logger.warning("task %s: closing failed: %s", self.id, error)
        try:
            self.task.stop()
        except Exception as error:
            logger.warning("task %s: stop failed: %s", self.id, error)
        self._delivered.clear()
        if consumer is not None:
            self.consumer = None
            consumer.close(timeout=1)


__all__ = ["ConnectError", "SinkCounts", "SinkRunner", "ToleranceExceeded"]
