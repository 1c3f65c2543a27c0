"""Sends what tasks write, and commits it together with the offsets of their inputs.

With exactly_once_v2 outputs, changelogs and offsets of a commit are one transaction. With
at_least_once offsets are committed after everything that was written is acknowledged.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from moldau.client import Consumer, Producer
from moldau.client.errors import (
    CommitFailedError,
    FencedMemberEpochError,
    IllegalGenerationError,
    InvalidPidMappingError,
    InvalidProducerEpochError,
    KafkaError,
    KafkaTimeoutError,
    ProducerFencedError,
    RebalanceInProgressError,
    StaleMemberEpochError,
    UnknownMemberIdError,
    WakeupError,
)
from moldau.client.metrics import MetricName
from moldau.client.producer import DeliveryCallback, RecordFuture
from moldau.client.topics import OffsetAndMetadata, TopicPartition
from moldau.clock import Clock
from moldau.streams.errors import CommitPutOffError, StreamsError, TaskMigratedError
from moldau.streams.records import Produced, TaskCore

T = TypeVar("T")
Offsets = Mapping[TopicPartition, OffsetAndMetadata]

#: Another instance runs the tasks by now, or this thread's transaction was ended by another.
MIGRATED = (
    CommitFailedError,
    FencedMemberEpochError,
    IllegalGenerationError,
    InvalidPidMappingError,
    InvalidProducerEpochError,
    ProducerFencedError,
    RebalanceInProgressError,
    StaleMemberEpochError,
    UnknownMemberIdError,
)

_log = logging.getLogger(__name__)


class Writer:
    """Of one stream thread: its producer, and the transaction that is open in it."""

    def __init__(
        self,
        settings: Callable[[], Mapping[str, Any]],
        *,
        exactly_once: bool,
        task_timeout_ms: int,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._exactly_once = exactly_once
        self._task_timeout_ms = task_timeout_ms
        self._clock = clock
        self._producer: Producer | None = None
        self._send: Callable[..., RecordFuture] = self._send_first
        self._in_transaction = False
        self._id = ""
        self._failed_before = 0
        self._counts: dict[str, int] = {}
        #: The last record that was sent to each changelog partition since the last commit.
        self._last: dict[tuple[str, int], RecordFuture] = {}
        # Records that the brokers refused and a handler skipped: of which task, and what is
        # written about them. Added in the producer's thread.
        self._skipped: deque[tuple[TaskCore, Iterable[Produced]]] = deque()
        self._skipped_count = 0

    @property
    def producer(self) -> Producer:
        if self._producer is None:
            raise StreamsError("the producer of the thread is closed")
        return self._producer

    def open(self) -> None:
        """Make the producer; with exactly_once_v2 this ends the transaction of a predecessor."""
        settings = self._settings()
        self._id = settings["client.id"]
        self._producer = Producer(settings)
        if self._exactly_once:
            self._patiently(self._producer.init_transactions)
        self._in_transaction = False
        self._last.clear()
        self._send = self._send_first if self._exactly_once else self._producer.send
        self._failed_before = self._failed_count()
        self._skipped_count = 0

    # Records.

    def _send_first(self, *arguments: Any) -> RecordFuture:
        """The first record of a transaction begins it."""
        producer = self.producer
        self._begin()
        self._send = producer.send
        return producer.send(*arguments)

    def _begin(self) -> None:
        if self._exactly_once and not self._in_transaction:
            try:
                self.producer.begin_transaction()
            except MIGRATED as error:
                raise TaskMigratedError(f"the transaction could not begin: {error}") from error
            self._in_transaction = True

    def collector(
        self,
        changelogs: frozenset[str],
        counts: dict[str, list[int]],
        watch: Callable[[Produced], DeliveryCallback] | None = None,
    ) -> Callable[[Produced], None]:
        """What a task writes to; `counts` has records and bytes by topic, of sinks only.

        `watch` makes the callback of a record of a sink, if somebody wants to know its outcome.
        """
        last = self._last

        def collect(record: Produced) -> None:
            topic, partition = record.topic, record.partition
            future = self._send(
                topic,
                record.value,
                record.key,
                partition,
                record.timestamp,
                record.headers or None,
                None if watch is None or topic in changelogs else watch(record),
            )
            if topic in changelogs and partition is not None:
                last[topic, partition] = future
                return
            count = counts.get(topic)
            if count is not None:
                count[0] += 1
                count[1] += len(record.value or b"") + len(record.key or b"")

        return collect

    def skip(self, core: TaskCore, letters: Iterable[Produced]) -> None:
        """A handler skips a record of this task that could not be sent."""
        self._skipped.append((core, letters))

    def _settle_skipped(self) -> None:
        """Count the skipped records, and send what is written about them."""
        if not self._skipped:
            return
        while self._skipped:
            core, letters = self._skipped.popleft()
            core.dropped += 1
            self._skipped_count += 1
            for letter in letters:
                place = (letter.key, letter.partition, letter.timestamp, letter.headers or None)
                self._send(letter.topic, letter.value, *place)
        self._patiently(self.producer.flush)

    def _failed_count(self) -> int:
        """How many records could not be sent. A callback for each would cost more than a send."""
        metric = MetricName("record-error-total", "producer-metrics", tags={"client-id": self._id})
        found = self.producer.metrics().get(metric)
        return 0 if found is None else int(found.value)

    def partition_count(self, topic: str) -> int:
        """The number of partitions of a topic that a partitioner writes to."""
        count = self._counts.get(topic)
        if count is None:
            count = self._counts[topic] = len(self.producer.partitions_for(topic))
        return count

    def push(self) -> None:
        """Nothing is left to process: send what would wait for linger.ms.

        In a transaction nobody can read it before the commit, which sends it anyway.
        """
        if not self._exactly_once:
            self._patiently(self.producer.flush)

    # Commits.

    @property
    def has_written(self) -> bool:
        """Whether a transaction is open."""
        return self._in_transaction

    def commit(
        self, offsets: Offsets, consumer: Consumer[Any, Any], *, closing: bool = False
    ) -> dict[TopicPartition, int]:
        """Commit what was written with these offsets: the ends of the changelogs it wrote to.

        Raises TaskMigratedError if another instance has the tasks by now, CommitPutOffError if only
        the offsets have to wait for a rebalance; tasks that are closed cannot wait.
        """
        try:
            if self._exactly_once:
                self._commit_transaction(offsets, consumer)
            else:
                self._patiently(self.producer.flush)
                self._settle_skipped()
                failed = self._failed_count() - self._failed_before - self._skipped_count
                if failed:
                    raise StreamsError(
                        f"{failed} records could not be written: the log of the producer "
                        f"{self._id} has the reasons"
                    )
                if offsets:
                    self._patiently(lambda: consumer.commit_sync(offsets))
            ends = {
                TopicPartition(*key): future.result(0).offset + 1
                for key, future in self._last.items()
            }
        except RebalanceInProgressError as error:
            if self._exactly_once or closing:
                raise TaskMigratedError(f"the commit was refused: {error}") from error
            raise CommitPutOffError(f"the commit was put off: {error}") from error
        except MIGRATED as error:
            raise TaskMigratedError(f"the commit was refused: {error}") from error
        self._last.clear()
        return ends

    def _commit_transaction(self, offsets: Offsets, consumer: Consumer[Any, Any]) -> None:
        if not offsets and not self._in_transaction:
            return
        self._begin()
        producer = self.producer
        if offsets:
            metadata = consumer.group_metadata()
            self._patiently(lambda: producer.send_offsets_to_transaction(offsets, metadata))
        self._patiently(producer.commit_transaction)
        self._in_transaction = False
        self._send = self._send_first

    def _patiently(self, call: Callable[[], T]) -> T:
        """Repeat a call that timed out, for up to task.timeout.ms."""
        deadline_ms = self._clock.elapsed_ms() + self._task_timeout_ms
        while True:
            try:
                return call()
            except WakeupError:
                # For the loop, which looks for what there is to do after the commit.
                continue
            except KafkaTimeoutError:
                if self._clock.elapsed_ms() > deadline_ms:
                    raise
                _log.warning("a call to the brokers timed out and is repeated", exc_info=True)

    def abort(self) -> None:
        """Give up what was written since the last commit; after an error the producer is new."""
        self._last.clear()
        if self._producer is None or not self._exactly_once:
            return
        if self._in_transaction:
            self._in_transaction = False
            self._send = self._send_first
            try:
                self._producer.abort_transaction()
            except KafkaError as error:
                _log.info("the transaction could not be aborted: %s", error)
                self.close()
                self.open()

    def close(self) -> None:
        """Close the producer; an open transaction is aborted by the brokers or its successor."""
        producer, self._producer = self._producer, None
        self._send = self._send_first
        if producer is not None:
            producer.close(timeout=0 if self._in_transaction else None)
        self._in_transaction = False
