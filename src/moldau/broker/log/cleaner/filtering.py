"""What remains of a batch when its log is compacted.

Invariants: a batch that loses nothing stays byte for byte; any other keeps its
base offset, last offset, producer fields, leader epoch, codec and kind of timestamp. A
tombstone, and a marker whose transaction is gone, is first stamped with the time at which
it may go (the batch's delete horizon, KIP-534) and goes when a later cleaning finds that
time passed. The last batch of each active producer and the last batch of the cleaned
range stay at least as a header, so that neither sequence numbers nor offsets are lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from moldau.broker.log.cleaner.machine.offset_map import KEY_SIZE_MAX, OffsetMap, slot_of
from moldau.broker.log.cleaner.transactions import TransactionTracker
from moldau.wire.batch_header import (
    CONTROL_FLAG,
    CRC_POSITION,
    CRC_STRUCT,
    HEADER_SIZE,
    HEADER_STRUCT,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    TRANSACTIONAL_FLAG,
)
from moldau.wire.constants import NO_OFFSET, NO_TIMESTAMP, Buffer
from moldau.wire.records import (
    BatchHeader,
    Record,
    checksum,
    decode_batch,
    encode_batch_buffer,
    read_header,
)


class LastBatch(NamedTuple):
    """Where an active producer's state is in the log."""

    last_offset: int  # of its last data batch; -1 when it is known from a marker only
    epoch: int


class KeptBatch(NamedTuple):
    buffer: Buffer
    max_timestamp: int


class BatchFilter:
    """Cleans the batches of a log one after the other, in order."""

    __slots__ = (
        "_delete_retention_ms",
        "_now_ms",
        "_offsets",
        "_producers",
        "_tracker",
        "_upper_offset",
        "invalid_records",
    )

    def __init__(
        self,
        offsets: OffsetMap,
        tracker: TransactionTracker,
        *,
        producers: Mapping[int, LastBatch],
        upper_offset: int,
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        self._offsets = offsets
        self._tracker = tracker
        self._producers = producers
        self._upper_offset = upper_offset
        self._now_ms = now_ms
        self._delete_retention_ms = delete_retention_ms
        # Records without a key, which a compacted topic should never have.
        self.invalid_records = 0

    def keep(self, header: BatchHeader, batch: Buffer) -> KeptBatch | None:
        """What of the batch goes into the new segment, if anything."""
        if header.is_control:
            abandoned = self._tracker.on_control(header, batch)
            all_gone = abandoned and self._horizon_passed(header)
        else:
            abandoned = all_gone = self._tracker.on_data(header)
        header_stays = self._header_stays(header)
        if all_gone and not header_stays:
            return None
        records: list[Record] = []
        if not all_gone and header.record_count:
            records = decode_batch(batch)
            if not header.is_control:
                records = self._newest(header, records)
        if not records:
            return _header_only(header) if header_stays else None
        needs_horizon = not header.has_delete_horizon and (
            abandoned or any(record.value is None for record in records)
        )
        if len(records) == header.record_count and not needs_horizon:
            return KeptBatch(batch, header.max_timestamp)
        horizon_ms: int | None = None
        if needs_horizon:
            horizon_ms = self._now_ms + self._delete_retention_ms
        elif header.has_delete_horizon:
            horizon_ms = header.base_timestamp
        return _rebuilt(header, records, horizon_ms)

    def _newest(self, header: BatchHeader, records: list[Record]) -> list[Record]:
        latest = self._offsets.offsets.get
        end = self._offsets.latest_offset
        tombstones_stay = not self._horizon_passed(header)
        kept: list[Record] = []
        for record in records:
            offset = record.offset
            if offset > end:
                kept.append(record)
                continue
            key = record.key
            if key is None:
                self.invalid_records += 1
                continue
            if len(key) > KEY_SIZE_MAX:
                key = slot_of(key)
            if latest(key, NO_OFFSET) <= offset and (tombstones_stay or record.value is not None):
                kept.append(record)
        return kept

    def _horizon_passed(self, header: BatchHeader) -> bool:
        return header.has_delete_horizon and header.base_timestamp <= self._now_ms

    def _header_stays(self, header: BatchHeader) -> bool:
        if header.next_offset == self._upper_offset:
            return True
        if header.producer_id < 0:
            return False
        last = self._producers.get(header.producer_id)
        if last is None:
            return False
        if last.last_offset != NO_OFFSET:
            return header.last_offset == last.last_offset
        # Its data is gone or of an older epoch: the epoch is known from the marker.
        return header.is_control and header.producer_epoch == last.epoch


def _rebuilt(header: BatchHeader, records: list[Record], horizon_ms: int | None) -> KeptBatch:
    buffer = encode_batch_buffer(
        records,
        base_offset=header.base_offset,
        compression=header.compression,
        partition_leader_epoch=header.partition_leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=header.is_transactional,
        is_control=header.is_control,
        log_append_time_ms=header.max_timestamp if header.is_log_append_time else None,
        delete_horizon_ms=horizon_ms,
        last_offset_delta=header.last_offset_delta,
    )
    return KeptBatch(buffer, read_header(buffer).max_timestamp)


def _header_only(header: BatchHeader) -> KeptBatch:
    """The batch without records. Its maximum timestamp stays, for producer expiration."""
    kinds = LOG_APPEND_TIME_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG
    buffer = bytearray(HEADER_SIZE)
    HEADER_STRUCT.pack_into(
        buffer,
        0,
        *header._replace(
            batch_length=HEADER_SIZE - LOG_OVERHEAD,
            crc=0,
            attributes=header.attributes & kinds,
            base_timestamp=NO_TIMESTAMP,
            record_count=0,
        ),
    )
    CRC_STRUCT.pack_into(buffer, CRC_POSITION, checksum(buffer, 0, HEADER_SIZE))
    return KeptBatch(buffer, header.max_timestamp)
