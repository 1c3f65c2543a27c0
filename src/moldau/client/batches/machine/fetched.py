"""Batches of a Fetch response, one by one, without their records.

Decided here: which batches hold records for a reader (no control batches, and none of aborted
transactions where only committed records are wanted), and which of them can be copied as they are.
Invariants: checksums are compared before a batch is returned, because a copy gets a new one; the
position moves past every batch that is skipped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from moldau.client._records import BatchReader, ConsumerRecord, readable
from moldau.client.errors import CorruptRecordError
from moldau.wire.batch_header import (
    COMPRESSION_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    HEADER_SIZE,
    HEADER_STRUCT,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    OFFSET_AND_LENGTH_STRUCT,
    TRANSACTIONAL_FLAG,
)
from moldau.wire.compression import Compression
from moldau.wire.constants import Buffer
from moldau.wire.records import ControlType, CorruptBatchError, checksum, decode_control_type

__all__ = ["FetchedBatch", "FetchedBatchReader"]


class FetchedBatch:
    """One batch as the broker has it; `start_offset` is the first one that is wanted of it."""

    __slots__ = (
        "attributes",
        "base_offset",
        "base_timestamp",
        "data",
        "last_offset",
        "max_timestamp",
        "partition",
        "record_count",
        "start_offset",
        "topic",
    )

    def __init__(
        self,
        topic: str,
        partition: int,
        data: memoryview,
        fields: tuple[int, ...],
        start_offset: int,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.data = data
        self.base_offset = fields[0]
        self.attributes = fields[5]
        self.last_offset = fields[0] + fields[6]
        self.base_timestamp = fields[7]
        self.max_timestamp = fields[8]
        self.record_count = fields[12]
        self.start_offset = max(start_offset, self.base_offset)

    @property
    def size(self) -> int:
        return len(self.data)

    @property
    def compression(self) -> Compression:
        return Compression(self.attributes & COMPRESSION_MASK)

    @property
    def is_copyable(self) -> bool:
        """Whether a broker takes the batch as it is: all its offsets are there and wanted, and its
        timestamps are the producer's."""
        return (
            self.start_offset == self.base_offset
            and self.last_offset - self.base_offset + 1 == self.record_count
            and not self.attributes & (LOG_APPEND_TIME_FLAG | DELETE_HORIZON_FLAG)
        )

    def records(self) -> list[ConsumerRecord]:
        """The records from `start_offset` on, decoded."""
        if self.record_count == 0:
            return []
        reader = BatchReader(self.data, 0, self.topic, self.partition, check_crcs=False)
        found: list[ConsumerRecord] = reader.next(self.record_count)
        return [each for each in found if each.offset >= self.start_offset]


class FetchedBatchReader:
    """The counterpart of `FetchReader` that returns batches; `next` counts batches."""

    __slots__ = (
        "_aborted",
        "_aborted_producers",
        "_check_crcs",
        "_data",
        "_leader_epoch",
        "_partition",
        "_position",
        "_read_committed",
        "_size",
        "_topic",
        "byte_count",
        "exhausted",
        "has_batch",
        "next_offset",
        "record_count",
    )

    def __init__(
        self,
        records: Buffer,
        topic: str,
        partition: int,
        start_offset: int,
        *,
        key_deserializer: object = None,
        value_deserializer: object = None,
        check_crcs: bool = True,
        read_committed: bool = False,
        aborted: Iterable[tuple[int, int]] = (),
    ) -> None:
        # Kept by batches that are on their way to another cluster.
        self._data = memoryview(readable(records))
        self._size = len(records)
        self._topic = topic
        self._partition = partition
        self._check_crcs = check_crcs
        self._read_committed = read_committed
        self._aborted: deque[tuple[int, int]] = deque()
        if read_committed:
            self._aborted.extend(sorted(aborted, key=lambda item: item[1]))
        self._aborted_producers: set[int] = set()
        self._position = 0
        self._leader_epoch = -1
        self.next_offset = start_offset
        self.exhausted = False
        self.byte_count = 0
        self.record_count = 0
        self.has_batch = self._size >= HEADER_SIZE

    @property
    def leader_epoch(self) -> int | None:
        return None if self._leader_epoch < 0 else self._leader_epoch

    def next(self, max_count: int) -> list[FetchedBatch]:
        """The next batches, at most `max_count`; none only when all were returned."""
        found: list[FetchedBatch] = []
        while len(found) < max_count:
            batch = self._following(after_some=bool(found))
            if batch is None:
                break
            found.append(batch)
            self.record_count += batch.record_count
        return found

    def _following(self, *, after_some: bool) -> FetchedBatch | None:
        data = self._data
        while self._position + HEADER_SIZE <= self._size:
            position = self._position
            length: int = OFFSET_AND_LENGTH_STRUCT.unpack_from(data, position)[1]
            size = LOG_OVERHEAD + length
            if data[position + MAGIC_POSITION] != MAGIC or size < HEADER_SIZE:
                raise self._corrupt("has no record batch of the present format")
            if position + size > self._size:
                break
            fields = HEADER_STRUCT.unpack_from(data, position)
            wanted = fields[0] + fields[6] >= self.next_offset
            if wanted and self._check_crcs and checksum(data, position, size) != fields[4]:
                if after_some:
                    # What came before it is returned first.
                    return None
                raise self._corrupt(f"has a batch at offset {fields[0]} with a wrong checksum")
            is_hidden = self._is_hidden(fields, position)
            self._position += size
            self.byte_count += size
            if not wanted:
                continue
            self._leader_epoch = fields[2]
            start_offset, self.next_offset = self.next_offset, fields[0] + fields[6] + 1
            if not is_hidden and fields[12] > 0:
                view = data[position : position + size]
                return FetchedBatch(self._topic, self._partition, view, fields, start_offset)
        self.exhausted = True
        return None

    def _is_hidden(self, fields: tuple[int, ...], position: int) -> bool:
        """Whether the batch holds nothing for a reader. Notes which transactions are aborted."""
        attributes, producer_id = fields[5], fields[9]
        is_control = bool(attributes & CONTROL_FLAG)
        if not self._read_committed or producer_id < 0:
            return is_control
        while self._aborted and self._aborted[0][1] <= fields[0] + fields[6]:
            self._aborted_producers.add(self._aborted.popleft()[0])
        if not is_control:
            return attributes & TRANSACTIONAL_FLAG != 0 and producer_id in self._aborted_producers
        if self._is_abort(position):
            self._aborted_producers.discard(producer_id)
        return True

    def _is_abort(self, position: int) -> bool:
        marker = BatchReader(self._data, position, self._topic, self._partition).next(1)
        try:
            return bool(marker) and decode_control_type(marker[0].key) == ControlType.ABORT
        except CorruptBatchError as error:
            raise self._corrupt(f"has a control batch that cannot be read: {error}") from error

    def _corrupt(self, problem: str) -> CorruptRecordError:
        return CorruptRecordError(f"{self._topic}-{self._partition} {problem}")
