"""A produce request whose records are not yet committed (acks=all) or on disk (flush.messages).

Invariants: it ends exactly once, when every partition has reported its outcome or at the request's
timeout, and then no partition refers to it.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.broker.replication.durability import when_durable
from moldau.broker.replication.machine.purgatory import Purgatory, Waiter
from moldau.broker.replication.partition import Partition
from moldau.times import WallMs
from moldau.wire.errors import ErrorCode

PartitionKey = tuple[int, int]
"""The partition's place in the response: topic, then partition."""


class DelayedProduce(Waiter):
    """Waits until every appended batch is as safe as requested."""

    __slots__ = ("_on_end", "_pending", "_purgatory", "_started", "outcomes")

    def __init__(self, purgatory: Purgatory, on_end: Callable[[DelayedProduce], None]) -> None:
        super().__init__()
        self._purgatory = purgatory
        self._on_end = on_end
        self._pending: dict[_Pending, None] = {}
        self._started = False
        self.outcomes: dict[PartitionKey, ErrorCode] = {}

    def expect_commit(self, key: PartitionKey, partition: Partition, next_offset: int) -> None:
        """Wait for the high watermark of `partition` too; only before `start`."""
        partition.when_committed(next_offset, self._expect(key, partition))

    def expect_flush(
        self, key: PartitionKey, partition: Partition, next_offset: int, now_ms: WallMs
    ) -> None:
        """Wait for a flush of `partition` too; only before `start`."""
        when_durable(partition, next_offset, now_ms, self._expect(key, partition))

    def _expect(self, key: PartitionKey, partition: Partition) -> _Pending:
        pending = _Pending(self, key, partition)
        self._pending[pending] = None
        return pending

    def start(self, timeout_ms: int) -> None:
        """All partitions are known: wait, or end now if there is nothing to wait for."""
        self._started = True
        if not self._pending:
            self.finished = True
            self._on_end(self)
        elif not self._purgatory.admit(self, max(timeout_ms, 0)):
            self._give_up()
            self.finished = True
            self._on_end(self)

    def on_timeout(self) -> None:
        self._give_up()
        self._end()

    def cancel(self) -> None:
        """The client has disconnected."""
        self._give_up()
        self._purgatory.finish(self)

    def on_outcome(self, pending: _Pending, error: ErrorCode) -> None:
        if pending not in self._pending:
            return
        del self._pending[pending]
        self.outcomes[pending.key] = self.outcomes.get(pending.key) or error
        if self._started and not self._pending:
            self._end()

    def _give_up(self) -> None:
        pending_now, self._pending = self._pending, {}
        for pending in pending_now:
            pending.partition.forget_waiter(pending)
            self.outcomes[pending.key] = ErrorCode.REQUEST_TIMED_OUT

    def _end(self) -> None:
        if self._purgatory.finish(self):
            self._on_end(self)


class _Pending:
    """One partition's part; called by the partition with the outcome."""

    __slots__ = ("key", "partition", "request")

    def __init__(self, request: DelayedProduce, key: PartitionKey, partition: Partition) -> None:
        self.request = request
        self.key = key
        self.partition = partition

    def __call__(self, error: ErrorCode) -> None:
        self.request.on_outcome(self, error)
