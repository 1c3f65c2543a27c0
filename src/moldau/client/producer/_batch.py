# cython: annotation_typing=False
"""A batch on its way: the records of one partition that share one fate, and the futures of them.

Invariants: a batch ends once, with an offset, with an error or split into smaller ones; its
futures ask it what became of them and keep nothing themselves. Who waits for a future leaves a
function at the batch and then looks whether it has ended, and the end is noted before the functions
are taken: so no lock is needed, and none is missed.

Plain Python, and with `_batch.pxd` beside it also the source of a compiled module with the same
names and results.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any, NamedTuple

from moldau.client.errors import IllegalStateError, KafkaError, KafkaTimeoutError
from moldau.client.machine.producer_records import RecordMetadata
from moldau.wire.constants import NO_EPOCH, NO_OFFSET, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP

__all__ = ["Outcome", "ProducerBatch", "RecordFuture", "all_done", "errors_of", "failed_future"]

_SEQUENCE_MASK = 2**31 - 1

DeliveryCallback = Callable[[RecordMetadata | None, Exception | None], Any]


class Outcome(NamedTuple):
    """How a batch ended."""

    base_offset: int = NO_OFFSET
    log_append_time: int = NO_TIMESTAMP
    error: KafkaError | None = None
    record_errors: Mapping[int, KafkaError] | None = None


class ProducerBatch:
    """See the module. The accumulator's lock guards the builder, the loop owns everything else."""

    __slots__ = (
        "attempts",
        "base_offset",
        "base_sequence",
        "builder",
        "callbacks",
        "created_ms",
        "done",
        "drained_ms",
        "error",
        "in_retry",
        "is_part",
        "last_attempt_ms",
        "leader_epoch",
        "log_append_time",
        "memory_size",
        "outcome",
        "parts",
        "producer_epoch",
        "producer_id",
        "queue",
        "record_count",
        "record_errors",
        "sequence_reset",
        "waiters",
    )

    def __init__(self, queue: Any, builder: Any, created_ms: int, memory_size: int) -> None:
        self.queue = queue
        self.builder = builder
        self.created_ms = created_ms
        #: What of buffer.memory it holds; 0 once that was given back.
        self.memory_size = memory_size
        self.record_count = 0
        self.attempts = 0
        self.in_retry = False
        #: It came from a batch that was too large.
        self.is_part = False
        self.last_attempt_ms = created_ms
        self.drained_ms = created_ms
        #: Of the leader that it was last sent to.
        self.leader_epoch = NO_EPOCH
        self.producer_id = NO_PRODUCER_ID
        self.producer_epoch = NO_EPOCH
        self.base_sequence = NO_SEQUENCE
        self.sequence_reset = False
        self.callbacks: list[tuple[RecordFuture, DeliveryCallback]] | None = None
        self.waiters: list[Callable[[], Any]] = []
        #: How it ended, while earlier ones of its partition have not.
        self.outcome: Outcome | None = None
        self.done = False
        self.parts: list[tuple[int, ProducerBatch]] | None = None
        self.error: KafkaError | None = None
        self.record_errors: Mapping[int, KafkaError] | None = None
        self.base_offset = NO_OFFSET
        self.log_append_time = NO_TIMESTAMP

    @property
    def is_settled(self) -> bool:
        """Whether it is known how it ended; it is completed in the order of the partition."""
        return self.done or self.outcome is not None

    @property
    def has_sequence(self) -> bool:
        return self.base_sequence != NO_SEQUENCE

    @property
    def last_sequence(self) -> int:
        return (self.base_sequence + self.record_count - 1) & _SEQUENCE_MASK

    def set_producer_state(self, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence

    def reset_producer_state(
        self, producer_id: int, producer_epoch: int, base_sequence: int
    ) -> None:
        """Other numbers for a batch that was sent already: it is written again before it goes
        again."""
        self.set_producer_state(producer_id, producer_epoch, base_sequence)
        self.sequence_reset = True

    def encoded(self, *, is_transactional: bool) -> bytearray:
        """The whole batch as Produce takes it."""
        found: bytearray = self.builder.build(
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.base_sequence,
            is_transactional=is_transactional,
        )
        return found

    # The end.

    def end(self, outcome: Outcome) -> None:
        """From now on its futures know."""
        self.base_offset = outcome.base_offset
        self.log_append_time = outcome.log_append_time
        self.error = outcome.error
        self.record_errors = outcome.record_errors
        self._end()

    def split(self, parts: list[tuple[int, ProducerBatch]]) -> None:
        """End in favour of smaller batches, each with the index of its first record here."""
        self.parts = parts
        for future, callback in self.callbacks or ():
            part, _ = future.where()
            if part.callbacks is None:
                part.callbacks = []
            part.callbacks.append((future, callback))
        self.callbacks = None
        self._end()

    def _end(self) -> None:
        self.done = True
        if self.builder is not None:
            self.builder.release()
            self.builder = None

    def take_waiters(self) -> list[Callable[[], Any]]:
        waiters, self.waiters = self.waiters, []
        return waiters

    def error_of(self, index: int) -> KafkaError | None:
        if self.error is None:
            return None
        if self.record_errors:
            found = self.record_errors.get(index)
            return found or KafkaError(
                "the record was in a batch with one or more invalid records and was not appended"
            )
        return self.error


class RecordFuture:
    """What becomes of one record: `result()` in a thread, `await` in a coroutine."""

    __slots__ = ("_batch", "_index", "_key_size", "_timestamp", "_value_size")

    def __init__(
        self, batch: ProducerBatch, index: int, timestamp: int, key_size: int, value_size: int
    ) -> None:
        self._batch = batch
        self._index = index
        self._timestamp = timestamp
        self._key_size = key_size
        self._value_size = value_size

    def where(self) -> tuple[ProducerBatch, int]:
        """The batch that the record is in, also if it was split, and its index there."""
        batch, index = self._batch, self._index
        while batch.parts is not None:
            first, batch = next(each for each in reversed(batch.parts) if index >= each[0])
            index -= first
        return batch, index

    def __repr__(self) -> str:
        batch, index = self.where()
        if not batch.done:
            return f"<RecordFuture {batch.queue.key} pending>"
        error = batch.error_of(index)
        if error is not None:
            return f"<RecordFuture {batch.queue.key} failed: {error}>"
        return f"<RecordFuture {self.metadata()}>"

    def done(self) -> bool:
        """Whether it is known what became of the record.

        if future.done(): print(future.result().offset)

        >>> if future.done(): ...
        """
        return self.where()[0].done

    def cancelled(self) -> bool:
        """Never: a record that was accepted cannot be called back."""
        return False

    def cancel(self) -> bool:
        """A record that was accepted cannot be called back."""
        return False

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Wait, in a thread that may; raises what went wrong, or KafkaTimeoutError.

        >>> print(future.result(timeout=10).offset)
        """
        error = self.exception(timeout)
        if error is not None:
            raise error
        return self.metadata()

    def exception(self, timeout: float | None = None) -> KafkaError | None:
        """What went wrong, or None.

        >>> if future.exception(timeout=10) is not None: ...
        """
        while True:
            batch, index = self.where()
            if batch.done:
                return batch.error_of(index)
            self._wait(batch, timeout)

    def metadata(self) -> RecordMetadata:
        """What is known of the record; complete once it is done.

        >>> print(future.metadata().partition)
        """
        batch, index = self.where()
        queue = batch.queue
        offset = NO_OFFSET if batch.base_offset < 0 else batch.base_offset + index
        return RecordMetadata(
            queue.topic,
            queue.partition,
            offset,
            self._timestamp if batch.log_append_time < 0 else batch.log_append_time,
            self._key_size,
            self._value_size,
        )

    def add_done_callback(self, callback: Callable[[RecordFuture], Any]) -> None:
        """Call it with this future once it is done, in the client's thread; at once if it is.

        >>> future.add_done_callback(lambda done: print(done.exception()))
        """

        def tell() -> None:
            # A batch that was split has ended, the record's own may not have.
            if not self.done():
                self.add_done_callback(callback)
            elif told.acquire(blocking=False):
                callback(self)

        told = threading.Lock()
        batch, _ = self.where()
        batch.waiters.append(tell)
        if batch.done:
            tell()

    def _wait(self, batch: ProducerBatch, timeout: float | None) -> None:
        if threading.get_ident() == batch.queue.home_thread:
            raise IllegalStateError(
                "waiting for a record in the thread that sends it",
                advice="await the future, or take the result in on_delivery",
            )
        ended = threading.Event()
        batch.waiters.append(ended.set)
        if not batch.done and not ended.wait(timeout):
            raise KafkaTimeoutError(f"no answer for {batch.queue.key} within {timeout} s")

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        while True:
            batch, _ = self.where()
            if batch.done:
                return self.result()
            loop = asyncio.get_running_loop()
            ended = loop.create_future()
            batch.waiters.append(partial(loop.call_soon_threadsafe, _set, ended))
            if not batch.done:
                yield from ended


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def failed_future(queue: Any, error: KafkaError) -> RecordFuture:
    """Of a record that was never taken on."""
    batch = ProducerBatch(queue, None, 0, 0)
    batch.end(Outcome(error=error))
    return RecordFuture(batch, 0, NO_TIMESTAMP, -1, -1)


def all_done(futures: list[RecordFuture]) -> bool:
    """Whether it is known what became of all these records."""
    last = None
    for each in futures:
        batch = each._batch
        # Records in a row are mostly in one batch.
        if batch is not last:
            if not each.done():
                return False
            last = batch if batch.parts is None else None
    return True


def errors_of(futures: list[RecordFuture]) -> list[KafkaError]:
    """What went wrong with records that are done."""
    found = []
    for each in futures:
        batch = each._batch
        if batch.error is not None or batch.parts is not None:
            error = each.exception(0)
            if error is not None:
                found.append(error)
    return found
