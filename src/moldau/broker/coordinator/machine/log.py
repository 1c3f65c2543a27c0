"""What a coordinator needs of the log it keeps its state in, and how it reads it back.

`CoordinatorLog` keeps the runtime apart from replication: the broker adapts a
partition to it, tests use one in memory. `read_entries` turns stored batches
into what a shard replays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from moldau.broker.coordinator.machine.decision import ProducerStamp, TransactionEnding
from moldau.times import WallMs
from moldau.wire.constants import NO_PRODUCER_ID, Buffer
from moldau.wire.errors import ErrorCode
from moldau.wire.records import (
    ControlType,
    decode_batch,
    decode_control_type,
    iterate_headers,
)


class CoordinatorLog(Protocol):
    """The leader's view of one internal-topic partition."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    def append(
        self,
        records: Sequence[tuple[bytes, bytes | None]],
        *,
        now_ms: WallMs,
        producer: ProducerStamp | None = None,
    ) -> int:
        """Append as one batch, of the producer's transaction if one is named, and return its
        first offset; raises ApiError, appending nothing."""
        ...

    def append_marker(self, ending: TransactionEnding, *, now_ms: WallMs) -> int:
        """Append the marker that ends a transaction and return its offset; raises ApiError."""
        ...

    def read(self, offset: int, max_bytes: int) -> Buffer:
        """Whole batches from the one that holds `offset` on, the last perhaps cut short;
        at least one unless the log ends there."""
        ...

    def is_committed(self, next_offset: int) -> bool:
        """Whether `when_committed` would call a waiter at once, with NONE."""
        ...

    def when_committed(self, next_offset: int, waiter: Callable[[ErrorCode], None]) -> None:
        """Call `waiter` with NONE once everything below `next_offset` is committed, at once
        if it is, or with the reason why that will not happen here."""
        ...

    def forget_waiter(self, waiter: Callable[[ErrorCode], None]) -> None:
        """Call it no more."""
        ...


@dataclass(frozen=True, slots=True)
class Entry:
    """One record of the log."""

    offset: int
    producer_id: int
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True)
class TransactionEnd:
    """A transaction marker of the log."""

    offset: int
    producer_id: int
    committed: bool


def read_entries(buffer: Buffer) -> Iterator[tuple[int, list[Entry | TransactionEnd]]]:
    """For each whole batch of the buffer: the offset after it, and what it holds."""
    for position, header in iterate_headers(buffer):
        entries: list[Entry | TransactionEnd] = []
        for record in decode_batch(buffer, position):
            if not header.is_control:
                # Only in a transaction a producer id means that a marker will follow.
                producer_id = header.producer_id if header.is_transactional else NO_PRODUCER_ID
                entries.append(Entry(record.offset, producer_id, record.key, record.value))
                continue
            control = decode_control_type(record.key)
            if control in (ControlType.COMMIT, ControlType.ABORT):
                entries.append(
                    TransactionEnd(record.offset, header.producer_id, control == ControlType.COMMIT)
                )
        yield header.next_offset, entries
