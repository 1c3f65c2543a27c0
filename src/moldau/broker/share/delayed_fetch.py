"""A share fetch: acquires records immediately, or waits for them until its timeout.

It waits for new records, for records that become available again and for partitions that are being
loaded.

Invariants: it is answered exactly once; while it waits it holds no record; reading and acquiring
happen in one turn of the loop, so what was read is what is acquired.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

from moldau.broker.replication import reading
from moldau.broker.replication.machine.purgatory import Purgatory, Waiter
from moldau.broker.share.log_batches import aborted_spans, base_offset_of, slice_for, spans_of
from moldau.broker.share.machine.acquisition import AcquiredRecords, Span, Wanted
from moldau.broker.share.machine.partition import SharePartition
from moldau.broker.share.machine.sessions import TopicIdPartition
from moldau.broker.share.shell import SharePartitionShell
from moldau.wire.errors import ApiError, ErrorCode

# Partitions may have only aborted records for a while. Each attempt archives what it has read of
# them; after this many, others get their turn.
_ATTEMPTS_PER_TURN: Final = 8


class FetchedPartition(NamedTuple):
    """The result for one partition; `records` are views of the log."""

    error: ApiError | None = None
    records: bytes | memoryview = b""
    acquired: tuple[AcquiredRecords, ...] = ()


class ShareFetchLimits(NamedTuple):
    """The part of a request that concerns all its partitions."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    record_limit: bool
    read_committed: bool


Fetched = dict[TopicIdPartition, FetchedPartition]


class Answer(Protocol):
    """The part of an asyncio future that is needed here."""

    def done(self) -> bool: ...

    def set_result(self, result: Fetched, /) -> None: ...

    def set_exception(self, exception: BaseException, /) -> None: ...


class _Read(NamedTuple):
    partition: TopicIdPartition
    shell: SharePartitionShell
    machine: SharePartition
    fetch_offset: int
    buffer: memoryview
    aborted_transactions: tuple[tuple[int, int], ...]


_EMPTY: Final = memoryview(b"")


