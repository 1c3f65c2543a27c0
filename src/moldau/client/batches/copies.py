"""A fetched batch, written for another partition: the same bytes behind a new header.

Only what belongs to the log it was in is replaced: offset, leader epoch, producer, sequence number
and the checksum over them. It takes the place of a `BatchBuilder` that is complete.
"""

from __future__ import annotations

from typing import Any

from moldau.client._batch_builder import BatchBuilder
from moldau.client.batches.machine.fetched import FetchedBatch
from moldau.wire.batch_header import (
    CRC_POSITION,
    CRC_STRUCT,
    HEADER_STRUCT,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL_FLAG,
)
from moldau.wire.constants import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from moldau.wire.records import NO_PARTITION_LEADER_EPOCH, checksum

__all__ = ["BatchCopy"]


class BatchCopy:
    """See the module; for batches that are copyable."""

    __slots__ = ("_packed", "batch", "closed", "record_count", "size")

    def __init__(self, batch: FetchedBatch) -> None:
        self.batch: FetchedBatch | None = batch
        self.record_count = batch.record_count
        self.size = batch.size
        self.closed = True
        self._packed: bytearray | None = None

    @property
    def uncompressed_size(self) -> int:
        """Not known without decompressing; what is on the wire counts."""
        return self.size

    @property
    def compressed_ratio(self) -> float:
        return 1.0

    def append(self, *_: Any) -> int:
        """Takes no records."""
        return -1

    def close(self) -> None:
        """Complete already."""

    def build(
        self,
        *,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        is_transactional: bool = False,
    ) -> bytearray:
        """The bytes for a Produce request; a later call writes other ids into the same bytes."""
        batch = self.batch
        if batch is None:
            return bytearray()
        packed = self._packed
        if packed is None:
            packed = self._packed = bytearray(batch.data)
        HEADER_STRUCT.pack_into(
            packed,
            0,
            0,
            len(packed) - LOG_OVERHEAD,
            NO_PARTITION_LEADER_EPOCH,
            MAGIC,
            0,
            batch.compression | (TRANSACTIONAL_FLAG if is_transactional else 0),
            self.record_count - 1,
            batch.base_timestamp,
            batch.max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            self.record_count,
        )
        CRC_STRUCT.pack_into(packed, CRC_POSITION, checksum(packed, 0, len(packed)))
        return packed

    def release(self) -> None:
        self.batch = None
        self._packed = None

    def split(self, limit_bytes: int) -> list[BatchBuilder]:
        """The same records in batches of at most `limit_bytes`, or of one record each."""
        parts: list[BatchBuilder] = []
        if self.batch is None:
            return parts
        for record in self.batch.records():
            row = (record.timestamp, record.key, record.value, record.headers)
            if not parts or parts[-1].append(*row) < 0:
                parts.append(BatchBuilder(limit_bytes, compression=self.batch.compression))
                parts[-1].append(*row)
        return parts
