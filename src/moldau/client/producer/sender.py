"""Sends what the accumulator holds, and deals with what brokers answer.

Decided here: which nodes can be sent to, when to look at the queues again, and what a response
means for a batch: done, again, in smaller pieces, or never. What always holds: at most
`max.in.flight.requests.per.connection` requests are under way to a node, and requests leave in the
order in which their batches were taken out. It is driven by callbacks of the loop and has no task:
`_step` looks at everything there is to do and says when it wants to be called next.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from functools import partial

from moldau.client.cluster import ClusterClient
from moldau.client.errors import (
    ClusterAuthorizationFailedError,
    DisconnectError,
    KafkaError,
    KafkaTimeoutError,
    TransactionAbortedError,
    TransactionalIdAuthorizationFailedError,
    error_for,
)
from moldau.client.machine.metadata import ClusterMetadata
from moldau.client.metrics import ProducerMetrics
from moldau.client.producer._batch import Outcome, ProducerBatch
from moldau.client.producer.accumulator import Accumulator
from moldau.client.producer.delivery import finish
from moldau.client.producer.machine.produce import (
    PartitionAnswer,
    ProduceAnswer,
    produce_request,
    read_produce_response,
)
from moldau.client.producer.machine.queues import NEVER_MS
from moldau.client.producer.machine.transactions import TransactionManager
from moldau.client.producer.settings import ProducerSettings
from moldau.client.producer.transaction_shell import TransactionShell
from moldau.client.topics import Node
from moldau.peers.channel import RawResponse
from moldau.wire.errors import ErrorCode, WireError

__all__ = ["Sender"]

_log = logging.getLogger(__name__)


class Sender:
    """See the module. Lives on the loop; only `wake_by` may be called from elsewhere."""

    def __init__(
        self,
        settings: ProducerSettings,
        cluster: ClusterClient,
        accumulator: Accumulator,
        transactions: TransactionManager | None,
        metrics: ProducerMetrics,
    ) -> None:
        self._settings = settings
        self._metrics = metrics
        self._cluster = cluster
        self._accumulator = accumulator
        self._txn = transactions
        self._shell: TransactionShell | None = None
        self._in_flight: dict[int, int] = {}
        self._connected: set[int] = set()
        self._connecting: dict[int, asyncio.Task[None]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._alarm: asyncio.Handle | None = None
        self._alarm_ms = NEVER_MS
        self._wake_pending = False
        self._sleeping_until_ms = NEVER_MS
        self._stopped = False
        #: Called after every step of a producer that is being closed.
        self.on_step: Callable[[], None] | None = None

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._accumulator.home_thread = threading.get_ident()
        self._cluster.on_metadata.append(self._on_metadata)
        if self._txn is not None:
            self._shell = TransactionShell(
                self._cluster, self._txn, self._accumulator, self.wake_now
            )
        self.wake_now()

    def stop(self) -> None:
        """Send nothing more. What is under way is forgotten."""
        self._stopped = True
        if self._alarm is not None:
            self._alarm.cancel()
        for task in self._connecting.values():
            task.cancel()
        if self._shell is not None:
            self._shell.stop()

    @property
    def in_flight_count(self) -> int:
        return sum(self._in_flight.values())

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is left to send, and nothing under way."""
        return (
            not self._accumulator.has_incomplete
            and self.in_flight_count == 0
            and (self._shell is None or not self._shell.is_busy)
            and (self._txn is None or not self._txn.is_transactional or not self._txn.has_requests)
        )

    # When to look.

    def wake_by(self, at_ms: int) -> None:
        """See to it that the queues are looked at then at the latest; from any thread."""
        if at_ms < self._sleeping_until_ms and not self._wake_pending:
            self._wake_pending = True
            if self._loop is not None and not self._stopped:
                if threading.get_ident() == self._accumulator.home_thread:
                    # The loop's own thread need not be woken by a byte in a pipe.
                    self._loop.call_soon(self._step)
                else:
                    self._loop.call_soon_threadsafe(self._step)

    def wake_now(self) -> None:
        """On the loop: look as soon as the present callback is over."""
        if not self._wake_pending and self._loop is not None and not self._stopped:
            self._wake_pending = True
            self._loop.call_soon(self._step)

    def _step(self) -> None:
        self._wake_pending = False
        # Whoever appends from now on wakes us again: we may have looked there already.
        self._sleeping_until_ms = NEVER_MS
        if self._stopped or self._loop is None:
            return
        now_ms = self._cluster.clock.elapsed_ms()
        try:
            next_ms = self._look(now_ms)
        except Exception:
            _log.exception("The producer's sender failed and goes on")
            next_ms = now_ms + self._settings.network.retry_backoff_ms
        self._sleeping_until_ms = next_ms
        if next_ms < NEVER_MS and (self._alarm is None or next_ms < self._alarm_ms):
            # One that goes off too early costs a look; a new one for every step would cost more.
            if self._alarm is not None:
                self._alarm.cancel()
            self._alarm_ms = next_ms
            delay_s = max(0, next_ms - now_ms) / 1000
            self._alarm = self._loop.call_later(delay_s, self._on_alarm)
        if self.on_step is not None:
            self.on_step()

    def _on_alarm(self) -> None:
        self._alarm = None
        self._step()

    def _look(self, now_ms: int) -> int:
        """Do what is to be done; when to look again."""
        if self._txn is not None and not self._look_at_transactions(self._txn):
            return NEVER_MS
        next_ms = self._send_ready(now_ms)
        self._expire(now_ms)
        return min(
            next_ms,
            self._accumulator.in_flight_expiry_ms,
            self._metadata_due_ms(now_ms),
        )

    def _metadata_due_ms(self, now_ms: int) -> int:
        age_ms = self._cluster.metadata_age_ms
        if age_ms is None:
            return NEVER_MS
        max_ms = self._settings.metadata_max_age_ms
        if age_ms < max_ms:
            return now_ms + max_ms - age_ms
        self._cluster.request_refresh()
        return now_ms + self._settings.network.retry_backoff_max_ms

    # Transactions and ids.

    def _look_at_transactions(self, txn: TransactionManager) -> bool:
        """Whether batches may be sent at all."""
        txn.sequences.resolve()
        status = txn.status
        error = status.last_error
        if status.has_fatal_error:
            self._fail_all(error or KafkaError("a fatal error"))
            return False
        if status.has_abortable_error and isinstance(
            error, (TransactionalIdAuthorizationFailedError, ClusterAuthorizationFailedError)
        ):
            # The right may be given later; nothing of now can be sent.
            self._fail_all(error)
            status.to_uninitialized(error)
            return False
        if self._accumulator.has_incomplete or txn.is_transactional:
            txn.bump_idempotent_epoch()
        if status.has_abortable_error:
            self._abort_waiting(error or KafkaError("an abortable error"))
        elif status.is_aborting:
            self._abort_waiting(
                TransactionAbortedError("the transaction was aborted before it was sent")
            )
        if self._shell is not None:
            self._shell.run()
        return True

    def _abort_waiting(self, error: KafkaError) -> None:
        with self._accumulator.lock:
            batches = self._accumulator.abandon_waiting(unsent_only=True)
        for batch in batches:
            self._drop(batch, error)

    def _fail_all(self, error: KafkaError) -> None:
        with self._accumulator.lock:
            self._accumulator.abandon_waiting()
            batches = sorted(self._accumulator.incomplete, key=lambda each: each.created_ms)
        for batch in batches:
            self._drop(batch, error)

    def _drop(self, batch: ProducerBatch, error: KafkaError) -> None:
        """Fail a batch for an error that is known already and concerns more than this batch."""
        batch.queue.sequences.remove(batch)
        if not batch.is_settled:
            self._metrics.failed(batch.queue.topic, batch.record_count)
            self._settle(batch, Outcome(error=error))

    def fail_rest(self, error: KafkaError) -> None:
        """Fail everything that is left: the producer is closed."""
        self._fail_all(error)

    # Sending.

    def _send_ready(self, now_ms: int) -> int:
        accumulator = self._accumulator
        mute = self._settings.orders_by_muting
        while True:
            with accumulator.lock:
                if self._settings.partitioner_adaptive:
                    accumulator.update_weights()
                drained = accumulator.drain(now_ms, self._usable, mute=mute)
            if not drained.batches:
                break
            for node_id, batches in drained.batches.items():
                self._send(node_id, batches, now_ms)
            if not any(map(self._usable, drained.batches)):
                # They have as much under way as they may: an answer wakes us.
                break
        next_ms = drained.next_check_ms
        for node_id in drained.unavailable:
            next_ms = min(next_ms, self._make_usable(node_id, now_ms))
        if drained.topics_without_leader:
            next_ms = min(next_ms, self._ask_for_leaders(now_ms))
        return next_ms

    def _usable(self, node_id: int) -> bool:
        return (
            node_id in self._connected
            and self._in_flight.get(node_id, 0) < self._settings.max_in_flight
            and not self._cluster.throttled_ms(node_id)
        )

    def _make_usable(self, node_id: int, now_ms: int) -> int:
        """Connect to a node that something waits for; when to look again."""
        throttled_ms = self._cluster.throttled_ms(node_id)
        if throttled_ms:
            return now_ms + throttled_ms
        if node_id not in self._connected and node_id not in self._connecting and self._loop:
            self._connecting[node_id] = self._loop.create_task(self._connect(node_id))
        return NEVER_MS

    async def _connect(self, node_id: int) -> None:
        try:
            await self._cluster.versions(node_id)
        except KafkaError as error:
            self._cluster.outages.node_failed(node_id, error.message)
            self._cluster.request_refresh()
        else:
            self._cluster.outages.node_reached(node_id, self._cluster.metadata.nodes)
            self._connected.add(node_id)
        finally:
            self._connecting.pop(node_id, None)
            self.wake_now()

    def _ask_for_leaders(self, now_ms: int) -> int:
        age_ms = self._cluster.metadata_age_ms
        pause_ms = self._settings.network.retry_backoff_ms
        if age_ms is None or age_ms >= pause_ms:
            self._cluster.request_refresh()
            return now_ms + pause_ms
        return now_ms + pause_ms - age_ms

    def _send(self, node_id: int, batches: list[ProducerBatch], now_ms: int) -> None:
        settings = self._settings
        txn = self._txn
        sending = [batch for batch in batches if not batch.is_settled]
        request, max_version, names = produce_request(
            sending,
            picture=self._cluster.metadata,
            acks=settings.acks,
            timeout_ms=settings.request_timeout_ms,
            transactional_id=settings.transactional_id,
            is_v2=txn is None or txn.status.is_v2,
        )
        self._in_flight[node_id] = self._in_flight.get(node_id, 0) + 1
        self._note_sent(sending)
        try:
            future = self._cluster.start_raw(
                node_id,
                request,
                timeout_ms=settings.request_timeout_ms,
                max_version=max_version,
                unanswered=settings.acks == 0,
            )
        except KafkaError as error:
            self._in_flight[node_id] -= 1
            self._on_lost(node_id, sending, error)
            self.wake_now()
            return
        future.add_done_callback(partial(self._on_done, node_id, sending, names, now_ms))

    def _note_sent(self, batches: list[ProducerBatch]) -> None:
        for batch in batches:
            builder = batch.builder
            ratio = builder.compressed_ratio
            self._accumulator.note_ratio(batch.queue, ratio)
            self._metrics.batch_sent(
                batch.queue.topic,
                records=batch.record_count,
                size=builder.size,
                compression_ratio=ratio,
                queue_time_ms=batch.drained_ms - batch.created_ms,
                record_size_max=builder.uncompressed_size // max(1, batch.record_count),
            )
        self._metrics.request_sent(sum(batch.record_count for batch in batches))

    def _on_done(
        self,
        node_id: int,
        batches: list[ProducerBatch],
        names: dict[object, str],
        sent_ms: int,
        future: asyncio.Future[RawResponse],
    ) -> None:
        self._in_flight[node_id] -= 1
        try:
            error = asyncio.CancelledError() if future.cancelled() else future.exception()
            if error is not None:
                self._on_lost(node_id, batches, self._cluster.as_error(error))
            else:
                latency_ms = self._cluster.clock.elapsed_ms() - sent_ms
                self._on_response(node_id, batches, names, latency_ms, future.result())
        except Exception as problem:
            # Nobody else would ever end these batches.
            _log.exception("A response to Produce could not be dealt with")
            for batch in batches:
                self._drop(batch, KafkaError(f"an error inside the client: {problem!r}"))
        self.wake_now()

    def _on_response(
        self,
        node_id: int,
        batches: list[ProducerBatch],
        names: dict[object, str],
        latency_ms: int,
        raw: RawResponse,
    ) -> None:
        if self._settings.acks == 0:
            for batch in batches:
                self._complete(batch, PartitionAnswer())
            return
        try:
            answer = read_produce_response(raw, names)
        except WireError as problem:
            self._fail_or_retry(batches, error_for(ErrorCode.CORRUPT_MESSAGE, str(problem)))
            return
        self._metrics.request_answered(latency_ms, answer.throttle_time_ms)
        self._on_answer(node_id, batches, answer)

    # Answers.

    def _on_lost(self, node_id: int, batches: list[ProducerBatch], error: KafkaError) -> None:
        """No response: nobody knows what the broker has of it."""
        if isinstance(error, DisconnectError) or error.code is ErrorCode.REQUEST_TIMED_OUT:
            self._connected.discard(node_id)
            if error.code is None:
                error = error_for(ErrorCode.NETWORK_EXCEPTION, str(error))
        self._cluster.request_refresh()
        self._fail_or_retry(batches, error)

    def _fail_or_retry(self, batches: list[ProducerBatch], error: KafkaError) -> None:
        code = ErrorCode.UNKNOWN_SERVER_ERROR if error.code is None else error.code
        answer = PartitionAnswer(code, error_message=error.message)
        for batch in batches:
            self._on_partition(batch, answer, error)

    def _on_answer(self, node_id: int, batches: list[ProducerBatch], answer: ProduceAnswer) -> None:
        if answer.throttle_time_ms:
            self._cluster.note_throttle(node_id, answer.throttle_time_ms)
        for batch in batches:
            found = answer.partitions.get(batch.queue.key)
            if found is None:
                found = PartitionAnswer(
                    ErrorCode.UNKNOWN_SERVER_ERROR, error_message="the response leaves it out"
                )
            if found.error_code == ErrorCode.NONE:
                self._complete(batch, found)
            else:
                self._on_partition(batch, found, error_for(found.error_code, found.error_message))
        if answer.leaders:
            nodes = (Node(*each) for each in answer.nodes)
            self._cluster.apply_leader_hints(
                self._cluster.metadata.with_leaders(answer.leaders, nodes)
            )

    def _on_partition(
        self, batch: ProducerBatch, answer: PartitionAnswer, error: KafkaError
    ) -> None:
        """A batch was refused, or lost."""
        now_ms = self._cluster.clock.elapsed_ms()
        code = answer.error_code
        settings = self._settings
        if code == ErrorCode.MESSAGE_TOO_LARGE and batch.record_count > 1 and not batch.is_settled:
            self._split(batch, now_ms)
        elif self._can_retry(batch, answer, error, now_ms):
            _log.log(
                logging.WARNING if batch.attempts else logging.INFO,
                "Produce to %s failed and is tried again: %s",
                batch.queue.key,
                error,
            )
            self._metrics.retried(batch.queue.topic, batch.record_count)
            with self._accumulator.lock:
                self._accumulator.reenqueue(batch, now_ms)
        elif code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            # The broker has it, but no longer knows where.
            self._complete(batch, PartitionAnswer())
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
        self, batch: ProducerBatch, answer: PartitionAnswer, error: KafkaError, now_ms: int
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

    def _split(self, batch: ProducerBatch, now_ms: int) -> None:
        _log.info("A batch for %s is too large for the broker and is split", batch.queue.key)
        self._metrics.batch_split()
        with self._accumulator.lock:
            self._accumulator.split(batch, now_ms)
        for waiter in batch.take_waiters():
            waiter()

    def _complete(self, batch: ProducerBatch, answer: PartitionAnswer) -> None:
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
        self._metrics.failed(batch.queue.topic, batch.record_count)
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

    # Giving up.

    def _expire(self, now_ms: int) -> None:
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

    # Metadata.

    def _on_metadata(self, picture: ClusterMetadata) -> None:
        with self._accumulator.lock:
            self._accumulator.update_leaders(picture)
        self._connected.intersection_update(picture.nodes)
        self.wake_now()
