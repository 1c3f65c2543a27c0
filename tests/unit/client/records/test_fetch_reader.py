"""A partition's part of a Fetch response: portions, transactions, gaps, errors."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from moldau.client._fetch_reader import FetchReader
from moldau.client.errors import CorruptRecordError, RecordDeserializationError
from moldau.wire.records import encode_batch, encode_end_txn_marker

TIME = 1_700_000_000_000


@pytest.fixture(autouse=True)
def both_forms(fetch_reader_module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test runs with the plain file and with the compiled module."""
    monkeypatch.setitem(globals(), "FetchReader", fetch_reader_module.FetchReader)


def batch(base: int, count: int, **options: Any) -> bytes:
    rows = [(None, b"%d" % (base + i), TIME, ()) for i in range(count)]
    return encode_batch(rows, base_offset=base, **options)


def marker(base: int, producer: int, *, committed: bool) -> bytes:
    return encode_end_txn_marker(
        producer_id=producer,
        producer_epoch=0,
        committed=committed,
        coordinator_epoch=0,
        timestamp=TIME,
        base_offset=base,
    )


def transactional(base: int, count: int, producer: int) -> bytes:
    return batch(
        base, count, producer_id=producer, producer_epoch=0, base_sequence=0, is_transactional=True
    )


def offsets(records: list[Any]) -> list[int]:
    return [record.offset for record in records]


def test_portions_cross_batches() -> None:
    data = batch(0, 3, partition_leader_epoch=1) + batch(3, 4, partition_leader_epoch=2)
    reader = FetchReader(data, "t", 0, 1)
    assert reader.leader_epoch is None
    assert offsets(reader.next(1)) == [1]
    assert (reader.next_offset, reader.leader_epoch) == (2, 1)
    assert offsets(reader.next(3)) == [2, 3, 4]
    assert (reader.next_offset, reader.leader_epoch) == (5, 2)
    assert not reader.exhausted
    assert offsets(reader.next(100)) == [5, 6]
    assert reader.exhausted
    assert reader.next(1) == []
    assert (reader.record_count, reader.byte_count) == (6, len(data))


def test_batches_below_the_position_are_passed_over() -> None:
    reader = FetchReader(batch(0, 3) + batch(3, 3), "t", 0, 4)
    assert offsets(reader.next(10)) == [4, 5]


def test_a_cut_off_last_batch_is_left_out() -> None:
    data = batch(0, 3) + batch(3, 3)
    reader = FetchReader(data[:-5], "t", 0, 0)
    assert offsets(reader.next(10)) == [0, 1, 2]
    assert reader.next(10) == []
    assert reader.exhausted
    assert reader.next_offset == 3


@pytest.mark.parametrize(("data", "whole"), [(b"", False), (batch(0, 9)[:-1], False)])
def test_a_response_without_a_whole_batch_says_so(data: bytes, whole: bool) -> None:
    reader = FetchReader(data, "t", 0, 0)
    assert reader.has_batch is whole
    assert reader.next(1) == []
    assert FetchReader(batch(0, 1), "t", 0, 0).has_batch


def test_control_batches_are_never_given_but_move_the_position() -> None:
    data = transactional(0, 2, 7) + marker(2, 7, committed=True)
    reader = FetchReader(data, "t", 0, 0)
    assert offsets(reader.next(10)) == [0, 1]
    assert reader.next_offset == 3


def test_aborted_transactions_are_left_out_for_read_committed_only() -> None:
    data = (
        transactional(0, 2, 7)
        + transactional(2, 1, 8)
        + marker(3, 7, committed=False)
        + transactional(4, 1, 7)
        + marker(5, 8, committed=True)
        + batch(6, 1)
        + marker(7, 7, committed=True)
    )
    committed = FetchReader(data, "t", 0, 0, read_committed=True, aborted=[(7, 0)])
    assert offsets(committed.next(10)) == [2, 4, 6]
    assert committed.next_offset == 8
    everything = FetchReader(data, "t", 0, 0, aborted=[(7, 0)])
    assert offsets(everything.next(10)) == [0, 1, 2, 4, 6]


def test_an_abort_before_the_position_ends_the_transaction_there() -> None:
    """The response starts with the batch that holds the position, or before it."""
    data = transactional(0, 1, 7) + marker(1, 7, committed=False) + transactional(2, 1, 7)
    reader = FetchReader(data, "t", 0, 2, read_committed=True, aborted=[(7, 0)])
    assert offsets(reader.next(10)) == [2]


def test_aborted_transactions_need_no_order() -> None:
    data = transactional(0, 1, 7) + transactional(1, 1, 8) + transactional(2, 1, 9)
    reader = FetchReader(data, "t", 0, 0, read_committed=True, aborted=[(8, 1), (7, 0)])
    assert offsets(reader.next(10)) == [2]


def test_a_corrupt_batch_is_told_after_the_records_before_it() -> None:
    bad = bytearray(batch(3, 3))
    bad[-1] ^= 1
    reader = FetchReader(batch(0, 3) + bytes(bad) + batch(6, 1), "t", 0, 0)
    assert offsets(reader.next(10)) == [0, 1, 2]
    for _ in range(2):
        with pytest.raises(CorruptRecordError, match="offset 3"):
            reader.next(10)
    assert reader.next_offset == 3
    reader.skip_to(6)
    assert offsets(reader.next(10)) == [6]


def test_without_crc_checks_flipped_bits_pass() -> None:
    bad = bytearray(batch(0, 1))
    bad[-2] ^= 1
    (record,) = FetchReader(bad, "t", 0, 0, check_crcs=False).next(5)
    assert record.value == b"1"


def test_a_record_that_cannot_be_deserialized_can_be_skipped() -> None:
    def odd(topic: str, data: Any, headers: Any) -> int:
        if data == b"3":
            raise ValueError("three")
        return int(data)

    reader = FetchReader(batch(0, 3) + batch(3, 2), "t", 0, 0, value_deserializer=odd)
    assert offsets(reader.next(10)) == [0, 1, 2]
    with pytest.raises(RecordDeserializationError) as caught:
        reader.next(10)
    assert caught.value.offset == 3
    reader.skip_to(4)
    assert offsets(reader.next(10)) == [4]
    assert reader.exhausted


def test_skipping_backwards_or_past_the_open_batch() -> None:
    reader = FetchReader(batch(0, 3) + batch(3, 3), "t", 0, 0)
    reader.next(1)
    reader.skip_to(0)
    assert reader.next_offset == 1
    reader.skip_to(4)
    assert offsets(reader.next(1)) == [4]


def test_a_length_below_the_headers_is_corrupt_not_endless() -> None:
    bad = bytearray(batch(0, 1))
    bad[8:12] = (5).to_bytes(4, "big")
    with pytest.raises(CorruptRecordError):
        FetchReader(bad, "t", 0, 0).next(1)


def test_a_portion_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="max_count 0"):
        FetchReader(b"", "t", 0, 0).next(0)
