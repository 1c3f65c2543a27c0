"""Whole batches: which a reader gets, which can be copied as they are, and what a copy holds."""

from __future__ import annotations

import struct

import pytest

from moldau.client._batch_builder import BatchBuilder
from moldau.client.batches import BatchCopy, FetchedBatch
from moldau.client.batches.machine.fetched import FetchedBatchReader
from moldau.client.errors import CorruptRecordError
from moldau.wire.batch_header import (
    ATTRIBUTES_POSITION,
    CONTROL_FLAG,
    CRC_POSITION,
    CRC_STRUCT,
    LOG_APPEND_TIME_FLAG,
)
from moldau.wire.compression import Compression
from moldau.wire.records import checksum


def made(
    base_offset: int,
    *values: bytes,
    producer_id: int = -1,
    transactional: bool = False,
    compression: Compression = Compression.NONE,
    flags: int = 0,
) -> bytes:
    builder = BatchBuilder(100_000, compression=compression)
    for index, value in enumerate(values):
        builder.append(1000 + index, b"key", value, [("h", b"x")])
    batch = builder.build(
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=0 if producer_id >= 0 else -1,
        is_transactional=transactional,
    )
    struct.pack_into(">q", batch, 0, base_offset)
    if flags:
        (attributes,) = struct.unpack_from(">h", batch, ATTRIBUTES_POSITION)
        struct.pack_into(">h", batch, ATTRIBUTES_POSITION, attributes | flags)
        CRC_STRUCT.pack_into(batch, CRC_POSITION, checksum(batch, 0, len(batch)))
    return bytes(batch)


def marker(offset: int, producer_id: int, *, commit: bool) -> bytes:
    builder = BatchBuilder(1000)
    builder.append(0, struct.pack(">hh", 0, int(commit)), b"\0" * 6)
    batch = builder.build(
        producer_id=producer_id, producer_epoch=0, base_sequence=-1, is_transactional=True
    )
    struct.pack_into(">q", batch, 0, offset)
    (attributes,) = struct.unpack_from(">h", batch, ATTRIBUTES_POSITION)
    struct.pack_into(">h", batch, ATTRIBUTES_POSITION, attributes | CONTROL_FLAG)
    CRC_STRUCT.pack_into(batch, CRC_POSITION, checksum(batch, 0, len(batch)))
    return bytes(batch)


def read(data: bytes, start: int = 0, **more: object) -> tuple[list[FetchedBatch], int]:
    reader = FetchedBatchReader(data, "t", 0, start, **more)  # type: ignore[arg-type]
    found = reader.next(100)
    assert reader.exhausted
    return found, reader.next_offset


def test_batches_come_in_order_and_the_last_part_waits() -> None:
    data = made(5, b"a", b"b") + made(7, b"c")
    found, position = read(data + made(8, b"d")[:-1], start=5)
    assert [(each.base_offset, each.record_count) for each in found] == [(5, 2), (7, 1)]
    assert position == 8


def test_aborted_records_and_markers_are_passed_over() -> None:
    data = (
        made(0, b"lost", producer_id=1, transactional=True)
        + made(1, b"kept", producer_id=2, transactional=True)
        + marker(2, 1, commit=False)
        + made(3, b"also kept", producer_id=1, transactional=True)
        + marker(4, 1, commit=True)
    )
    found, position = read(data, read_committed=True, aborted=[(1, 0)])
    assert [each.base_offset for each in found] == [1, 3]
    assert position == 5
    found, _ = read(data)
    assert [each.base_offset for each in found] == [0, 1, 3]


def test_a_batch_with_a_wrong_checksum_is_not_copied() -> None:
    good, bad = made(0, b"a"), bytearray(made(1, b"b"))
    bad[-1] ^= 1
    reader = FetchedBatchReader(good + bytes(bad), "t", 0, 0)
    assert [each.base_offset for each in reader.next(9)] == [0]
    with pytest.raises(CorruptRecordError, match="t-0 has a batch at offset 1"):
        reader.next(9)


@pytest.mark.parametrize("compression", list(Compression))
def test_a_copy_has_the_same_records_under_another_header(compression: Compression) -> None:
    values = [b"%d" % each * 50 for each in range(30)]
    (batch,), _ = read(made(77, *values, producer_id=9, compression=compression))
    assert batch.is_copyable
    copy = BatchCopy(batch).build(
        producer_id=4, producer_epoch=2, base_sequence=6, is_transactional=True
    )
    assert copy[61:] == batch.data[61:]
    (again,), _ = read(bytes(copy))
    assert [(r.offset, r.value, r.timestamp, r.headers) for r in again.records()] == [
        (index, value, 1000 + index, (("h", b"x"),)) for index, value in enumerate(values)
    ]


def test_what_a_broker_would_refuse_is_not_copied_as_it_is() -> None:
    (from_the_middle,), _ = read(made(0, b"a", b"b"), start=1)
    assert not from_the_middle.is_copyable
    assert [each.value for each in from_the_middle.records()] == [b"b"]
    (with_append_time,), _ = read(made(0, b"a", flags=LOG_APPEND_TIME_FLAG))
    assert not with_append_time.is_copyable


def test_a_batch_that_is_too_large_is_split_into_the_same_records() -> None:
    values = [b"%03d" % each * 20 for each in range(40)]
    (batch,), _ = read(made(0, *values, compression=Compression.LZ4))
    parts = BatchCopy(batch).split(600)
    assert len(parts) > 1
    assert [row[1] for part in parts for row in part.records()] == values
