"""A partition of an internal topic, led by this broker, as a coordinator's log."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from moldau.broker.coordinator.log import Buffer
from moldau.broker.replication.partition import Partition
from moldau.wire.errors import ErrorCode


class PartitionLog:
    """Implements `CoordinatorLog`."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._waiters: dict[Callable[[ErrorCode], None], Callable[[ErrorCode], None]] = {}

    @property
    def start_offset(self) -> int:
        return self._partition.log.log_start_offset

    @property
    def end_offset(self) -> int:
        return self._partition.log.log_end_offset

    def append(self, records: Sequence[tuple[bytes, bytes | None]], *, now_ms: int) -> int:
        return self._partition.append_coordinator_records(records, now_ms)

    def read(self, offset: int, max_bytes: int) -> Buffer:
        found = self._partition.read(offset, max_bytes, min_one_batch=True, up_to_log_end=True)
        # Batches may run on from one buffer into the next.
        return found.buffers[0] if len(found.buffers) == 1 else b"".join(found.buffers)

    def when_committed(self, next_offset: int, waiter: Callable[[ErrorCode], None]) -> None:
        def committed(error: ErrorCode) -> None:
            self._waiters.pop(waiter, None)
            # The high watermark has passed the records, so they are committed, even if
            # fewer replicas than the minimum are in sync by now.
            if error is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND:
                error = ErrorCode.NONE
            waiter(error)

        self._waiters[waiter] = committed
        self._partition.when_committed(next_offset, committed)

    def forget_waiter(self, waiter: Callable[[ErrorCode], None]) -> None:
        committed = self._waiters.pop(waiter, None)
        if committed is not None:
            self._partition.forget_waiter(committed)
