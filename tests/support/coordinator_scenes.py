"""A coordinator's runtime over a log in memory, in virtual time."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from moldau.broker.coordinator.machine.decision import (
    CoordinatorRecord,
    Decision,
    ProducerStamp,
    Ticket,
    TransactionEnding,
)
from moldau.broker.coordinator.runtime import CoordinatorRuntime
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import Message, OffsetCommitKey, OffsetCommitValue
from moldau.wire.records import encode_batch, encode_end_txn_marker, read_header
from support.channels import HandClock


class MemoryLog:
    """A log whose commits can be held back and whose appends can be made to fail."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.start_offset = 0
        self.end_offset = 0
        self.holding = False
        self.append_error: ErrorCode | None = None
        self.committed_to = 0
        self._waiters: dict[Callable[[ErrorCode], None], int] = {}

    def append(
        self,
        records: Sequence[tuple[bytes, bytes | None]],
        *,
        now_ms: int,
        producer: ProducerStamp | None = None,
    ) -> int:
        stamp = producer or ProducerStamp(-1, -1)
        return self._append(
            encode_batch(
                [(k, v, now_ms, ()) for k, v in records],
                base_offset=self.end_offset,
                producer_id=stamp.producer_id,
                producer_epoch=stamp.producer_epoch,
                is_transactional=producer is not None,
            )
        )

    def append_marker(self, ending: TransactionEnding, *, now_ms: int) -> int:
        return self._append(
            encode_end_txn_marker(
                producer_id=ending.producer_id,
                producer_epoch=ending.producer_epoch,
                committed=ending.committed,
                coordinator_epoch=ending.coordinator_epoch,
                timestamp=now_ms,
                base_offset=self.end_offset,
            )
        )

    def _append(self, batch: bytes) -> int:
        if self.append_error is not None:
            raise ApiError(self.append_error, "as told")
        base = self.end_offset
        self.add(batch)
        if not self.holding:
            self.commit()
        return base

    def add(self, batch: bytes) -> None:
        self.batches.append(batch)
        self.end_offset = read_header(batch).next_offset

    def commit(self) -> None:
        self.committed_to = self.end_offset
        for waiter, wanted in list(self._waiters.items()):
            if wanted <= self.committed_to:
                del self._waiters[waiter]
                waiter(ErrorCode.NONE)

    def read(self, offset: int, max_bytes: int) -> bytes:
        index = bisect_right(self.batches, offset, key=lambda batch: read_header(batch).last_offset)
        if index and read_header(self.batches[index - 1]).next_offset > offset:
            index -= 1
        found = b""
        while index < len(self.batches) and len(found) < max_bytes:
            found += self.batches[index]
            index += 1
        return found[: max(max_bytes, len(self.batches[0]))]

    def is_committed(self, next_offset: int) -> bool:
        return next_offset <= self.committed_to

    def when_committed(self, next_offset: int, waiter: Callable[[ErrorCode], None]) -> None:
        if next_offset <= self.committed_to:
            waiter(ErrorCode.NONE)
        else:
            self._waiters[waiter] = next_offset

    def forget_waiter(self, waiter: Callable[[ErrorCode], None]) -> None:
        self._waiters.pop(waiter, None)


@dataclass
class Probe:
    """A shard that records what it is called with."""

    seen: list[Any] = field(default_factory=list)

    def replay(self, offset: int, producer_id: int, key: Message, value: Message | None) -> None:
        assert isinstance(key, OffsetCommitKey)
        assert key.topic != "poison", "as told"
        self.seen.append((offset, producer_id, key.topic, None if value is None else "value"))

    def replay_end_transaction(self, producer_id: int, committed: bool) -> None:
        self.seen.append(("end", producer_id, committed))

    def on_loaded(self, now_ms: int) -> Decision[None]:
        self.seen.append("loaded")
        return Decision(None)

    def on_timer(self, timer: Any, now_ms: int) -> Decision[None]:
        self.seen.append(("timer", timer, now_ms))
        if isinstance(timer, str) and timer.startswith("write "):
            return Decision(None, records=(record(timer[6:]),))
        return Decision(None)

    def on_written(self, continuation: Any, error: ErrorCode, now_ms: int) -> Decision[None]:
        self.seen.append(("written", continuation, error))
        if callable(continuation):
            return continuation()  # type: ignore[no-any-return]
        return Decision(None)


def record(topic: str, value: bool = True) -> CoordinatorRecord:
    return CoordinatorRecord(
        OffsetCommitKey(group="g", topic=topic, partition=0),
        OffsetCommitValue() if value else None,
        4,
    )


class World:
    def __init__(self, load_buffer_size: int = 1 << 20) -> None:
        self.clock = HandClock()
        self.log = MemoryLog()
        self.shards: list[Probe] = []
        self.bugs: list[Exception] = []
        self.runtime: CoordinatorRuntime[Probe] = CoordinatorRuntime(
            family="group",
            make_shard=self._make,
            clock=self.clock,
            write_timeout_ms=5_000,
            load_buffer_size=load_buffer_size,
            report_bug=self.bugs.append,
        )

    def _make(self) -> Probe:
        self.shards.append(Probe())
        return self.shards[-1]

    async def start(self) -> Probe:
        self.runtime.load(0, 1, self.log)
        await self.runtime.loaded()
        return self.shards[-1]

    def spawn(self, decide: Callable[[Probe, int], Decision[Any]]) -> asyncio.Task[Any]:
        return asyncio.get_running_loop().create_task(self.runtime.run(0, decide))

    def spawn_ticket(
        self, decide: Callable[[Probe, Ticket, int], Decision[None]]
    ) -> asyncio.Task[Message]:
        return asyncio.get_running_loop().create_task(self.runtime.run_with_ticket(0, decide))


Scene = Callable[[World], Coroutine[Any, Any, None]]


def play(scene: Scene, world: World | None = None) -> World:
    world = world or World()
    asyncio.run(scene(world))
    return world


async def settle() -> None:
    """Let every task run until it waits."""
    for _ in range(5):
        await asyncio.sleep(0)


def failure(task: asyncio.Task[Any]) -> ErrorCode:
    error = task.exception()
    assert isinstance(error, ApiError)
    return error.code
