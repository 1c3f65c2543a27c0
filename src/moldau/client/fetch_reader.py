"""The records of one partition in a Fetch response, in as many portions as the caller likes.

Decided here: which batches hold records for the application (not control batches, not those of
aborted transactions where only committed ones are wanted) and how far the position has come. What
always holds: no batch is decoded twice; an error comes only when nothing could be given before it,
and leaves the reader where it was.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from moldau.client._records import BatchReader, Buffer, ConsumerRecord, Deserializer
from moldau.client.errors import CorruptRecordError, KafkaError
from moldau.wire.records import (
    HEADER_SIZE,
    HEADER_STRUCT,
    MAGIC,
    BatchHeader,
    ControlType,
    CorruptBatchError,
    decode_control_type,
    header_from,
)

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
        "_buffer",
        "_check_crcs",
        "_key_deserializer",
        "_leader_epoch",
        "_partition",
        "_position",
        "_read_committed",
        "_size",
        "_topic",
        "_value_deserializer",
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
        self._buffer = records
        self._size = len(records)
        self._topic = topic
        self._partition = partition
        self._key_deserializer = key_deserializer
        self._value_deserializer = value_deserializer
        self._check_crcs = check_crcs
        self._read_committed = read_committed
        self._aborted: deque[tuple[int, int]] = deque()
        if read_committed:
            self._aborted.extend(sorted(aborted, key=lambda item: item[1]))
        self._aborted_producers: set[int] = set()
        self._batch: BatchReader | None = None
        self._position = 0
        self._leader_epoch = -1
        self.next_offset = start_offset
        self.exhausted = False
        self.byte_count = 0
        self.record_count = 0
        #: False where not even one batch was there in full.
        self.has_batch = self._size >= HEADER_SIZE and self._size >= self._first_size()

    @property
    def leader_epoch(self) -> int | None:
        """The epoch of the batch that the last record came from."""
        return None if self._leader_epoch < 0 else self._leader_epoch

    def skip_to(self, offset: int) -> None:
        """Give no record below `offset`: how a seek passes over a record that cannot be read."""
        if offset <= self.next_offset:
            return
        self.next_offset = offset
        batch = self._batch
        if batch is not None:
            if batch.last_offset < offset:
                self._batch = None
            else:
                batch.skip_to(offset)

    def next(self, max_count: int) -> list[ConsumerRecord]:
        """The next records, at most `max_count`; none only when all were given."""
        if max_count <= 0:
            raise ValueError(f"max_count {max_count} must be positive")
        records: list[ConsumerRecord] = []
        while len(records) < max_count:
            try:
                batch = self._batch
                if batch is None:
                    batch = self._open_next()
                    if batch is None:
                        self.exhausted = True
                        break
                    self._batch = batch
                given = batch.next(max_count - len(records))
            except KafkaError:
                if records:
                    break
                raise
            if batch.exhausted:
                self._batch = None
            if batch.next_offset > self.next_offset:
                self.next_offset = batch.next_offset
            if given:
                self._leader_epoch = -1 if batch.leader_epoch is None else batch.leader_epoch
                # The usual case is one batch after the other with nothing in between to copy.
                records = records + given if records else given
        if self._batch is None and self._position + HEADER_SIZE > self._size:
            self.exhausted = True
        self.record_count += len(records)
        return records

    def _first_size(self) -> int:
        return header_from(HEADER_STRUCT.unpack_from(self._buffer, 0)).size

    def _header_at(self, position: int) -> BatchHeader | None:
        """The header of the batch at `position`, or None if the batch is not there in full."""
        if position + HEADER_SIZE > self._size:
            return None
        header = header_from(HEADER_STRUCT.unpack_from(self._buffer, position))
        if header.magic == MAGIC and header.size < HEADER_SIZE:
            raise CorruptRecordError(
                f"{self._topic}-{self._partition}: batch at offset {header.base_offset} says it "
                f"has {header.size} bytes"
            )
        if position + header.size > self._size:
            return None
        return header

    def _open_next(self) -> BatchReader | None:
        """The next batch with records for the application; the position moves over the others."""
        while (header := self._header_at(self._position)) is not None:
            if header.magic == MAGIC and header.last_offset < self.next_offset:
                self._follow_transaction(header, None)
                self._position += header.size
                continue
            batch = BatchReader(
                self._buffer,
                self._position,
                self._topic,
                self._partition,
                start_offset=self.next_offset,
                key_deserializer=None if header.is_control else self._key_deserializer,
                value_deserializer=None if header.is_control else self._value_deserializer,
                check_crcs=self._check_crcs,
            )
            dropped = self._follow_transaction(header, batch)
            self._position += header.size
            self.byte_count += header.size
            if not dropped and not header.is_control:
                return batch
            self.next_offset = header.next_offset
        return None

    def _follow_transaction(self, header: BatchHeader, batch: BatchReader | None) -> bool:
        """Note which producers' transactions are aborted here; whether this batch is of one."""
        if not self._read_committed or not header.has_producer_id:
            return False
        while self._aborted and self._aborted[0][1] <= header.last_offset:
            self._aborted_producers.add(self._aborted.popleft()[0])
        if not header.is_control:
            return header.is_transactional and header.producer_id in self._aborted_producers
        if batch is None:
            batch = BatchReader(self._buffer, self._position, self._topic, self._partition)
        if _is_abort(batch, header):
            self._aborted_producers.discard(header.producer_id)
        return True


def _is_abort(batch: BatchReader, header: BatchHeader) -> bool:
    batch_records = batch.next(1)
    if not batch_records:
        return False
    try:
        return decode_control_type(batch_records[0].key) == ControlType.ABORT
    except CorruptBatchError as error:
        raise CorruptRecordError(
            f"control batch at offset {header.base_offset}: {error}"
        ) from error
