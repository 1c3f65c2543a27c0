"""Whole batches: headers, checksums, markers, and what is refused as no batch."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.wire import batch_header, records
from moldau.wire.batch_header import HEADER_SIZE
from moldau.wire.records import (
    Compression,
    ControlType,
    CorruptBatchError,
    Record,
    crc_matches,
    decode_batch,
    decode_batches,
    decode_control_type,
    encode_batch,
    encode_end_txn_marker,
    iterate_headers,
    read_header,
)
from support.examples import examples

NOW = 1_700_000_000_000

contents = st.one_of(st.none(), st.binary(max_size=100))
rows = st.tuples(
    contents,
    contents,
    st.integers(-1, 2**50),
    st.lists(st.tuples(st.text(max_size=5), st.one_of(st.none(), st.binary(max_size=5)))).map(
        tuple
    ),
)


def batch_of(count: int = 2, **options: Any) -> bytes:
    return encode_batch([(b"k", b"v%d" % i, NOW + i, ()) for i in range(count)], **options)


@settings(deadline=None)
@given(
    items=st.lists(rows, min_size=1, max_size=5),
    compression=st.sampled_from(Compression),
    base_offset=st.integers(0, 2**60),
    padding=st.binary(max_size=20),
)
def test_batches_are_read_back_wherever_they_lie(
    items: list[Any], compression: Compression, base_offset: int, padding: bytes
) -> None:
    batch = encode_batch(items, compression=compression, base_offset=base_offset)
    buffer = padding + batch + padding
    header = read_header(buffer, len(padding))
    assert header.size == len(batch)
    assert crc_matches(buffer, len(padding), header)
    assert header.compression is compression
    assert header.record_count == len(items)
    assert header.max_timestamp == max(item[2] for item in items)
    expected = [Record(base_offset + i, t, k, v, h) for i, (k, v, t, h) in enumerate(items)]
    for form in (buffer, bytearray(buffer), memoryview(buffer)):
        assert decode_batch(form, len(padding)) == expected
    assert encode_batch(expected, compression=compression) == batch


def test_header_fields() -> None:
    batch = batch_of(
        3,
        base_offset=100,
        partition_leader_epoch=4,
        producer_id=9,
        producer_epoch=2,
        base_sequence=2**31 - 2,
        is_transactional=True,
        compression=Compression.ZSTD,
    )
    header = read_header(batch)
    assert header.magic == 2
    assert (header.base_offset, header.last_offset, header.next_offset) == (100, 102, 103)
    assert (header.partition_leader_epoch, header.producer_id, header.producer_epoch) == (4, 9, 2)
    # Sequence numbers go on at 0 after 2^31-1.
    assert (header.base_sequence, header.last_sequence) == (2**31 - 2, 0)
    assert (header.base_timestamp, header.max_timestamp) == (NOW, NOW + 2)
    assert header.is_transactional
    assert not header.is_control
    assert not header.is_log_append_time
    assert not header.has_delete_horizon
    assert header.has_producer_id


def test_no_sequence_has_no_last_sequence() -> None:
    header = read_header(batch_of(3))
    assert (header.base_sequence, header.last_sequence) == (-1, -1)
    assert not header.has_producer_id


def test_append_time_is_every_records_timestamp() -> None:
    batch = batch_of(2, log_append_time_ms=5)
    header = read_header(batch)
    assert header.is_log_append_time
    assert header.max_timestamp == 5
    assert [record.timestamp for record in decode_batch(batch)] == [5, 5]


def test_delete_horizon_takes_the_place_of_the_base_timestamp() -> None:
    batch = batch_of(2, delete_horizon_ms=NOW + 999)
    header = read_header(batch)
    assert header.has_delete_horizon
    assert header.base_timestamp == NOW + 999
    assert [record.timestamp for record in decode_batch(batch)] == [NOW, NOW + 1]


def test_compacted_batches_keep_offsets_and_span() -> None:
    kept = [Record(13, NOW, b"a", b"1"), Record(17, NOW + 1, b"b", b"2")]
    batch = encode_batch(kept, base_offset=10, last_offset_delta=9)
    header = read_header(batch)
    assert (header.base_offset, header.last_offset, header.record_count) == (10, 19, 2)
    assert decode_batch(batch) == kept


def test_batch_without_records_keeps_producer_state() -> None:
    batch = encode_batch(
        [], base_offset=10, last_offset_delta=4, producer_id=7, base_sequence=3, producer_epoch=0
    )
    header = read_header(batch)
    assert header.size == HEADER_SIZE
    assert (header.last_offset, header.record_count, header.last_sequence) == (14, 0, 7)
    assert (header.base_timestamp, header.max_timestamp) == (-1, -1)
    assert decode_batch(batch) == []


@pytest.mark.parametrize("options", [{}, {"last_offset_delta": -1}])
def test_batch_without_records_needs_a_span(options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="last offset delta"):
        encode_batch([], **options)


def test_span_may_not_cut_records_off() -> None:
    with pytest.raises(ValueError, match="records reach 2"):
        batch_of(3, last_offset_delta=1)


def test_headers_of_whole_batches_only() -> None:
    first, second = batch_of(2, base_offset=0), batch_of(1, base_offset=2)
    for cut in (0, 1, len(second) - HEADER_SIZE, len(second) - 12, len(second) - 1):
        buffer = first + second[: len(second) - cut]
        found = [(position, header.base_offset) for position, header in iterate_headers(buffer)]
        whole = [(0, 0)] + ([(len(first), 2)] if cut == 0 else [])
        assert found == whole
    assert [len(read) for _, read in decode_batches(first + second)] == [2, 1]


@pytest.mark.parametrize(
    ("position", "value", "message"),
    [
        pytest.param(8, struct.pack(">i", 48), "below the header", id="length below the header"),
        pytest.param(
            8, struct.pack(">i", -12), "below the header", id="length that would not move"
        ),
        pytest.param(16, b"\x01", "magic 1", id="old magic"),
    ],
)
def test_headers_that_mislead_a_reader(position: int, value: bytes, message: str) -> None:
    batch = bytearray(batch_of())
    batch[position : position + len(value)] = value
    with pytest.raises(CorruptBatchError, match=message):
        list(iterate_headers(batch))
    with pytest.raises(CorruptBatchError, match=message):
        decode_batch(batch)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(lambda b: b[:60], "too few for a batch header", id="header cut off"),
        pytest.param(lambda b: b[:-1], "bytes announced", id="records cut off"),
        pytest.param(lambda b: b[:22] + b"\x07" + b[23:], "compression id 7", id="unknown codec"),
        pytest.param(lambda b: b[:22] + b"\x04" + b[23:], "zstd frame", id="not what it says"),
        pytest.param(lambda b: b[:57] + b"\x00\x00\x00\x03" + b[61:], "record 2", id="count"),
        pytest.param(lambda b: b[:61] + b"\xff" + b[62:], "record 0", id="record length"),
    ],
)
def test_what_is_no_batch(change: Any, message: str) -> None:
    with pytest.raises(CorruptBatchError, match=message):
        decode_batch(change(batch_of()))


def test_every_flipped_bit_under_the_checksum_is_seen() -> None:
    batch = batch_of()
    for bit in range(batch_header.ATTRIBUTES_POSITION * 8, len(batch) * 8):
        damaged = bytearray(batch)
        damaged[bit // 8] ^= 1 << bit % 8
        assert not crc_matches(damaged, 0, read_header(damaged))


def test_checksum_does_not_cover_what_the_broker_writes() -> None:
    batch = bytearray(batch_of())
    batch_header.PREFIX_STRUCT.pack_into(batch, 0, 12345, len(batch) - 12, 7)
    assert crc_matches(batch, 0, read_header(batch))
    assert decode_batch(batch)[0].offset == 12345


def test_checksum_of_a_batch_that_is_not_all_there() -> None:
    batch = batch_of()
    assert not crc_matches(batch[:-1], 0, read_header(batch))


@pytest.mark.parametrize(
    ("committed", "kind"), [(True, ControlType.COMMIT), (False, ControlType.ABORT)]
)
def test_transaction_markers(committed: bool, kind: int) -> None:
    batch = encode_end_txn_marker(
        producer_id=7,
        producer_epoch=3,
        committed=committed,
        coordinator_epoch=11,
        timestamp=NOW,
        base_offset=50,
    )
    header = read_header(batch)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, -1)
    assert (header.base_offset, header.next_offset) == (50, 51)
    [marker] = decode_batch(batch)
    assert decode_control_type(marker.key) == kind
    assert records.decode_coordinator_epoch(marker.value) == 11
    assert marker.key == b"\x00\x00\x00" + bytes([kind])
    assert marker.value == b"\x00\x00" + b"\x00\x00\x00\x0b"


@pytest.mark.parametrize("key", [None, b"", b"\x00\x00\x00", b"\xff\xff\x00\x01"])
def test_keys_that_are_no_control_keys(key: bytes | None) -> None:
    with pytest.raises(CorruptBatchError):
        decode_control_type(key)


def test_newer_control_keys_are_read_by_their_known_part() -> None:
    assert decode_control_type(b"\x00\x05\x00\x01 and more") == ControlType.COMMIT


@settings(deadline=None, max_examples=examples(300))
@given(seed=st.integers(0, 2**32))
def test_damaged_batches_raise_nothing_else(seed: int) -> None:
    rng = random.Random(seed)
    batch = bytearray(batch_of(rng.randint(1, 5), compression=rng.choice(list(Compression))))
    for _ in range(rng.randint(1, 4)):
        batch[rng.randrange(len(batch))] = rng.randrange(256)
    try:
        decode_batch(batch, max_size=100_000)
        list(iterate_headers(batch))
    except CorruptBatchError:
        pass
