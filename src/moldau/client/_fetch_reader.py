# cython: annotation_typing=False
"""The records of one partition in a Fetch response, in as many portions as the caller likes.

Decided here: which batches hold records for the application (not control batches, not those of
aborted transactions where only committed ones are wanted) and how far the position has come. What
always holds: no batch is decoded twice; an error comes only when nothing could be given before it,
and leaves the reader where it was.

Plain Python, and with `fetch_reader.pxd` beside it also the source of a compiled module with the
same names and results: small batches cost here, not in their records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from moldau.client._records import BatchReader, ConsumerRecord, Deserializer, readable
from moldau.client.errors import CorruptRecordError, KafkaError
from moldau.wire.batch_header import (
    CONTROL_FLAG,
    HEADER_SIZE,
    HEADER_STRUCT,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    OFFSET_AND_LENGTH_STRUCT,
    TRANSACTIONAL_FLAG,
)
from moldau.wire.constants import Buffer
from moldau.wire.records import ControlType, CorruptBatchError, decode_control_type

__all__ = ["FetchReader"]


class FetchReader:
    """Reads `records` from `start_offset` on.

    `aborted` are (producer id, first offset) of the aborted transactions that the response named;
    they matter with `read_committed` only.
    """

    __slots__ = (
        "_aborted",
        "_aborted_producers",
        "_batch",
        "_data",
        "_is_open",
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
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        check_crcs: bool = True,
        read_committed: bool = False,
        aborted: Iterable[tuple[int, int]] = (),
    ) -> None:
        self._data = readable(records)
        self._size = len(records)
        self._topic = topic
        self._partition = partition
        self._read_committed = read_committed
        self._aborted: deque[tuple[int, int]] = deque()
        if read_committed:
            self._aborted.extend(sorted(aborted, key=lambda item: item[1]))
        self._aborted_producers: set[int] = set()
        # One reader for all batches, turned from one to the next; open while it has records.
        self._batch = BatchReader(
            records,
            -1,
            topic,
            partition,
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
            check_crcs=check_crcs,
        )
        self._is_open = False
        self._position = 0
        self._leader_epoch = -1
        self.next_offset = start_offset
        self.exhausted = False
        self.byte_count = 0
        self.record_count = 0
        #: False where not even one batch was there in full.
        self.has_batch = self._size >= HEADER_SIZE and self._size >= self._size_at(0)

    @property
    def leader_epoch(self) -> int | None:
        """The epoch of the batch that the last record came from."""
        return None if self._leader_epoch < 0 else self._leader_epoch

    def skip_to(self, offset: int) -> None:
        """Give no record below `offset`: how a seek passes over a record that cannot be read."""
        if offset <= self.next_offset:
            return
        self.next_offset = offset
        if self._is_open:
            if self._batch.last_offset < offset:
                self._is_open = False
            else:
                self._batch.skip_to(offset)

    def next(self, max_count: int) -> list[ConsumerRecord]:
        """The next records, at most `max_count`; none only when all were given."""
        if max_count <= 0:
            raise ValueError(f"max_count {max_count} must be positive")
        records: list[ConsumerRecord] = []
        batch = self._batch
        while True:
            before = len(records)
            if before >= max_count:
                break
            try:
                if not self._is_open:
                    if not self._open_next():
                        self.exhausted = True
                        break
                    self._is_open = True
                batch.fill(records, max_count - before)
            except KafkaError:
                if records:
                    break
                raise
            if batch.next_offset > self.next_offset:
                self.next_offset = batch.next_offset
            if len(records) > before:
                self._leader_epoch = -1 if batch.leader_epoch is None else batch.leader_epoch
            if not batch.exhausted:
                # Full, or in front of a record that cannot be read.
                break
            self._is_open = False
        if not self._is_open and self._position + HEADER_SIZE > self._size:
            self.exhausted = True
        self.record_count += len(records)
        return records

    def _size_at(self, position: int) -> int:
        """What the batch there says of its size."""
        length: int = OFFSET_AND_LENGTH_STRUCT.unpack_from(self._data, position)[1]
        return LOG_OVERHEAD + length

    def _open_next(self) -> bool:
        """Turn to the next batch with records for the application; the position moves over the
        others. False where no whole batch is left."""
        data = self._data
        batch = self._batch
        while self._position + HEADER_SIZE <= self._size:
            position = self._position
            size = self._size_at(position)
            if size < HEADER_SIZE and data[position + MAGIC_POSITION] == MAGIC:
                raise CorruptRecordError(
                    f"{self._topic}-{self._partition}: a batch claims to have {size} bytes, fewer "
                    "than its header"
                )
            if position + size > self._size:
                return False
            if data[position + MAGIC_POSITION] == MAGIC:
                fields = HEADER_STRUCT.unpack_from(data, position)
                last_offset = fields[0] + fields[6]
                if last_offset < self.next_offset:
                    if self._read_committed and fields[9] >= 0:
                        self._follow_transaction(fields)
                    self._position += size
                    continue
            batch.open(data, position, self.next_offset)
            dropped = batch.is_control
            if self._read_committed and batch.producer_id >= 0:
                dropped = self._follow_transaction(HEADER_STRUCT.unpack_from(data, position))
            self._position += size
            self.byte_count += size
            if not dropped:
                return True
            self.next_offset = batch.last_offset + 1
        return False

    def _follow_transaction(self, fields: tuple[int, ...]) -> bool:
        """Note which producers' transactions are aborted here; whether this batch, which has
        these header fields, holds nothing for the application."""
        last_offset = fields[0] + fields[6]
        attributes = fields[5]
        producer_id = fields[9]
        while self._aborted and self._aborted[0][1] <= last_offset:
            self._aborted_producers.add(self._aborted.popleft()[0])
        if not attributes & CONTROL_FLAG:
            return attributes & TRANSACTIONAL_FLAG != 0 and producer_id in self._aborted_producers
        marker = BatchReader(self._data, self._position, self._topic, self._partition)
        if _is_abort(marker):
            self._aborted_producers.discard(producer_id)
        return True


def _is_abort(batch: BatchReader) -> bool:
    records = batch.next(1)
    if not records:
        return False
    try:
        return decode_control_type(records[0].key) == ControlType.ABORT
    except CorruptBatchError as error:
        raise CorruptRecordError(f"control batch at offset {batch.base_offset}: {error}") from error
