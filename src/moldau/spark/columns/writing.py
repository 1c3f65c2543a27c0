"""The rows of Arrow batches as records of topics.

The producer is the client's own: its accumulator, sender and transactions. Only the way of a row
into an open batch is another (`_rows`); whatever that cannot do, for want of a batch, of memory or
of metadata, goes the way of every record, `Producer.send`.

Invariants: rows are never held beside the producer's `buffer.memory`; after `flush` every
row is acknowledged, or it has raised; a transaction ends by `abort`, by `close`, or, once
`prepared` has been called, by the holder of its result.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from moldau.client.errors import (
    ClosedError,
    IllegalStateError,
    InvalidProducerEpochError,
    KafkaError,
    KafkaTimeoutError,
    ProducerFencedError,
)
from moldau.client.producer import Producer
from moldau.client.producer._batch import ProducerBatch
from moldau.spark.client_cache import ClientCache
from moldau.spark.columns._rows import Place, RowAppender, Rows, Slot
from moldau.spark.columns.errors import RowError
from moldau.spark.columns.inputs import rows_of
from moldau.spark.columns.schema import pyarrow

__all__ = ["PRODUCERS_IDLE_MAX", "ColumnWriter", "Prepared", "producers", "transactional_producers"]

# In place of Kafka's own, where nothing was set. Rows come in bulk, not one by one; and a writer is
# made for every batch of a query, while the transaction before it may still be ending.
DEFAULTS: Final = {"batch.size": 256 * 1024, "retry.backoff.ms": 20}
# Beyond what a broker needs to abort; closing must not hold a task back for ever.
_CLOSE_S: Final = 30.0
# Errors of the writer as a whole, whatever row it was that met them.
_OF_WRITER: Final = (ProducerFencedError, InvalidProducerEpochError, ClosedError)
PRODUCERS_IDLE_MAX: Final = 2
#: Producers without transactions, which have sent all that they were given. A streaming query
#: creates a writer for every batch and task; a new producer would ask for metadata and for a
#: producer id every time.
producers: Final = ClientCache(
    Producer, lambda producer: producer.close(0), idle_max=PRODUCERS_IDLE_MAX, shared=False
)
# Until the first writer says for which transactional id it is.
_ANY_ID: Final = "moldau-columns"
#: Producers whose transaction is prepared, so that somebody else ends it. The next writer begins
#: with a new epoch, of whatever transactional id, and needs no connections, no metadata and, for
#: an id that the producer had before, no coordinator.
transactional_producers: Final = ClientCache(
    lambda settings: Producer({**settings, "transactional.id": _ANY_ID}),
    lambda producer: producer.close(0),
    idle_max=PRODUCERS_IDLE_MAX,
    shared=False,
)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A transaction that holds everything and waits for its end, by any process that may end it."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    #: Without records the coordinator knows of no transaction: there is nothing to end.
    record_count: int
    #: The sum, modulo 2^64, of a checksum of every record: topic, key, value and headers.
    digest: int
    #: EndTxn goes in version 5 for 2 (KIP-890), in version 4 or less before.
    transaction_version: int = 1


class ColumnWriter:
    """Produces rows. One thread uses it, and closes it."""

    def __init__(
        self,
        config: Mapping[str, str],
        *,
        transactional_id: str | None = None,
        default_topic: str | None = None,
    ) -> None:
        """`config` has the producer's keys by Kafka's names. With a transactional id a transaction
        is begun: earlier writers with the same id are fenced, what they left is aborted. This does
        not wait for that, the first use does. Rows without a topic go to `default_topic`."""
        settings: dict[str, Any] = {**DEFAULTS, **config}
        settings.pop("transactional.id", None)
        self._settings = settings
        self._transactional_id = transactional_id
        self._default_topic = default_topic
        self._cache = producers if transactional_id is None else transactional_producers
        self._producer = self._cache.take(settings)
        self._core = self._producer._core
        self._failure: Exception | None = None
        self._places: dict[str, Place] = {}
        self._is_prepared = False
        self._is_open = True
        found = self._core.settings
        # Who wants to see every record, or to choose its partition, sees it as an object.
        self._by_columns = found.partitioner is None and not found.interceptors
        self._appender = RowAppender(
            digests=transactional_id is not None, ignore_keys=found.partitioner_ignore_keys
        )
        self._beginning: Future[None] | None = None
        if transactional_id is not None:
            self._core.keeps_transaction = False
            begin = self._core.transaction_calls.begin_as(transactional_id)
            self._beginning = self._producer._thread.submit(begin)

    @property
    def record_count(self) -> int:
        """Rows taken on so far."""
        return self._appender.row_number

    @property
    def digest(self) -> int:
        """Of the rows taken on so far, for a writer with a transactional id; else 0."""
        return self._appender.digest

    # Rows.

    def write(self, batch: pyarrow.RecordBatch) -> None:
        """Take on the rows; blocks while `buffer.memory` is full, for `max.block.ms` at most.

        Raises RowError for what is wrong with a row or its record, also of an earlier batch, and
        KafkaError for what is wrong with the producer, as when it was fenced.
        """
        self._check_open()
        self._await_begin()
        if batch.num_rows == 0:
            return
        rows, topics = rows_of(
            batch,
            default_topic=self._default_topic,
            first_row=self.record_count,
            now_ms=time.time_ns() // 1_000_000,
        )
        places = [self._place(name) for name in topics]
        row = 0
        while row < rows.row_count:
            self._raise_failure()
            if self._by_columns:
                row = self._append(rows, row, places)
            if row < rows.row_count:
                self._send(rows, row, places[rows.topic_index(row)])
                row += 1
        self._raise_failure()

    def _place(self, topic: str) -> Place:
        place = self._places.get(topic)
        if place is None:
            place = self._places[topic] = Place(topic)
        return place

    def _append(self, rows: Rows, first: int, places: list[Place]) -> int:
        """Put rows into open batches, as far as there are any."""
        accumulator = self._core.accumulator
        self._check_transaction()
        with accumulator.lock:
            stickies = []
            for place in places:
                entry = accumulator.topics.get(place.topic)
                if entry is None:
                    place.update(0, -1)
                else:
                    place.update(len(entry.queues), entry.sticky.partition)
                    stickies.append((entry.sticky, place))
            row = self._appender.append(rows, first, places)
            for sticky, place in stickies:
                sticky.produced += place.sticky_size
        return row

    def _check_transaction(self) -> None:
        if self._core.transactions is None or self._transactional_id is None:
            return
        try:
            self._core.transactions.check_send()
        except KafkaError:
            # The record that it failed for says more.
            self._raise_failure()
            raise

    def _send(self, rows: Rows, row: int, place: Place) -> None:
        """The ordinary way of a record, which opens a batch for those after it."""
        key, value, partition, timestamp, headers = rows.record(row)
        number = self.record_count
        try:
            future = self._producer.send(place.topic, value, key, partition, timestamp, headers)
        except (KafkaError, ValueError, TypeError) as error:
            self._raise_failure()
            raise self._row_error(error, place.topic, number) from error
        batch, index = future.where()
        if batch.done and batch.error is not None:
            cause = batch.error_of(index) or batch.error
            raise self._row_error(cause, place.topic, number) from cause
        self._appender.count(rows, row, place)
        self._follow(batch, index, number, place)

    def _follow(self, batch: ProducerBatch, index: int, number: int, place: Place) -> None:
        """Remember which rows a batch has, to name them if it fails, and append to it."""
        partition = batch.queue.partition
        slots = place.slots
        slot = slots[partition] if partition < len(slots) else None
        if slot is not None and slot.batch is batch:
            slot.note(number)
            return
        slot = Slot(batch)
        for _ in range(index + 1):
            slot.note(number)
        with self._core.accumulator.lock:
            count = len(self._core.accumulator.topics[place.topic].queues)
            place.update(max(count, partition + 1), place.sticky_partition)
            place.slots[partition] = slot
        on_end = partial(self._on_end, batch, slot, 0)
        batch.waiters.append(on_end)
        if batch.done:
            on_end()

    def _on_end(self, batch: ProducerBatch, slot: Slot, first: int) -> None:
        """In the producer's thread: a batch is done, or was split. May be called twice."""
        if batch.parts is not None:
            for offset, part in batch.parts:
                on_end = partial(self._on_end, part, slot, first + offset)
                part.waiters.append(on_end)
                if part.done:
                    on_end()
            return
        if batch.error is None or self._failure is not None:
            return
        index = min(batch.record_errors) if batch.record_errors else 0
        error = batch.error_of(index) or batch.error
        self._failure = self._row_error(error, batch.queue.topic, slot.row(first + index))
        self._failure.__cause__ = error

    def _row_error(self, error: Exception, topic: str, number: int) -> Exception:
        return error if isinstance(error, _OF_WRITER) else RowError(str(error), topic, number)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _await_begin(self) -> None:
        """Until the transaction has begun; raises KafkaError if it has not, and closes."""
        beginning, self._beginning = self._beginning, None
        if beginning is None:
            return
        try:
            beginning.result()
        except BaseException:
            beginning.cancel()
            self._is_open = False
            self._producer.close(0)
            raise

    def _check_open(self) -> None:
        if not self._is_open:
            raise ClosedError("the writer is closed")
        if self._is_prepared:
            raise IllegalStateError(
                "the transaction is prepared and takes no more rows", advice="use another writer"
            )

    # The end.

    def flush(self) -> None:
        """Until every row is acknowledged; raises what failed, RowError or KafkaError."""
        if not self._is_open:
            raise ClosedError("the writer is closed")
        # Every batch ends within delivery.timeout.ms; what is above that is for the loop.
        limit_s = self._core.settings.delivery_timeout_ms / 1000 + _CLOSE_S
        try:
            self._producer.flush(limit_s)
        except KafkaTimeoutError:
            self._raise_failure()
            raise
        self._raise_failure()

    def prepared(self) -> Prepared:
        """Flush, and leave the transaction open for another process to end."""
        manager = self._core.transactions
        if self._transactional_id is None or manager is None:
            raise IllegalStateError(
                "only a writer with a transactional id prepares a transaction",
                advice="give transactional_id",
            )
        self._await_begin()
        self.flush()
        status = manager.status
        status.fail_if_error()
        self._is_prepared = True
        self._core.keeps_transaction = True
        return Prepared(
            self._transactional_id,
            status.producer_id.producer_id,
            status.producer_id.epoch,
            self.record_count,
            self.digest,
            2 if status.is_v2 else 1,
        )

    def abort(self) -> None:
        """Abort the transaction, also a prepared one; the writer takes no more rows."""
        if self._transactional_id is None:
            raise IllegalStateError("without a transactional id there is nothing to abort")
        if not self._is_open:
            raise ClosedError("the writer is closed")
        self._await_begin()
        self._is_prepared = True
        self._core.keeps_transaction = False
        manager = self._core.transactions
        if manager is not None and manager.status.has_ongoing_transaction:
            self._producer.abort_transaction()

    def close(self) -> None:
        """Let go of everything. A transaction that is not prepared is aborted; without one, what
        was not flushed may be lost. A second call does nothing."""
        if not self._is_open:
            return
        try:
            if self._transactional_id is not None and not self._core.keeps_transaction:
                self.abort()
        except KafkaError:
            # Fenced, or no answer: the coordinator aborts it, at its timeout at the latest.
            pass
        finally:
            # One that could not begin is closed already.
            if self._is_open:
                self._is_open = False
                self._let_go()

    def _let_go(self) -> None:
        if self._failure is None and self._has_sent_all and self._needs_no_end:
            self._cache.give_back(self._settings, self._producer)
        else:
            self._producer.close(0 if self._failure is not None else _CLOSE_S)

    @property
    def _has_sent_all(self) -> bool:
        return not self._core.accumulator.has_incomplete and not self._core.path.closed

    @property
    def _needs_no_end(self) -> bool:
        """Whether there is no transaction, or none that this producer would have to end."""
        if self._transactional_id is None:
            return True
        manager = self._core.transactions
        return self._core.keeps_transaction and manager is not None and manager.can_start_over

    def __enter__(self) -> ColumnWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
