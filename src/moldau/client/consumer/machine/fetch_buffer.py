"""What was fetched and not yet handed out.

The event loop adds at one end, the application's thread takes from the other; both only through
operations of a deque that are atomic, and counters under the subscription's lock. What always
holds: records leave in the order of their offsets, per partition; a position moves only as records
are handed out; an error is raised only when nothing that came before it is left to hand out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from moldau.client.consumer.machine.positions import PositionState
from moldau.client.consumer.machine.subscription import SubscriptionState
from moldau.client.consumer_record import ConsumerRecord
from moldau.client.errors import KafkaError
from moldau.client.topics import OffsetAndMetadata, TopicPartition
from moldau.wire.batch_header import (
    HEADER_SIZE,
    LAST_OFFSET_DELTA_POSITION,
    LAST_OFFSET_DELTA_STRUCT,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    OFFSET_AND_LENGTH_STRUCT,
)

__all__ = ["CompletedFetch", "FetchBuffer", "end_of_batches"]


Records = dict[TopicPartition, list[ConsumerRecord]]


class CompletedFetch:
    """One partition's part of a response: records to read, or an error to deal with."""

    __slots__ = ("end_offset", "error", "key", "reader", "size", "start_offset", "state", "version")

    def __init__(
        self,
        key: TopicPartition,
        state: PositionState,
        *,
        version: int,
        start_offset: int,
        end_offset: int,
        size: int,
        reader: Any,
        error: Callable[[], KafkaError | None] | None = None,
    ) -> None:
        self.key = key
        self.state = state
        # Of the position that it was fetched for.
        self.version = version
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.size = size
        self.reader = reader
        # Called when it is its turn: deals with the error, gives one to raise if need be.
        self.error = error


def end_of_batches(records: memoryview) -> int | None:
    """The offset after the last whole batch; None if there is none."""
    position, size = 0, len(records)
    last = -1
    while position + HEADER_SIZE <= size:
        if records[position + MAGIC_POSITION] != MAGIC:
            break
        _, length = OFFSET_AND_LENGTH_STRUCT.unpack_from(records, position)
        following = position + LOG_OVERHEAD + length
        if following > size or following < position + HEADER_SIZE:
            break
        last = position
        position = following
    if last < 0:
        return None
    base_offset, _ = OFFSET_AND_LENGTH_STRUCT.unpack_from(records, last)
    (delta,) = LAST_OFFSET_DELTA_STRUCT.unpack_from(records, last + LAST_OFFSET_DELTA_POSITION)
    return int(base_offset) + int(delta) + 1


class FetchBuffer:
    """See the module."""

    def __init__(
        self,
        subscription: SubscriptionState,
        on_drained: Callable[[CompletedFetch], None],
        on_room: Callable[[], None],
    ) -> None:
        """`on_room` is called in the application's thread when there is room again that a
        partition waits for."""
        self._subscription = subscription
        self._on_drained = on_drained
        self._on_room = on_room
        self._completed: deque[CompletedFetch] = deque()
        self._bytes = 0
        #: A partition could have been asked for and was not, for want of room. Set under the lock.
        self.short_of_room = False

    @property
    def byte_count(self) -> int:
        return self._bytes

    def __bool__(self) -> bool:
        return bool(self._completed)

    def add(self, completed: CompletedFetch) -> None:
        with self._subscription.lock:
            state = completed.state
            if state.version != completed.version:
                return
            state.buffered_count += 1
            state.buffered_bytes += completed.size
            if completed.end_offset > state.fetch_offset:
                state.fetch_offset = completed.end_offset
            self._bytes += completed.size
        self._completed.append(completed)

    def clear(self) -> None:
        with self._subscription.lock:
            for each in self._completed:
                self._leave(each)
            self._completed.clear()

    def collect(self, count_max: int) -> tuple[Records, dict[TopicPartition, OffsetAndMetadata]]:
        """Records to hand out, and the positions after them."""
        found: Records = {}
        next_offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        kept: list[CompletedFetch] = []
        completed = self._completed
        try:
            while count_max > 0 and completed:
                first = completed[0]
                if not self._is_current(first):
                    self._take(first)
                    self._tell_of_room()
                    continue
                if first.state.paused:
                    kept.append(completed.popleft())
                    continue
                if first.error is not None and found:
                    break
                try:
                    records = self._read(first, count_max)
                except KafkaError:
                    if found:
                        break
                    raise
                if records:
                    count_max -= len(records)
                    before = found.get(first.key)
                    found[first.key] = records if before is None else before + records
                if self._moved(first, next_offsets):
                    # Now, not when all is read: the next part comes while this thread decodes.
                    self._tell_of_room()
        finally:
            completed.extendleft(reversed(kept))
        return found, next_offsets

    def _tell_of_room(self) -> None:
        """Once, however many parts were taken: the callback looks at all partitions."""
        with self._subscription.lock:
            waits, self.short_of_room = self.short_of_room, False
        if waits:
            self._on_room()

    def _is_current(self, completed: CompletedFetch) -> bool:
        state = completed.state
        if completed.version != state.version or state.position is None:
            return False
        # A paused one is kept for later, the others that may not be fetched are gone.
        if not state.paused and not state.is_fetchable:
            return False
        return self._subscription.assignment.get(completed.key) is state

    def _read(self, completed: CompletedFetch, count_max: int) -> list[ConsumerRecord]:
        if completed.error is not None:
            error = completed.error()
            self._take(completed)
            if error is not None:
                raise error
            return []
        records: list[ConsumerRecord] = completed.reader.next(count_max)
        return records

    def _moved(
        self, completed: CompletedFetch, next_offsets: dict[TopicPartition, OffsetAndMetadata]
    ) -> bool:
        """Move the position to where the reader stands; whether there is nothing left to read."""
        reader = completed.reader
        if reader is None:
            return True
        with self._subscription.lock:
            state = completed.state
            if state.version == completed.version and state.position is not None:
                offset = reader.next_offset
                if offset > state.position.offset:
                    state.advance(offset, reader.leader_epoch)
                    next_offsets[completed.key] = OffsetAndMetadata(
                        offset, "", state.position.offset_epoch
                    )
        if not reader.exhausted:
            return False
        self._take(completed)
        self._on_drained(completed)
        return True

    def _take(self, completed: CompletedFetch) -> None:
        if self._completed and self._completed[0] is completed:
            self._completed.popleft()
            with self._subscription.lock:
                self._leave(completed)

    def _leave(self, completed: CompletedFetch) -> None:
        self._bytes -= completed.size
        state = completed.state
        if state.version == completed.version:
            state.buffered_count -= 1
            state.buffered_bytes -= completed.size
