"""A transaction coordinator over a log in memory, in virtual time, with partitions as told."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from moldau.broker.coordinator.transaction.coordinator import TransactionCoordinator
from moldau.broker.coordinator.transaction.machine.config import TransactionConfig
from moldau.broker.coordinator.transaction.machine.values import Marker, MarkerResult
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.records import encode_batch, iterate_headers

P = 1_000
"""The first producer id."""


class MemoryLog:
    """A log whose commits can be held back and whose appends can be made to fail."""

    def __init__(self) -> None:
        self.data = b""
        self.start_offset = 0
        self.end_offset = 0
        self.committed_to = 0
        self.holding = False
        self.append_error: ErrorCode | None = None
        self._waiters: dict[Callable[[ErrorCode], None], int] = {}

    def append(
        self, records: Sequence[tuple[bytes, bytes | None]], *, now_ms: int, producer: Any = None
    ) -> int:
        assert producer is None
        if self.append_error is not None:
            raise ApiError(self.append_error, "as told")
        base = self.end_offset
        self.data += encode_batch([(k, v, now_ms, ()) for k, v in records], base_offset=base)
        self.end_offset += len(records)
        if not self.holding:
            self.commit()
        return base

    def append_marker(self, ending: Any, *, now_ms: int) -> int:
        raise AssertionError("nobody writes to this topic in a transaction")

    def commit(self) -> None:
        self.committed_to = self.end_offset
        waiters, self._waiters = self._waiters, {}
        for waiter in waiters:
            waiter(ErrorCode.NONE)

    def read(self, offset: int, max_bytes: int) -> bytes:
        for position, header in iterate_headers(self.data):
            if header.next_offset > offset:
                return self.data[position:]
        return b""

    def is_committed(self, next_offset: int) -> bool:
        return next_offset <= self.committed_to

    def when_committed(self, next_offset: int, waiter: Callable[[ErrorCode], None]) -> None:
        if next_offset <= self.committed_to:
            waiter(ErrorCode.NONE)
        else:
            self._waiters[waiter] = next_offset

    def forget_waiter(self, waiter: Callable[[ErrorCode], None]) -> None:
        self._waiters.pop(waiter, None)


class Alarm:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class VirtualClock:
    def __init__(self) -> None:
        self.time_ms = 1_000_000
        self._queue: list[tuple[int, int, Alarm]] = []
        self._count = itertools.count()

    def now_ms(self) -> int:
        return self.time_ms

    elapsed_ms = now_ms

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Alarm:
        alarm = Alarm(callback)
        heapq.heappush(self._queue, (self.time_ms + delay_ms, next(self._count), alarm))
        return alarm

    async def advance(self, delay_ms: int) -> None:
        await settle()
        end_ms = self.time_ms + delay_ms
        while self._queue and self._queue[0][0] <= end_ms:
            at_ms, _, alarm = heapq.heappop(self._queue)
            self.time_ms = max(self.time_ms, at_ms)
            if alarm.callback is not None:
                alarm.callback()
            await settle()
        self.time_ms = end_ms


async def settle() -> None:
    """Let every task run until it waits for something outside."""
    for _ in range(20):
        await asyncio.sleep(0)


class Ids:
    def __init__(self) -> None:
        self.next = P
        self.error: ApiError | None = None
        self.gate: asyncio.Event | None = None

    async def next_id(self) -> int:
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        self.next += 1
        return self.next - 1


class Markers:
    """Partitions that answer what they are told to."""

    def __init__(self) -> None:
        self.written: list[Marker] = []
        self.errors: dict[tuple[str, int], list[ErrorCode]] = {}
        self.gate: asyncio.Event | None = None
        self.bug: Exception | None = None
        self.cancelled_count = 0

    async def write(self, markers: Sequence[Marker]) -> list[MarkerResult]:
        self.written += markers
        if self.bug is not None:
            bug, self.bug = self.bug, None
            raise bug
        if self.gate is not None:
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                self.cancelled_count += 1
                raise
        return [{each: self._answer(each) for each in marker.partitions} for marker in markers]

    def _answer(self, place: tuple[str, int]) -> ErrorCode:
        errors = self.errors.get(place)
        return errors.pop(0) if errors else ErrorCode.NONE


class Topics:
    def __init__(self) -> None:
        self.missing: set[tuple[str, int]] = set()

    def has_partition(self, name: str, partition: int) -> bool:
        return (name, partition) not in self.missing


class World:
    def __init__(self, **settings: Any) -> None:
        self.clock = VirtualClock()
        self.log = MemoryLog()
        self.ids = Ids()
        self.markers = Markers()
        self.topics = Topics()
        self.level = 2
        self.bugs: list[Exception] = []
        self.coordinator = TransactionCoordinator(
            TransactionConfig(**settings),
            partition_count=lambda: 1,
            producer_ids=self.ids,
            markers=self.markers,
            topics=self.topics,
            transaction_version=lambda: self.level,
            report_bug=self.bugs.append,
            clock=self.clock,
        )

    async def start(self, epoch: int = 4) -> None:
        self.coordinator.on_elected(0, epoch, self.log)
        await self.coordinator.loaded()
        await settle()

    async def begin(self, *partitions: int) -> None:
        """A transaction of producer P at epoch 0, unless another was asked for before."""
        assert await self.coordinator.init_producer_id("t", 60_000) == (P, 0)
        await self.add((P, 0), *partitions)

    async def add(self, producer: tuple[int, int], *partitions: int) -> None:
        places = [("topic", each) for each in partitions or (0,)]
        errors = await self.coordinator.add_partitions("t", *producer, places, verify_only=False)
        assert set(errors.values()) == {ErrorCode.NONE}

    async def state(self, transactional_id: str = "t") -> str:
        described = await self.coordinator.describe_transaction(transactional_id)
        return described.transaction_state or ErrorCode(described.error_code).name

    def places(self) -> list[list[int]]:
        """The partitions of each marker request so far."""
        return [[index for _, index in marker.partitions] for marker in self.markers.written]


Scenario = Callable[[World], Coroutine[Any, Any, None]]


def play(scenario: Scenario, **settings: Any) -> None:
    async def run() -> None:
        world = World(**settings)
        await world.start()
        try:
            await scenario(world)
            assert not world.bugs
        finally:
            world.coordinator.close()
        await settle()
        assert len(asyncio.all_tasks()) == 1, "nothing is left running"

    asyncio.run(run())


async def code_of(work: Coroutine[Any, Any, Any]) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        await work
    return caught.value.code
