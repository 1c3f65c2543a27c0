"""Batches become columns: the same records as the obvious reader finds, in both forms."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.client.errors import CorruptRecordError
from moldau.client.topics import TopicPartition
from moldau.spark.columns.reading import _Batches
from moldau.wire.records import (
    Compression,
    Record,
    decode_batch,
    encode_batch,
    encode_end_txn_marker,
)
from support.examples import examples

NOW = 1_700_000_000_000
KEY = TopicPartition("t", 3)

contents = st.one_of(st.none(), st.binary(max_size=100))
headers = st.lists(
    st.tuples(st.text(max_size=5), st.one_of(st.none(), st.binary(max_size=5))), max_size=3
).map(tuple)
rows = st.tuples(contents, contents, st.integers(-1, 2**47), headers)


def rows_of(module: ModuleType, *parts: bytes, **options: Any) -> list[dict[str, Any]]:
    """Every row of the range that the parts hold."""
    aborted = options.pop("aborted", ())
    options = {"rows_max": 1000, "bytes_max": 2**20, **options}
    start, end = options.pop("start", 0), options.pop("end", 2**40)
    decoder = module.ColumnDecoder(*KEY, start, end, **options)
    made = _Batches(KEY, include_headers=options.get("include_headers", False))
    found: list[dict[str, Any]] = []

    def take() -> None:
        batch = made.batch(decoder.take())
        batch.validate(full=True)
        assert batch.num_rows <= options["rows_max"]
        found.extend(batch.to_pylist())

    for part in parts:
        decoder.open(memoryview(part), aborted)
        while decoder.fill():
            take()
    take()
    return found


def expected(record: Record, *, with_headers: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "key": record.key,
        "value": record.value,
        "topic": "t",
        "partition": 3,
        "offset": record.offset,
        "timestampType": 0,
    }
    if with_headers:
        pairs = [{"key": name, "value": value} for name, value in record.headers]
        row["headers"] = pairs or None
    return row


def without_timestamp(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: row[name] for name in row if name != "timestamp"} for row in found]


def milliseconds(row: dict[str, Any]) -> float:
    return float(row["timestamp"].timestamp() * 1000)


@settings(deadline=None, max_examples=examples(60))
@given(
    batches=st.lists(st.lists(rows, min_size=1, max_size=6), min_size=1, max_size=4),
    compression=st.sampled_from(Compression),
    with_headers=st.booleans(),
    rows_max=st.integers(1, 8),
    bytes_max=st.integers(1, 400),
    gap=st.integers(0, 5),
    edges=st.tuples(st.integers(0, 30), st.integers(0, 30)),
)
def test_every_record_of_the_range_is_a_row(
    decoder_module: ModuleType,
    batches: list[list[Any]],
    compression: Compression,
    with_headers: bool,
    rows_max: int,
    bytes_max: int,
    gap: int,
    edges: tuple[int, int],
) -> None:
    encoded = []
    offset = 0
    for items in batches:
        encoded.append(encode_batch(items, compression=compression, base_offset=offset))
        offset += len(items) + gap
    start, end = min(edges), max(edges)
    records = [
        record
        for batch in encoded
        for record in decode_batch(batch)
        if start <= record.offset < end
    ]
    found = rows_of(
        decoder_module,
        b"".join(encoded),
        start=start,
        end=end,
        rows_max=rows_max,
        bytes_max=bytes_max,
        include_headers=with_headers,
    )
    assert without_timestamp(found) == [
        expected(record, with_headers=with_headers) for record in records
    ]
    assert [round(milliseconds(row)) for row in found] == [record.timestamp for record in records]


def batch_of(first: int, *values: bytes | None, **options: Any) -> bytes:
    return encode_batch([(None, value, NOW, ()) for value in values], base_offset=first, **options)


def values(found: list[dict[str, Any]]) -> list[bytes | None]:
    return [row["value"] for row in found]


def test_nulls_and_empty_values_differ(decoder_module: ModuleType) -> None:
    part = encode_batch([(None, b"", NOW, ()), (b"", None, NOW, ()), (b"k", b"v", NOW, ())])
    found = rows_of(decoder_module, part)
    assert [(row["key"], row["value"]) for row in found] == [(None, b""), (b"", None), (b"k", b"v")]


@pytest.mark.parametrize("compression", Compression)
def test_a_value_larger_than_the_columns_is_a_row_of_its_own(
    decoder_module: ModuleType, compression: Compression
) -> None:
    huge = bytes(range(256)) * 20_000
    part = batch_of(0, b"a", huge, b"b", compression=compression)
    assert values(rows_of(decoder_module, part, bytes_max=1000)) == [b"a", huge, b"b"]


def test_the_broker_time_stands_above_the_producers(decoder_module: ModuleType) -> None:
    part = encode_batch([(None, b"a", 5, ()), (None, b"b", 9, ())], log_append_time_ms=NOW)
    found = rows_of(decoder_module, part)
    assert [row["timestampType"] for row in found] == [1, 1]
    assert [milliseconds(row) for row in found] == [NOW, NOW]


def test_timestamps_beyond_microseconds_are_the_last_that_fit(decoder_module: ModuleType) -> None:
    part = encode_batch([(None, b"a", 2**62, ())])
    decoder = decoder_module.ColumnDecoder(*KEY, 0, 1, rows_max=1, bytes_max=1)
    decoder.open(memoryview(part))
    decoder.fill()
    (found,) = memoryview(decoder.take().timestamps).cast("q")
    assert found == (2**63 - 1) // 1000 * 1000


def test_header_names_that_are_not_utf8_are_read(decoder_module: ModuleType) -> None:
    part = encode_batch([(None, b"a", NOW, (("näme", b"1"), ("plain", None)))])
    broken = part.replace("näme".encode(), b"n\xff\xfeme")
    found = rows_of(decoder_module, broken, include_headers=True, check_crcs=False)
    assert found[0]["headers"] == [
        {"key": "n\ufffd\ufffdme", "value": b"1"},
        {"key": "plain", "value": None},
    ]


def test_many_headers(decoder_module: ModuleType) -> None:
    pairs = tuple((f"name-{index}", b"x" * index) for index in range(500))
    found = rows_of(
        decoder_module, encode_batch([(None, b"a", NOW, pairs)] * 2), include_headers=True
    )
    shown = [{"key": name, "value": value} for name, value in pairs]
    assert [row["headers"] for row in found] == [shown, shown]


# Transactions.


def transactional(first: int, producer_id: int, *values: bytes) -> bytes:
    return batch_of(
        first,
        *values,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )


def marker(offset: int, producer_id: int, *, committed: bool) -> bytes:
    return encode_end_txn_marker(
        producer_id=producer_id,
        producer_epoch=0,
        committed=committed,
        coordinator_epoch=0,
        timestamp=NOW,
        base_offset=offset,
    )


TRANSACTIONS = b"".join(
    (
        transactional(0, 7, b"aborted"),
        transactional(1, 8, b"committed"),
        batch_of(2, b"plain"),
        marker(3, 7, committed=False),
        transactional(4, 7, b"again"),
        marker(5, 8, committed=True),
        marker(6, 7, committed=True),
    )
)


@pytest.mark.parametrize(
    ("read_committed", "shown"),
    [
        (True, [b"committed", b"plain", b"again"]),
        (False, [b"aborted", b"committed", b"plain", b"again"]),
    ],
)
def test_aborted_transactions_are_left_out_for_who_reads_committed(
    decoder_module: ModuleType, read_committed: bool, shown: list[bytes]
) -> None:
    found = rows_of(decoder_module, TRANSACTIONS, read_committed=read_committed, aborted=[(7, 0)])
    assert values(found) == shown


def test_what_one_response_says_of_transactions_is_forgotten_with_the_next(
    decoder_module: ModuleType,
) -> None:
    decoder = decoder_module.ColumnDecoder(
        *KEY, 0, 10, rows_max=10, bytes_max=100, read_committed=True
    )
    decoder.open(memoryview(transactional(0, 7, b"aborted")), [(7, 0)])
    decoder.fill()
    assert decoder.row_count == 0
    decoder.open(memoryview(transactional(1, 7, b"later")), [])
    decoder.fill()
    assert decoder.row_count == 1


def test_a_range_that_begins_inside_an_aborted_transaction(decoder_module: ModuleType) -> None:
    part = transactional(0, 7, b"a", b"b") + marker(2, 7, committed=False) + batch_of(3, b"c")
    found = rows_of(decoder_module, part, start=1, read_committed=True, aborted=[(7, 0)])
    assert values(found) == [b"c"]


# How far it has come.


def position_after(module: ModuleType, part: bytes, start: int, end: int) -> tuple[int, bool]:
    decoder = module.ColumnDecoder(*KEY, start, end, rows_max=10, bytes_max=100)
    decoder.open(memoryview(part))
    assert decoder.fill() is False
    return decoder.next_offset, decoder.finished


def test_offsets_without_records_are_passed_over(decoder_module: ModuleType) -> None:
    compacted = encode_batch([Record(5, NOW, b"k", b"v", ())], base_offset=2, last_offset_delta=7)
    assert position_after(decoder_module, compacted, 0, 10) == (10, True)
    empty = encode_batch([], base_offset=0, last_offset_delta=4)
    assert position_after(decoder_module, empty, 0, 5) == (5, True)
    assert position_after(decoder_module, marker(4, 7, committed=True), 0, 5) == (5, True)
    beyond = batch_of(20, b"later")
    assert position_after(decoder_module, beyond, 0, 10)[1] is True
    assert position_after(decoder_module, batch_of(0, b"a"), 0, 10) == (1, False)


def test_a_batch_that_is_cut_off_waits_for_the_next_part(decoder_module: ModuleType) -> None:
    whole = batch_of(0, b"a") + batch_of(1, b"b")
    assert values(rows_of(decoder_module, whole[:-1], batch_of(1, b"b", b"c"))) == [
        b"a",
        b"b",
        b"c",
    ]


# What is no batch.


def damaged(part: bytes, position: int) -> bytes:
    return part[:position] + bytes([part[position] ^ 0xFF]) + part[position + 1 :]


def test_damage_is_found(decoder_module: ModuleType) -> None:
    part = batch_of(0, b"value")
    with pytest.raises(CorruptRecordError, match=r"t-3: batch at offset 0: its checksum"):
        rows_of(decoder_module, damaged(part, len(part) - 2))
    with pytest.raises(CorruptRecordError, match="messages of format 1"):
        rows_of(decoder_module, part[:16] + b"\x01" + part[17:])
    with pytest.raises(CorruptRecordError, match="compression id 7"):
        rows_of(decoder_module, part[:22] + b"\x07" + part[23:], check_crcs=False)
    with pytest.raises(CorruptRecordError, match="fewer than its header"):
        rows_of(decoder_module, part[:8] + b"\x00\x00\x00\x10" + part[12:])


@settings(deadline=None, max_examples=examples(150))
@given(data=st.data())
def test_damage_that_no_checksum_shows_never_leaves_the_batch(
    decoder_module: ModuleType, data: st.DataObject
) -> None:
    part = encode_batch([(b"key", b"v" * 20, NOW + index, (("h", b"x"),)) for index in range(3)])
    position = data.draw(st.integers(0, len(part) - 1))
    flipped = part[:position] + bytes([data.draw(st.integers(0, 255))]) + part[position + 1 :]
    decoder = decoder_module.ColumnDecoder(
        *KEY, 0, 2**40, rows_max=10, bytes_max=100, include_headers=True, check_crcs=False
    )
    try:
        decoder.open(memoryview(flipped))
        decoder.fill()
    except CorruptRecordError:
        return
    assert decoder.row_count <= 3
    _Batches(KEY, include_headers=True).batch(decoder.take()).validate(full=True)
