"""Sends what the accumulator holds.

Decided here: which nodes can be sent to, and when to look at the queues again; `batch_ends.py`
decides what becomes of a batch. Invariants: at most `max.in.flight.requests.per.connection`
requests are under way to a node, and requests leave in the order in which their batches were taken
out. It is driven by callbacks of the loop and has no task: `_step` looks at everything there is to
do and schedules its next call.
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
    TransactionAbortedError,
    TransactionalIdAuthorizationFailedError,
    error_for,
)
from moldau.client.machine.metadata import ClusterMetadata
from moldau.client.metrics import ProducerMetrics
from moldau.client.producer._batch import ProducerBatch
from moldau.client.producer.accumulator import Accumulator
from moldau.client.producer.batch_ends import BatchEnds
from moldau.client.producer.failures import FailedSends
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
from moldau.client.producer.usable_nodes import UsableNodes
from moldau.client.topics import Node
from moldau.peers.channel import RawResponse
from moldau.times import ElapsedMs
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
        failures: FailedSends,
    ) -> None:
        self._settings = settings
        self._metrics = metrics
        self._cluster = cluster
        self._accumulator = accumulator
        self._txn = transactions
        self._ends = BatchEnds(settings, cluster, accumulator, transactions, metrics, failures)
        self._shell: TransactionShell | None = None
        self._nodes = UsableNodes(cluster, settings.max_in_flight, self.wake_now)
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
        self._accumulator.table.home_thread = threading.get_ident()
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
        self._nodes.stop()
        if self._shell is not None:
            self._shell.stop()

    @property
    def in_flight_count(self) -> int:
        return self._nodes.in_flight_count

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is left to send, and nothing under way.

        Without a transaction, a request for a producer id does not count: no record waits for it,
        and while the cluster has no controller it is never answered.
        """
        return (
            not self._accumulator.has_incomplete
            and self.in_flight_count == 0
            and not self._is_in_transaction_call
        )

    @property
    def _is_in_transaction_call(self) -> bool:
        if self._txn is None or not self._txn.is_transactional:
            return False
        return self._txn.has_requests or (self._shell is not None and self._shell.is_busy)

    # When to look.

    def wake_by(self, at_ms: int) -> None:
        """See to it that the queues are looked at then at the latest; from any thread."""
        if at_ms < self._sleeping_until_ms and not self._wake_pending:
            self._wake_pending = True
            if self._loop is not None and not self._stopped:
                if threading.get_ident() == self._accumulator.table.home_thread:
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
            _log.exception("The producer's sender failed and continues")
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

    def _look(self, now_ms: ElapsedMs) -> int:
        """Do what is to be done; when to look again."""
        if self._txn is not None and not self._look_at_transactions(self._txn):
            return NEVER_MS
        next_ms = self._send_ready(now_ms)
        self._ends.expire(now_ms)
        return min(
            next_ms,
            self._accumulator.in_flight_expiry_ms,
            self._metadata_due_ms(now_ms),
        )

    def _metadata_due_ms(self, now_ms: ElapsedMs) -> int:
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
            self._ends.fail_all(error or KafkaError("a fatal error"))
            return False
        if status.has_abortable_error and isinstance(
            error, (TransactionalIdAuthorizationFailedError, ClusterAuthorizationFailedError)
        ):
            # The right may be given later; nothing of now can be sent.
            self._ends.fail_all(error)
            status.to_uninitialized(error)
            return False
        if self._accumulator.has_incomplete or txn.is_transactional:
            txn.bump_idempotent_epoch()
        if status.has_abortable_error:
            self._ends.abort_waiting(error or KafkaError("an abortable error"))
        elif status.is_aborting:
            self._ends.abort_waiting(
                TransactionAbortedError("the transaction was aborted before it was sent")
            )
        if self._shell is not None:
            self._shell.run()
        return True

    def fail_rest(self, error: KafkaError) -> None:
        """Fail everything that is left: the producer is closed."""
        self._ends.fail_all(error)

    # Sending.

    def _send_ready(self, now_ms: ElapsedMs) -> int:
        accumulator = self._accumulator
        mute = self._settings.orders_by_muting
        while True:
            with accumulator.lock:
                if self._settings.partitioner_adaptive:
                    accumulator.update_weights()
                drained = accumulator.drain(now_ms, self._nodes.is_usable, mute=mute)
            if not drained.batches:
                break
            for node_id, batches in drained.batches.items():
                self._send(node_id, batches, now_ms)
            if not any(map(self._nodes.is_usable, drained.batches)):
                # They have as much under way as they may: an answer wakes us.
                break
        next_ms = drained.next_check_ms
        for node_id in drained.unavailable:
            next_ms = min(next_ms, self._nodes.make_usable(node_id, now_ms))
        if drained.topics_without_leader:
            next_ms = min(next_ms, self._ask_for_leaders(now_ms))
        return next_ms

    def _ask_for_leaders(self, now_ms: ElapsedMs) -> int:
        age_ms = self._cluster.metadata_age_ms
        pause_ms = self._settings.network.retry_backoff_ms
        if age_ms is None or age_ms >= pause_ms:
            self._cluster.request_refresh()
            return now_ms + pause_ms
        return now_ms + pause_ms - age_ms

    def _send(self, node_id: int, batches: list[ProducerBatch], now_ms: ElapsedMs) -> None:
        settings = self._settings
        txn = self._txn
        sending = [batch for batch in batches if not batch.is_settled]
        request, max_version, names = produce_request(
            sending,
            picture=self._cluster.metadata,
            acks=settings.acks,
            timeout_ms=settings.request_timeout_ms,
            transactional_id=None if txn is None else txn.status.transactional_id,
            is_v2=txn is None or txn.status.is_v2,
        )
        self._nodes.on_sent(node_id)
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
            self._nodes.on_ended(node_id)
            self._on_lost(node_id, sending, error)
            self.wake_now()
            return
        future.add_done_callback(partial(self._on_done, node_id, sending, names, now_ms))

    def _note_sent(self, batches: list[ProducerBatch]) -> None:
        for batch in batches:
            builder = batch.builder
            ratio = builder.compressed_ratio
            self._accumulator.table.note_ratio(batch.queue, ratio)
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
        sent_ms: ElapsedMs,
        future: asyncio.Future[RawResponse],
    ) -> None:
        self._nodes.on_ended(node_id)
        try:
            error = asyncio.CancelledError() if future.cancelled() else future.exception()
            if error is not None:
                self._on_lost(node_id, batches, self._cluster.as_error(error))
            else:
                latency_ms = self._cluster.clock.elapsed_ms() - sent_ms
                self._on_response(node_id, batches, names, latency_ms, future.result())
        except Exception as problem:
            # Nobody else would ever end these batches.
            _log.exception("A Produce response could not be processed")
            for batch in batches:
                self._ends.drop(batch, KafkaError(f"an error inside the client: {problem!r}"))
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
                self._ends.complete(batch, PartitionAnswer())
            return
        try:
            answer = read_produce_response(raw, names)
        except WireError as problem:
            self._ends.on_lost(batches, error_for(ErrorCode.CORRUPT_MESSAGE, str(problem)))
            return
        self._metrics.request_answered(latency_ms, answer.throttle_time_ms)
        self._on_answer(node_id, batches, answer)

    # Answers.

    def _on_lost(self, node_id: int, batches: list[ProducerBatch], error: KafkaError) -> None:
        """No response: nobody knows what the broker has of it."""
        if isinstance(error, DisconnectError) or error.code is ErrorCode.REQUEST_TIMED_OUT:
            self._nodes.on_disconnected(node_id)
            if error.code is None:
                error = error_for(ErrorCode.NETWORK_EXCEPTION, str(error))
        self._cluster.request_refresh()
        self._ends.on_lost(batches, error)

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
                self._ends.complete(batch, found)
            else:
                self._ends.on_refused(
                    batch, found, error_for(found.error_code, found.error_message)
                )
        if answer.leaders:
            nodes = (Node(*each) for each in answer.nodes)
            self._cluster.apply_leader_hints(
                self._cluster.metadata.with_leaders(answer.leaders, nodes)
            )

    # Metadata.

    def _on_metadata(self, picture: ClusterMetadata) -> None:
        with self._accumulator.lock:
            self._accumulator.table.update_leaders(picture)
        self._nodes.keep_only(picture.nodes)
        self.wake_now()
