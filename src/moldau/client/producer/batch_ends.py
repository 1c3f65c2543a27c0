"""What becomes of a batch: done, sent again, sent in smaller pieces, or failed.

Invariant: a batch ends once, and the batches of a partition end in the order of sending.
"""

from __future__ import annotations

import logging

from moldau.client.cluster import ClusterClient
from moldau.client.errors import KafkaError, KafkaTimeoutError
from moldau.client.metrics import ProducerMetrics
from moldau.client.producer._batch import Outcome, ProducerBatch
from moldau.client.producer.accumulator import Accumulator
from moldau.client.producer.delivery import finish
from moldau.client.producer.failures import FailedSends
from moldau.client.producer.machine.produce import PartitionAnswer
from moldau.client.producer.machine.transactions import TransactionManager
from moldau.client.producer.settings import ProducerSettings
from moldau.times import ElapsedMs
from moldau.wire.errors import ErrorCode

__all__ = ["BatchEnds"]

_log = logging.getLogger(__name__)


class BatchEnds:
    """See the module. Called on the loop."""

    def __init__(
        self,
        settings: ProducerSettings,
        cluster: ClusterClient,
        accumulator: Accumulator,
        transactions: TransactionManager | None,
        metrics: ProducerMetrics,
        failures: FailedSends,
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._accumulator = accumulator
        self._txn = transactions
        self._metrics = metrics
        self._failures = failures

    def on_lost(self, batches: list[ProducerBatch], error: KafkaError) -> None:
        """No response, or one that cannot be read: each batch is tried again or fails."""
        code = ErrorCode.UNKNOWN_SERVER_ERROR if error.code is None else error.code
        answer = PartitionAnswer(code, error_message=error.message)
        for batch in batches:
            self.on_refused(batch, answer, error)

    def on_refused(self, batch: ProducerBatch, answer: PartitionAnswer, error: KafkaError) -> None:
        """A batch was refused, or lost."""
        now_ms = self._cluster.clock.elapsed_ms()
        code = answer.error_code
        settings = self._settings
        if code == ErrorCode.MESSAGE_TOO_LARGE and batch.record_count > 1 and not batch.is_settled:
            self._split(batch, now_ms)
        elif self._can_retry(batch, answer, error, now_ms):
            _log.log(
                logging.WARNING if batch.attempts else logging.INFO,
                "Produce to %s failed and is retried: %s",
                batch.queue.key,
                error,
            )
            self._metrics.retried(batch.queue.topic, batch.record_count)
            with self._accumulator.lock:
                self._accumulator.reenqueue(batch, now_ms)
        elif code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            # The broker has it, but no longer knows where.
            self.complete(batch, PartitionAnswer())
        else:
            # Whether it has arrived is not known if it was given up only for its many attempts.
            adjust = batch.attempts < settings.retries
            is_unknown = not adjust and not batch.is_settled and batch.has_sequence
            self._end_failed(batch, error, answer.record_errors, adjust=adjust)
            if is_unknown and self._txn is not None:
                self._txn.sequences.on_given_up_unknown(batch)
        if error.code is not None and error.code.refresh_metadata:
            self._cluster.request_refresh()
        if settings.orders_by_muting:
            with self._accumulator.lock:
                self._accumulator.unmute(batch.queue)

    def _can_retry(
        self, batch: ProducerBatch, answer: PartitionAnswer, error: KafkaError, now_ms: ElapsedMs
    ) -> bool:
        settings = self._settings
        if (
            batch.is_settled
            or batch.attempts >= settings.retries
            or now_ms - batch.created_ms >= settings.delivery_timeout_ms
        ):
            return False
        if self._txn is None:
            return error.retriable
        return self._txn.sequences.can_retry(
            batch, answer.error_code, error, answer.log_start_offset
        )

    def _split(self, batch: ProducerBatch, now_ms: ElapsedMs) -> None:
        _log.info("A batch for %s is too large for the broker and is split", batch.queue.key)
        self._metrics.batch_split()
        with self._accumulator.lock:
            self._accumulator.split(batch, now_ms)
        for waiter in batch.take_waiters():
            waiter()

    def complete(self, batch: ProducerBatch, answer: PartitionAnswer) -> None:
        """The broker has a batch."""
        if self._txn is not None:
            self._txn.sequences.on_completed(batch, answer.base_offset)
        if self._settings.orders_by_muting:
            with self._accumulator.lock:
                self._accumulator.unmute(batch.queue)
        if not batch.is_settled:
            self._settle(batch, Outcome(answer.base_offset, answer.log_append_time_ms))

    def _end_failed(
        self,
        batch: ProducerBatch,
        error: KafkaError,
        record_errors: dict[int, KafkaError] | None = None,
        *,
        adjust: bool = False,
    ) -> None:
        if batch.is_settled:
            return
        self._failures.add(batch.queue.key, batch.record_count, error)
        if self._txn is not None:
            try:
                self._txn.sequences.on_failed(batch, error, adjust=adjust)
            except KafkaError as problem:
                _log.debug("After a failed batch: %s", problem)
        self._settle(batch, Outcome(error=error, record_errors=record_errors))

    def _settle(self, batch: ProducerBatch, outcome: Outcome) -> None:
        with self._accumulator.lock:
            ready = self._accumulator.settle(batch, outcome)
        for each in ready:
            finish(each)
            with self._accumulator.lock:
                self._accumulator.discard(each)

    def expire(self, now_ms: ElapsedMs) -> None:
        """Give up what has passed `delivery.timeout.ms`."""
        with self._accumulator.lock:
            waiting, in_flight = self._accumulator.expired(now_ms)
        for batch in (*waiting, *in_flight):
            error = KafkaTimeoutError(
                f"Expiring {batch.record_count} record(s) for {batch.queue.key}: "
                f"{now_ms - batch.created_ms} ms has passed since batch creation",
                advice="is the broker overloaded? or raise delivery.timeout.ms",
            )
            was_sent = batch.in_retry or batch.has_sequence
            self._end_failed(batch, error)
            if self._txn is not None and was_sent:
                self._txn.sequences.on_given_up_unknown(batch)

    # More than one batch.

    def abort_waiting(self, error: KafkaError) -> None:
        """Fail what was never sent."""
        with self._accumulator.lock:
            batches = self._accumulator.abandon_waiting(unsent_only=True)
        for batch in batches:
            self.drop(batch, error)

    def fail_all(self, error: KafkaError) -> None:
        """Fail everything that is left."""
        with self._accumulator.lock:
            self._accumulator.abandon_waiting()
            batches = sorted(self._accumulator.incomplete, key=lambda each: each.created_ms)
        for batch in batches:
            self.drop(batch, error)

    def drop(self, batch: ProducerBatch, error: KafkaError) -> None:
        """Fail a batch for an error that is known already and concerns more than this batch."""
        batch.queue.sequences.remove(batch)
        if not batch.is_settled:
            self._failures.add(batch.queue.key, batch.record_count, error)
            self._settle(batch, Outcome(error=error))
