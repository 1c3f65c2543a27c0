"""Finding batches in a segment's file by their headers, without reading the records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from moldau.broker.log.disk import File
from moldau.wire.batch_header import (
    BOUNDS_AND_TIME_STRUCT,
    BOUNDS_STRUCT,
    HEADER_SIZE,
    LENGTH_STRUCT,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
)

_BOUNDS_SIZE = BOUNDS_STRUCT.size
SCAN_CHUNK_SIZE = 8192


class Place(NamedTuple):
    """Where a batch is in its segment."""

    position: int
    size: int
    base_offset: int
    last_offset: int
    max_timestamp: int


def places(file: File, position: int, end: int) -> Iterator[Place]:
    """The whole batches in [position, end)."""
    unpack = BOUNDS_AND_TIME_STRUCT.unpack_from
    needed = BOUNDS_AND_TIME_STRUCT.size
    buffer = b""
    start = position
    while position + HEADER_SIZE <= end:
        at = position - start
        if at + needed > len(buffer):
            buffer = file.read(position, min(SCAN_CHUNK_SIZE, end - position))
            start = position
            at = 0
        base_offset, length, delta, max_timestamp = unpack(buffer, at)
        size = length + LOG_OVERHEAD
        if size < HEADER_SIZE or position + size > end:
            return
        yield Place(position, size, base_offset, base_offset + delta, max_timestamp)
        position += size


def position_of(
    file: File, offset: int, entry: tuple[int, int], base_offset: int, end: int
) -> int | None:
    """Start of the first batch that ends at or above `offset`; None if there is none.

    The search begins at `entry`, the offset and position of an index entry.
    """
    indexed, position = entry
    buffer = file.read(position, min(SCAN_CHUNK_SIZE, end - position))
    if position and not _begins_batch(buffer, base_offset, indexed):
        # The index is wrong (damage that no check at the start can find): the batches
        # themselves are right.
        position = 0
        buffer = file.read(0, min(SCAN_CHUNK_SIZE, end))
    # The same walk as `places`, but every fetch needs it, so it creates no object per batch.
    start = position
    unpack = BOUNDS_STRUCT.unpack_from
    while position + HEADER_SIZE <= end:
        at = position - start
        if at + _BOUNDS_SIZE > len(buffer):
            buffer = file.read(position, min(SCAN_CHUNK_SIZE, end - position))
            start = position
            at = 0
        first, length, delta = unpack(buffer, at)
        if first + delta >= offset:
            return position
        if length < HEADER_SIZE - LOG_OVERHEAD:
            return None
        position += length + LOG_OVERHEAD
    return None


def _begins_batch(buffer: bytes, base_offset: int, indexed_offset: int) -> bool:
    if len(buffer) < _BOUNDS_SIZE:
        return False
    first, length, delta = BOUNDS_STRUCT.unpack_from(buffer)
    return (
        base_offset <= first <= first + delta <= indexed_offset
        and length >= HEADER_SIZE - LOG_OVERHEAD
        and buffer[MAGIC_POSITION] == MAGIC
    )


def batch_size_at(file: File, position: int) -> int:
    size: int = LENGTH_STRUCT.unpack(file.read(position + 8, 4))[0]
    return size + LOG_OVERHEAD
