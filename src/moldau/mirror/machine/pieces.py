"""Fetched batches as what is sent: large ones as they are, small ones combined.

A broker takes one batch of a partition per request, so many small ones would be slow; and some
batches must be written again, such as those that compaction has thinned out. What is written again
keeps its compression, and its records keep their timestamps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

__all__ = ["Part", "Piece", "pieces_of"]

COMBINED_BYTES_MAX = 64 * 1024


@dataclass(frozen=True, slots=True)
class Part:
    """Records of a piece with consecutive offsets."""

    index: int
    upstream: int
    count: int


class Piece(NamedTuple):
    """One batch to send, and which records are in it."""

    content: Any
    parts: tuple[Part, ...]
    size: int
    max_timestamp: int


class Fetched(Protocol):
    """A `FetchedBatch`."""

    @property
    def base_offset(self) -> int: ...

    @property
    def record_count(self) -> int: ...

    @property
    def max_timestamp(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def compression(self) -> Any: ...

    @property
    def is_copyable(self) -> bool: ...

    def records(self) -> list[Any]: ...


class Maker(Protocol):
    """How batches are made; the shell brings it along."""

    def copy(self, batch: Any) -> Any: ...

    def builder(self, limit_bytes: int, compression: Any) -> Any: ...


class _Combined:
    """Records of several small batches."""

    def __init__(self, builder: Any, compression: Any) -> None:
        self.builder = builder
        self.compression = compression
        self.parts: list[Part] = []
        self.max_timestamp = -1

    def append(self, record: Any) -> bool:
        index = self.builder.append(record.timestamp, record.key, record.value, record.headers)
        if index < 0:
            return False
        last = self.parts[-1] if self.parts else None
        if last is not None and last.upstream + last.count == record.offset:
            self.parts[-1] = replace(last, count=last.count + 1)
        else:
            self.parts.append(Part(index, record.offset, 1))
        self.max_timestamp = max(self.max_timestamp, record.timestamp)
        return True

    def piece(self) -> Piece:
        return Piece(self.builder, tuple(self.parts), self.builder.size, self.max_timestamp)


def pieces_of(batches: Iterable[Fetched], maker: Maker, *, copy_min_bytes: int) -> Iterator[Piece]:
    """In the order of the records. Batches of at least `copy_min_bytes` are copied as they are,
    if a broker takes them."""
    combined: _Combined | None = None
    for batch in batches:
        if batch.is_copyable and batch.size >= copy_min_bytes:
            if combined is not None:
                yield combined.piece()
                combined = None
            part = Part(0, batch.base_offset, batch.record_count)
            yield Piece(maker.copy(batch), (part,), batch.size, batch.max_timestamp)
            continue
        for record in batch.records():
            if combined is not None and combined.compression != batch.compression:
                yield combined.piece()
                combined = None
            if combined is not None and not combined.append(record):
                yield combined.piece()
                combined = None
            if combined is None:
                builder = maker.builder(COMBINED_BYTES_MAX, batch.compression)
                combined = _Combined(builder, batch.compression)
                combined.append(record)
    if combined is not None:
        yield combined.piece()
