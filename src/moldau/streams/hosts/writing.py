"""Sends what tasks write, and commits it together with the offsets of their inputs.

With exactly_once_v2 outputs, changelogs and offsets of a commit are one transaction. With
at_least_once offsets are committed after everything that was written is acknowledged.
"""

from __future__ import annotations

import logging
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
from moldau.client.producer import DeliveryCallback, RecordFuture
from moldau.client.topics import OffsetAndMetadata, TopicPartition
from moldau.clock import Clock
from moldau.streams.errors import (
    CommitPutOffError,
    StreamsError,
    TaskMigratedError,
)
from moldau.streams.hosts.deliveries import Deliveries, TaskCorruptedError
from moldau.streams.machine.error_handlers import Handlers
from moldau.streams.records import Produced

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
        handlers: Handlers,
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
        #: What became of what was written.
        self.deliveries = Deliveries(handlers, exactly_once=exactly_once)
        self._counts: dict[str, int] = {}
        #: The last record that was sent to each changelog partition since the last commit.
        self._last: dict[tuple[str, int], RecordFuture] = {}

    @property
    def producer(self) -> Producer:
        if self._producer is None:
            raise StreamsError("the producer of the thread is closed")
        return self._producer

    def open(self) -> None:
        """Make the producer; with exactly_once_v2 this ends the transaction of a predecessor."""
        self.deliveries.clear()
        self._producer = Producer(self._settings())
        self._producer.watch_failures(self.deliveries.on_failed)
        if self._exactly_once:
            self._patiently(self._producer.init_transactions)
        self._in_transaction = False
        self._last.clear()
        self._send = self._send_first if self._exactly_once else self._producer.send

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
        """What a task writes to; `counts` has records and bytes by topic, without changelogs.

        `watch` makes the callback of a record, if somebody wants to know its outcome.
        """
        last = self._last

        def collect(record: Produced) -> None:
            topic, partition = record.topic, record.partition
            try:
                future = self._send(
                    topic,
                    record.value,
                    record.key,
                    partition,
                    record.timestamp,
                    record.headers or None,
                    None if watch is None else watch(record),
                )
            except KafkaError:
                # Of a transaction that was broken by an earlier record.
                self.deliveries.check()
                raise
            if topic in changelogs and partition is not None:
                last[topic, partition] = future
                return
            count = counts.get(topic)
            if count is None:
                # Of a chooser, or for dead letters: no metric, but who writes to it is asked for.
                count = counts[topic] = [0, 0]
            count[0] += 1
            count[1] += len(record.value or b"") + len(record.key or b"")

        return collect

    def _settle_skipped(self) -> bool:
        """Count the skipped records, and send what is written about them; whether there are any."""
        found = False
        for core, task_id, letters in self.deliveries.take_skipped():
            found = True
            core.dropped += 1
            for letter in letters:
                place = (letter.key, letter.partition, letter.timestamp, letter.headers or None)
                watch = self.deliveries.watch_letter(task_id, letter)
                self._send(letter.topic, letter.value, *place, watch)
        return found

    def partition_count(self, topic: str) -> int:
        """The number of partitions of a topic that a partitioner writes to."""
        count = self._counts.get(topic)
        if count is None:
            found = self._patiently(lambda: self.producer.partitions_for(topic))
            count = self._counts[topic] = len(found)
        return count

    def push(self) -> None:
        """Nothing is left to process: send what would wait for linger.ms.

        In a transaction nobody can read it before the commit, which sends it anyway.
        """
        if not self._exactly_once:
            self._flush()

    def _flush(self) -> None:
        """Wait until everything is delivered; raises what follows if something cannot be."""
        self._patiently(self.producer.flush)
        while self._settle_skipped():
            self._patiently(self.producer.flush)
        self.deliveries.check()

    # Commits.

    @property
    def shares_commits(self) -> bool:
        """Whether the tasks of the thread are committed together or not at all."""
        return self._exactly_once

    @property
    def has_written(self) -> bool:
        """Whether a transaction is open."""
        return self._in_transaction

    def commit(
        self, offsets: Offsets, consumer: Consumer[Any, Any], *, closing: bool = False
    ) -> dict[TopicPartition, int]:
        """Commit what was written with these offsets: the ends of the changelogs it wrote to.

        Raises TaskMigratedError if another instance has the tasks by now, TaskCorruptedError if
        tasks have to start over, CommitPutOffError if only the offsets have to wait for a
        rebalance; tasks that are closed cannot wait.
        """
        try:
            if self._exactly_once:
                self._commit_transaction(offsets, consumer)
            else:
                self._flush()
                if offsets:
                    self._patiently(lambda: consumer.commit_sync(offsets))
            # The last record of a changelog may be one that a handler skipped.
            ends = {
                TopicPartition(*key): future.result(0).offset + 1
                for key, future in self._last.items()
                if future.exception(0) is None
            }
        except RebalanceInProgressError as error:
            if self._exactly_once or closing:
                raise TaskMigratedError(f"the commit was refused: {error}") from error
            raise CommitPutOffError(f"the commit was put off: {error}") from error
        except MIGRATED as error:
            raise TaskMigratedError(f"the commit was refused: {error}") from error
        except TaskCorruptedError as error:
            if closing:
                raise TaskMigratedError(f"the last commit of tasks failed: {error}") from error
            raise
        self._last.clear()
        return ends

    def _commit_transaction(self, offsets: Offsets, consumer: Consumer[Any, Any]) -> None:
        if not offsets and not self._in_transaction:
            return
        self._begin()
        producer = self.producer
        try:
            if offsets:
                metadata = consumer.group_metadata()
                self._patiently(lambda: producer.send_offsets_to_transaction(offsets, metadata))
            self._patiently(producer.commit_transaction)
        except MIGRATED:
            raise
        except KafkaError:
            # A record that was not delivered breaks its transaction.
            self.deliveries.check()
            raise
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
                if self._clock.elapsed_ms() > deadline_ms or self.deliveries.has_failure:
                    raise
                _log.warning("a call to the brokers timed out and is repeated", exc_info=True)

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Of a task that starts over: the ends of its changelogs belong to no commit."""
        for key in partitions:
            self._last.pop((key.topic, key.partition), None)

    def abort(self) -> None:
        """Give up what was written since the last commit; after an error the producer is new."""
        self._last.clear()
        self.deliveries.clear()
        if self._producer is None or not self._exactly_once:
            return
        if self._in_transaction:
            self._in_transaction = False
            self._send = self._send_first
            try:
                self._producer.abort_transaction()
            except KafkaError as error:
                _log.info("the transaction could not be aborted: %s", error)
                # At once: the new producer ends the transaction, and brokers may be away for long.
                self.close(at_once=True)
                self.open()
            self.deliveries.clear()

    def close(self, *, at_once: bool = False) -> None:
        """Close the producer; an open transaction is aborted by the brokers or its successor."""
        producer, self._producer = self._producer, None
        self._send = self._send_first
        if producer is not None:
            producer.close(timeout=0 if at_once or self._in_transaction else None)
        self._in_transaction = False