class DelayedShareFetch(Waiter):
    """One member's fetch. Call `start` once."""

    __slots__ = (
        "_admitted",
        "_answer",
        "_limits",
        "_looking",
        "_member_id",
        "_purgatory",
        "_shells",
    )

    def __init__(
        self,
        member_id: str,
        shells: Mapping[TopicIdPartition, SharePartitionShell],
        limits: ShareFetchLimits,
        purgatory: Purgatory,
        answer: Answer,
    ) -> None:
        super().__init__()
        self._member_id = member_id
        self._shells = shells
        self._limits = limits
        self._purgatory = purgatory
        self._answer = answer
        self._looking = False
        self._admitted = False

    def start(self) -> None:
        """Answer, or begin to wait; if there is no place to wait, answer with what is available."""
        fetched = self._attempt()
        if fetched is None:
            if self._limits.max_wait_ms > 0:
                self._admitted = self._purgatory.admit(self, self._limits.max_wait_ms)
            if self._admitted:
                self._watch()
                return
            fetched = self._attempt(is_last=True) or {}
        self.finished = True
        self._answer.set_result(fetched)

    def on_partition_changed(self) -> None:
        if not self._looking and not self.finished:
            self._looking = True
            self._purgatory.timers.call_soon(self._look_again)

    def on_partition_loaded(self) -> None:
        """Try immediately, as Kafka does: partitions loaded in the same turn of the loop must
        not add up to one response of twice as many records."""
        if not self.finished:
            self._finish(is_last=False)

    def on_timeout(self) -> None:
        self._finish(is_last=True)

    def abandon(self) -> None:
        """The response is no longer wanted: acquire nothing for it."""
        if self.finished:
            return
        self._end()
        if not self._answer.done():
            self._answer.set_result({})

    def _look_again(self) -> None:
        self._looking = False
        if not self.finished:
            self._finish(is_last=False)

    def _finish(self, *, is_last: bool) -> None:
        # The caller is a timer or a change elsewhere, which must not fail because of this request.
        try:
            fetched = None if self._answer.done() else self._attempt(is_last)
        except Exception as error:
            self._end()
            self._answer.set_exception(error)
            return
        if fetched is not None or self._answer.done():
            self._end()
            if fetched is not None:
                self._answer.set_result(fetched)
        else:
            self._watch()

    def _end(self) -> None:
        if self._admitted:
            self._purgatory.finish(self)
            self._unwatch()
        self.finished = True

    def _watch(self) -> None:
        for shell in self._shells.values():
            shell.watchers[self] = None
            shell.partition.waiters.changes[self] = None

    def _unwatch(self) -> None:
        for shell in self._shells.values():
            shell.watchers.pop(self, None)
            shell.partition.waiters.changes.pop(self, None)

    # Reading and acquiring.

    def _attempt(self, is_last: bool = False) -> Fetched | None:
        """The response; None if it is better to wait."""
        for _ in range(_ATTEMPTS_PER_TURN):
            fetched: Fetched = {}
            reads, size = self._read_all(fetched)
            if not is_last and not fetched and size < self._limits.min_bytes:
                return None
            before = [read.machine.next_fetch_offset() for read in reads]
            left = self._limits.max_records
            for read in reads:
                result = fetched[read.partition] = self._acquire(read, left)
                left -= sum(each.last_offset - each.first_offset + 1 for each in result.acquired)
            if is_last or self._limits.min_bytes <= 0 or _says_something(fetched):
                return fetched
            if before == [read.machine.next_fetch_offset() for read in reads]:
                return None
        self.on_partition_changed()
        return None

    def _read_all(self, fetched: Fetched) -> tuple[list[_Read], int]:
        """Read what may be acquired; partitions that fail are put into `fetched`."""
        limits = self._limits
        open_shells = []
        for partition, shell in self._shells.items():
            if shell.error is not None:
                fetched[partition] = FetchedPartition(shell.error)
            elif shell.machine is not None and shell.machine.can_acquire(shell.settings):
                open_shells.append((partition, shell, shell.machine))
        reads: list[_Read] = []
        size = 0
        for partition, shell, machine in open_shells:
            room = min(limits.max_bytes // len(open_shells), limits.max_bytes - size)
            try:
                read = self._read(partition, shell, machine, max(0, room), min_one_batch=size == 0)
            except ApiError as error:
                # No longer the leader, or the disk failed: the next fetch starts over.
                shell.end(error)
                fetched[partition] = FetchedPartition(error)
                continue
            reads.append(read)
            size += len(read.buffer)
        return reads, size

    def _read(
        self,
        partition: TopicIdPartition,
        shell: SharePartitionShell,
        machine: SharePartition,
        max_bytes: int,
        *,
        min_one_batch: bool,
    ) -> _Read:
        shell.partition.check_online()
        log_start_offset = shell.partition.log.log_start_offset
        offset = machine.next_fetch_offset()
        if offset < log_start_offset:
            machine.move_log_start(log_start_offset)
            offset = machine.next_fetch_offset()
        try:
            read = reading.read(
                shell.partition.log,
                offset,
                max_bytes,
                min_one_batch=min_one_batch,
                read_committed=self._limits.read_committed,
            )
        except ApiError as error:
            if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            # The log is shorter than what was consumed of it: wait for it to grow.
            return _Read(partition, shell, machine, offset, _EMPTY, ())
        buffer = _EMPTY
        if len(read.buffers) == 1:
            buffer = read.buffers[0]
        elif read.buffers:
            buffer = memoryview(b"".join(read.buffers))
        return _Read(
            partition, shell, machine, offset, buffer, tuple(read.aborted_transactions or ())
        )

    def _acquire(self, read: _Read, max_records: int) -> FetchedPartition:
        reach = read.machine.reach(base_offset_of(read.buffer), max_records)
        spans = spans_of(read.buffer, reach, max_records)
        if not spans:
            return FetchedPartition()
        limits = self._limits
        aborted: list[Span] = []
        if read.aborted_transactions:
            aborted = aborted_spans(read.buffer, spans, read.aborted_transactions)
        wanted = Wanted(self._member_id, max_records, limits.batch_size, limits.record_limit)
        acquired = read.shell.acquire(read.machine, wanted, read.fetch_offset, spans, aborted)
        if not acquired:
            return FetchedPartition()
        return FetchedPartition(None, slice_for(read.buffer, spans, acquired), tuple(acquired))


def _says_something(fetched: Fetched) -> bool:
    return any(each.acquired or each.error is not None for each in fetched.values())
