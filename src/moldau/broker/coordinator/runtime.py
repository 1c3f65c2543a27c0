"""The shards of one coordinator: loading, serving, unloading.

A shard exists for each partition of the internal topic that this broker leads. It is loaded by
replaying its log from the start, in pieces between which the event loop runs, and serves when it
has reached the end. Invariant: a request reaches a shard only while it is loaded; before, it gets
COORDINATOR_LOAD_IN_PROGRESS, and NOT_COORDINATOR where there is none.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from moldau.broker.coordinator.machine.decision import Action, Decision, Ticket, TransactionEnding
from moldau.broker.coordinator.machine.log import (
    CoordinatorLog,
    Entry,
    TransactionEnd,
    read_entries,
)
from moldau.broker.coordinator.shell import S, ShardShell, Times
from moldau.clock import Clock
from moldau.invariant import invariant
from moldau.times import WallMs
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import Message
from moldau.wire.record_values import (
    Family,
    UnknownRecordTypeError,
    decode_coordinator_record,
)

R = TypeVar("R")

#: For metrics.
LOAD_TIMES_KEPT = 100
# Replaying a record takes some microseconds; after so many the loop gets its turn.
_REPLAY_COUNT_PER_TURN = 1_000


@dataclass(slots=True)
class _Seat(Generic[S]):
    """One partition led by this broker."""

    epoch: int
    shell: ShardShell[S]
    loading: asyncio.Task[None] | None = None


class CoordinatorRuntime(Generic[S]):
    def __init__(
        self,
        *,
        family: Family,
        make_shard: Callable[[], S],
        clock: Clock,
        write_timeout_ms: int,
        load_buffer_size: int,
        report_bug: Callable[[Exception], None],
        perform: Callable[[int, Action], None] | None = None,
    ) -> None:
        """`perform` carries out the `Act` effects of a partition's shard."""
        self._family = family
        self._make_shard = make_shard
        self._clock = clock
        self._write_timeout_ms = write_timeout_ms
        self._load_buffer_size = load_buffer_size
        self._report_bug = report_bug
        self._perform = perform or _no_actions
        self._seats: dict[int, _Seat[S]] = {}
        #: How long the last ones took to load.
        self.load_times_ms: deque[int] = deque(maxlen=LOAD_TIMES_KEPT)
        self._times: Times | None = None

    @property
    def times(self) -> Times | None:
        """Records how long decisions and commits take."""
        return self._times

    @times.setter
    def times(self, times: Times) -> None:
        self._times = times
        for seat in self._seats.values():
            seat.shell.times = times

    # Leadership.

    def load(self, partition: int, epoch: int, log: CoordinatorLog) -> None:
        """This broker leads the partition: read its state. Older epochs are ignored."""
        seat = self._seats.get(partition)
        if seat is not None:
            if epoch <= seat.epoch and not seat.shell.closed:
                return
            self._dismantle(partition, seat)
        shell = ShardShell(
            self._make_shard(),
            log,
            self._clock,
            write_timeout_ms=self._write_timeout_ms,
            report_bug=self._report_bug,
            perform=lambda action: self._perform(partition, action),
            times=self.times,
        )
        seat = _Seat(epoch, shell)
        self._seats[partition] = seat
        seat.loading = asyncio.get_running_loop().create_task(
            self._load(seat), name=f"load {self._family} coordinator {partition}"
        )

    def unload(self, partition: int, epoch: int | None = None) -> None:
        """This broker leads the partition no longer; `epoch` is the one that ended it."""
        seat = self._seats.get(partition)
        if seat is not None and (epoch is None or epoch >= seat.epoch):
            self._dismantle(partition, seat)

    async def loaded(self) -> None:
        """Wait until every shard that is being loaded serves, or has failed to."""
        tasks = [seat.loading for seat in self._seats.values() if seat.loading is not None]
        if tasks:
            await asyncio.wait(tasks)

    def close(self) -> None:
        for partition, seat in list(self._seats.items()):
            self._dismantle(partition, seat)

    @property
    def partitions(self) -> list[int]:
        """The partitions led here, loaded or not."""
        return sorted(self._seats)

    def count_states(self) -> dict[str, int]:
        """How many partitions are active, are being loaded, and have failed."""
        counts = {"active": 0, "loading": 0, "failed": 0}
        for seat in self._seats.values():
            state = "failed" if seat.shell.closed else "active"
            counts["loading" if seat.loading is not None else state] += 1
        return counts

    # Requests.

    def run(
        self, partition: int, decide: Callable[[S, WallMs], Decision[R]]
    ) -> Coroutine[Any, Any, R]:
        """What `ShardShell.run` returns; raises ApiError at once if the shard does not serve."""
        return self._shell(partition).run(decide)

    async def run_with_ticket(
        self, partition: int, decide: Callable[[S, Ticket, WallMs], Decision[None]]
    ) -> Message:
        return await self._shell(partition).run_with_ticket(decide)

    async def complete_transaction(self, partition: int, ending: TransactionEnding) -> None:
        """Write the marker of a transaction and apply it; raises ApiError."""
        await self._shell(partition).complete_transaction(ending)

    async def read_committed(self, partition: int, view: Callable[[S], R]) -> R:
        """What `view` returns or raises, as soon as everything that it may show is committed.

        Kafka reads a snapshot at the last committed offset instead, which needs no wait and may be
        older. Neither shows a state that the next coordinator may not have.
        """
        return await _committed(self._shell(partition), view)

    async def read_all(self, view: Callable[[S], list[R]]) -> list[R]:
        """The views of all partitions led here, as `read_committed` returns them."""
        # A partition that was closed has a new coordinator, which has its view.
        open_ones = [each for each, seat in self._seats.items() if not seat.shell.closed]
        shells = [self._shell(partition) for partition in sorted(open_ones)]
        parts = await asyncio.gather(*(_part(shell, view) for shell in shells))
        return [each for part in parts for each in part]

    def read(self, partition: int, view: Callable[[S], R]) -> R:
        """A view without waiting for commits, for the coordinator itself and not for clients."""
        return view(self._shell(partition).shard)

    def _shell(self, partition: int) -> ShardShell[S]:
        seat = self._seats.get(partition)
        if seat is None or seat.shell.closed:
            raise ApiError(
                ErrorCode.NOT_COORDINATOR,
                f"this broker does not coordinate partition {partition} of its {self._family}s",
            )
        if seat.loading is not None:
            raise ApiError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                f"the {self._family} coordinator of partition {partition} is being loaded",
            )
        return seat.shell

    # Loading.

    async def _load(self, seat: _Seat[S]) -> None:
        shell = seat.shell
        began_ms = self._clock.elapsed_ms()
        try:
            await self._replay_log(shell)
            self.load_times_ms.append(self._clock.elapsed_ms() - began_ms)
        except Exception as error:
            # Unreadable state must not be served, nor overwritten by an empty one.
            self._report_bug(error)
            shell.close(ErrorCode.NOT_COORDINATOR)
            return
        finally:
            seat.loading = None
        shell.start()

    async def _replay_log(self, shell: ShardShell[S]) -> None:
        log, shard = shell.log, shell.shard
        offset = log.start_offset
        replayed = 0
        while offset < log.end_offset:
            before = offset
            buffer = log.read(offset, self._load_buffer_size)
            if not len(buffer):
                # Offsets without records up to the end: the next segment had begun when a power
                # failure took the tail of the last one.
                return
            for next_offset, entries in read_entries(buffer):
                for entry in entries:
                    if entry.offset >= offset:
                        self._replay(shard, entry)
                        replayed += 1
                offset = max(offset, next_offset)
                if replayed >= _REPLAY_COUNT_PER_TURN:
                    replayed = 0
                    await asyncio.sleep(0)
            if offset == before:
                raise ApiError(
                    ErrorCode.CORRUPT_MESSAGE,
                    f"no batch can be read at offset {offset} of a {self._family} log "
                    f"that ends at {log.end_offset}",
                )

    def _replay(self, shard: S, entry: Entry | TransactionEnd) -> None:
        if isinstance(entry, TransactionEnd):
            shard.replay_end_transaction(entry.producer_id, entry.committed)
            return
        if entry.key is None:
            return
        try:
            key, value = decode_coordinator_record(self._family, entry.key, entry.value)
        except UnknownRecordTypeError:
            # Written by a later release; it has no meaning here.
            return
        shard.replay(entry.offset, entry.producer_id, key, value)

    def _dismantle(self, partition: int, seat: _Seat[S]) -> None:
        del self._seats[partition]
        if seat.loading is not None:
            seat.loading.cancel()
        seat.shell.close(ErrorCode.NOT_COORDINATOR)


async def _committed(shell: ShardShell[S], view: Callable[[S], R]) -> R:
    def decide(shard: S, now_ms: WallMs) -> Decision[R | ApiError]:
        try:
            return Decision(view(shard))
        except ApiError as error:
            return Decision(error)

    result = await shell.run(decide)
    if isinstance(result, ApiError):
        raise result
    return result


async def _part(shell: ShardShell[S], view: Callable[[S], list[R]]) -> list[R]:
    try:
        return await _committed(shell, view)
    except ApiError as error:
        if error.code is ErrorCode.NOT_COORDINATOR:
            return []
        raise


def _no_actions(partition: int, action: Action) -> None:
    invariant(False, f"{action!r} of partition {partition} cannot be performed")
