"""A producer that takes whole batches, beside records."""

from __future__ import annotations

from typing import Any, Protocol

from moldau.client.errors import DuplicateSequenceError
from moldau.client.producer._batch import ProducerBatch, RecordFuture
from moldau.client.producer._send_path import Outgoing
from moldau.client.producer.asynchronous import AsyncProducer

__all__ = ["BatchProducer", "CompleteBatch", "SentBatch"]


class CompleteBatch(Protocol):
    """A `BatchCopy`, or a `BatchBuilder` that gets no more records."""

    @property
    def record_count(self) -> int: ...

    @property
    def size(self) -> int: ...

    def close(self) -> None: ...


class SentBatch:
    """What becomes of a batch. It may be split on the way; its offsets are consecutive even so,
    unless another producer writes to the partition in between."""

    __slots__ = ("_batch", "record_count")

    def __init__(self, batch: ProducerBatch, record_count: int) -> None:
        self._batch = batch
        self.record_count = record_count

    def offsets(self) -> list[tuple[int, int, int]]:
        """(index of the first record, its offset, count) of each part, once it is acknowledged;
        raises what went wrong."""
        parts = self._batch.parts
        if parts is None:
            RecordFuture(self._batch, 0, -1, -1, -1).result()
            if self._batch.base_offset < 0:
                # The broker has had it before and no longer knows where.
                raise DuplicateSequenceError("the offset of a batch that was sent twice is lost")
            return [(0, self._batch.base_offset, self.record_count)]
        found = []
        for first, part in parts:
            inner = SentBatch(part, part.record_count).offsets()
            found += [(first + index, offset, count) for index, offset, count in inner]
        return found


class BatchProducer(AsyncProducer):
    """As `AsyncProducer`; `send_batch` appends a batch that is complete."""

    async def send_batch(self, topic: str, partition: int, batch: CompleteBatch) -> SentBatch:
        """Append a batch to the queue of its partition, behind what was sent before.

        Waits for at most `max.block.ms`, while the topic is not known or `buffer.memory` is full.

        >>> sent = await producer.send_batch("copy", 0, BatchCopy(fetched))
        >>> await producer.flush()
        >>> print(sent.offsets())
        """
        if not self._started:
            await self.start()
        batch.close()
        core = self._core
        count = batch.record_count
        outgoing = Outgoing(topic, None, None, partition, None, None, None)
        outgoing.is_serialized = True
        # A stand-in of the right size: memory is counted, not used.
        outgoing.value_bytes = _Size(batch.size)
        until_ms = core.block_until_ms(outgoing)
        try:
            while (made := self._append(outgoing, batch)) is None:
                await core.await_room(outgoing, until_ms)
        finally:
            core.memory.release(outgoing)
        return SentBatch(made, count)

    def _append(self, outgoing: Outgoing, batch: Any) -> ProducerBatch | None:
        core = self._core
        accumulator = core.accumulator
        manager = core.transactions
        if manager is not None:
            manager.check_send()
        entry = accumulator.topics.get(outgoing.topic)
        if entry is None or not entry.queues:
            return None
        partition = outgoing.partition or 0
        if partition >= len(entry.queues):
            return None
        with accumulator.lock:
            size = core.path.memory_needed(outgoing)
            if outgoing.memory_size < size and not accumulator.memory.take(size):
                return None
            outgoing.memory_size = 0
            queue = entry.queues[partition]
            made = accumulator.add(queue, batch, size, core.cluster.clock.elapsed_ms())
            if manager is not None and manager.is_transactional:
                manager.add_partition(queue.key)
        core.sender.wake_by(0)
        return made


class _Size(bytes):
    """Bytes that are only measured."""

    _size: int

    def __new__(cls, size: int) -> _Size:
        made = super().__new__(cls)
        made._size = size
        return made

    def __len__(self) -> int:
        return self._size
