"""A partition of an internal topic, led by this broker, as a coordinator's log."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from moldau.broker.coordinator.machine.decision import ProducerStamp, TransactionEnding
from moldau.broker.log.machine.producer_state import Verification
from moldau.broker.replication import reading
from moldau.broker.replication.coordinator_appends import append_marker, append_records
from moldau.broker.replication.durability import when_durable
from moldau.broker.replication.partition import Partition
from moldau.invariant import invariant
from moldau.times import WALL_ZERO, WallMs
from moldau.wire.compression import Compression
from moldau.wire.constants import Buffer
from moldau.wire.errors import ErrorCode


class PartitionLog:
    """Implements `CoordinatorLog`."""

    def __init__(
        self,
        partition: Partition,
        *,
        compression: Compression = Compression.NONE,
        acks_all: bool = False,
    ) -> None:
        """`compression` is that of the internal topic's records. With `acks_all` nothing is
        appended while fewer replicas than the minimum are in sync: the transaction log is so."""
        self._partition = partition
        self._compression = compression
        self._acks_all = acks_all
        self._waiters: dict[Callable[[ErrorCode], None], Callable[[ErrorCode], None]] = {}
        self._appended_ms = WALL_ZERO

    @property
    def start_offset(self) -> int:
        return self._partition.log.log_start_offset

    @property
    def end_offset(self) -> int:
        return self._partition.log.log_end_offset

    def append(
        self,
        records: Sequence[tuple[bytes | None, bytes | None]],
        *,
        now_ms: WallMs,
        producer: ProducerStamp | None = None,
    ) -> int:
        self._appended_ms = now_ms
        if producer is None:
            return append_records(
                self._partition,
                records,
                now_ms,
                compression=self._compression,
                acks_all=self._acks_all,
            )
        guard = producer.guard
        invariant(
            guard is None or isinstance(guard, Verification),
            f"{guard!r} does not verify appends to {self._partition}",
        )
        return append_records(
            self._partition,
            records,
            now_ms,
            compression=self._compression,
            acks_all=self._acks_all,
            producer=(producer.producer_id, producer.producer_epoch),
            guard=guard if isinstance(guard, Verification) else None,
        )

    def append_marker(self, ending: TransactionEnding, *, now_ms: WallMs) -> int:
        self._appended_ms = now_ms
        info = append_marker(
            self._partition,
            producer_id=ending.producer_id,
            producer_epoch=ending.producer_epoch,
            coordinator_epoch=ending.coordinator_epoch,
            committed=ending.committed,
            transaction_version=ending.transaction_version,
            now_ms=now_ms,
        )
        if info.flush_due:
            self._partition.log.request_flush(now_ms=now_ms)
        return info.base_offset

    def read(self, offset: int, max_bytes: int) -> Buffer:
        found = reading.read(
            self._partition.log, offset, max_bytes, min_one_batch=True, up_to_log_end=True
        )
        # Batches may run on from one buffer into the next.
        return found.buffers[0] if len(found.buffers) == 1 else b"".join(found.buffers)

    def is_committed(self, next_offset: int) -> bool:
        partition = self._partition
        log = partition.log
        return (
            log.high_watermark >= next_offset and partition.error is None and not log.flush_due
        )

    def when_committed(self, next_offset: int, waiter: Callable[[ErrorCode], None]) -> None:
        def committed(error: ErrorCode) -> None:
            # The high watermark has passed the records, so they are committed, even if
            # fewer replicas than the minimum are in sync by now.
            if error is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND:
                error = ErrorCode.NONE
            if error is ErrorCode.NONE and self._partition.log.flush_due:
                # As with records of producers, what must be synced first is not reported before.
                when_durable(self._partition, next_offset, self._appended_ms, reported)
            else:
                reported(error)

        def reported(error: ErrorCode) -> None:
            if self._waiters.pop(waiter, None) is not None:
                waiter(error)

        self._waiters[waiter] = committed
        self._partition.when_committed(next_offset, committed)

    def forget_waiter(self, waiter: Callable[[ErrorCode], None]) -> None:
        committed = self._waiters.pop(waiter, None)
        if committed is not None:
            self._partition.forget_waiter(committed)
