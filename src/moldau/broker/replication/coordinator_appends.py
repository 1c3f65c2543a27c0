"""Batches that the broker itself writes to a partition: records of coordinators, and markers."""

from __future__ import annotations

from collections.abc import Sequence

from moldau.broker.log.context import AppendInfo
from moldau.broker.log.machine.producer_state import Verification
from moldau.broker.replication.partition import Partition
from moldau.times import WallMs
from moldau.wire.compression import Compression
from moldau.wire.constants import NO_PRODUCER_ID
from moldau.wire.records import encode_batch_buffer, encode_end_txn_marker

_NO_PRODUCER = NO_PRODUCER_ID, -1


def append_records(
    partition: Partition,
    records: Sequence[tuple[bytes | None, bytes | None]],
    now_ms: WallMs,
    *,
    compression: Compression = Compression.NONE,
    acks_all: bool = False,
    producer: tuple[int, int] | None = None,
    guard: Verification | None = None,
) -> int:
    """Append (key, value) pairs of a coordinator as one batch; their first offset.

    `producer` (id and epoch) makes it a batch of that producer's transaction; `guard` proves that
    the transaction is open. With `acks_all` it is rejected while the ISR is too small.
    """
    producer_id, producer_epoch = _NO_PRODUCER if producer is None else producer
    batch = encode_batch_buffer(
        [(key, value, now_ms, ()) for key, value in records],
        compression=compression,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=producer is not None,
    )
    info = partition.append_as_coordinator(
        memoryview(batch), now_ms=now_ms, acks_all=acks_all, guard=guard
    )
    if info.flush_due:
        partition.log.request_flush(now_ms=now_ms)
    return info.base_offset


def append_marker(
    partition: Partition,
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    committed: bool,
    transaction_version: int,
    now_ms: WallMs,
) -> AppendInfo:
    """End a producer's transaction in this partition; it is safe once committed."""
    batch = encode_end_txn_marker(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        coordinator_epoch=coordinator_epoch,
        committed=committed,
        timestamp=now_ms,
    )
    return partition.append_as_coordinator(
        bytearray(batch),
        now_ms=now_ms,
        acks_all=True,
        transaction_version=transaction_version,
    )
