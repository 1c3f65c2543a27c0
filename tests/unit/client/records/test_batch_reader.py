"""Batches become consumer records, in portions, in both forms of the reader."""

from __future__ import annotations

import contextlib
import gc
import pickle
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.client.errors import CorruptRecordError, RecordDeserializationError
from moldau.wire.batch_header import HEADER_SIZE
from moldau.wire.compression import Compression
from moldau.wire.records import Record, checksum, encode_batch

TIME = 1_700_000_000_000

contents = st.one_of(st.none(), st.binary(max_size=200))
header_lists = st.lists(
    st.tuples(st.text(max_size=20), st.one_of(st.none(), st.binary(max_size=20))), max_size=3
).map(tuple)
# The distance of two timestamps fits 64 bits too.
rows = st.lists(
    st.tuples(contents, contents, st.integers(-1, 2**63 - 2), header_lists), min_size=1, max_size=8
)


def read(module: ModuleType, batch: Any, position: int = 0, **options: Any) -> list[Any]:
    records: list[Any] = module.BatchReader(batch, position, "t", 3, **options).next()
    return records


@given(items=rows, codec=st.sampled_from(list(Compression)), portion=st.integers(1, 9))
def test_what_was_written_is_read(
    records_module: ModuleType, items: list[Any], codec: Compression, portion: int
) -> None:
    batch = b"before" + encode_batch(
        items, base_offset=70, compression=codec, partition_leader_epoch=4
    )
    reader = records_module.BatchReader(batch, 6, "t", 3)
    records: list[Any] = []
    while not reader.exhausted:
        given_now = reader.next(portion)
        assert 0 < len(given_now) <= portion
        records += given_now
        assert reader.next_offset == records[-1].offset + 1
    assert [(r.key, r.value, r.timestamp, r.headers) for r in records] == items
    assert [r.offset for r in records] == list(range(70, 70 + len(items)))
    for record, (key, value, _, _) in zip(records, items, strict=True):
        assert (record.topic, record.partition, record.leader_epoch) == ("t", 3, 4)
        assert record.timestamp_type == 0
        assert record.serialized_key_size == (-1 if key is None else len(key))
        assert record.serialized_value_size == (-1 if value is None else len(value))
        assert record.delivery_count is None


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview])
def test_any_buffer_is_read_and_keys_and_values_are_bytes(
    records_module: ModuleType, make: Any
) -> None:
    batch = make(encode_batch([(b"k", b"v", TIME, (("h", b"x"),))]))
    (record,) = read(records_module, batch)
    assert (type(record.key), type(record.value), type(record.headers[0][1])) == (bytes,) * 3


def test_records_outlive_the_buffer_they_came_from(records_module: ModuleType) -> None:
    batch = bytearray(encode_batch([(b"key", b"value", TIME, ())]))
    records = read(records_module, batch)
    batch[:] = bytes(len(batch))
    assert (records[0].key, records[0].value) == (b"key", b"value")


def test_records_below_the_start_offset_are_skipped(records_module: ModuleType) -> None:
    batch = encode_batch([(None, b"%d" % i, TIME, ()) for i in range(10)], base_offset=100)
    reader = records_module.BatchReader(batch, 0, "t", 0, start_offset=107)
    assert reader.next_offset == 107
    assert [r.offset for r in reader.next(2)] == [107, 108]
    assert reader.next_offset == 109
    assert not reader.exhausted
    assert [r.value for r in reader.next(2)] == [b"9"]
    assert reader.exhausted
    assert reader.next(2) == []


def test_offsets_that_compaction_took_are_passed_with_the_batch(records_module: ModuleType) -> None:
    kept = [Record(12, TIME, None, b"a"), Record(15, TIME, None, b"b")]
    batch = encode_batch(kept, base_offset=10, last_offset_delta=9)
    reader = records_module.BatchReader(batch, 0, "t", 0, start_offset=11)
    assert [r.offset for r in reader.next(1)] == [12]
    assert reader.next_offset == 13
    assert [r.offset for r in reader.next(1)] == [15]
    assert reader.next_offset == 20


def test_a_batch_without_records_moves_the_position_past_it(records_module: ModuleType) -> None:
    batch = encode_batch([], base_offset=10, last_offset_delta=4)
    reader = records_module.BatchReader(batch, 0, "t", 0, start_offset=11)
    assert (reader.exhausted, reader.next(), reader.next_offset) == (True, [], 15)


def test_the_brokers_time_replaces_the_producers(records_module: ModuleType) -> None:
    batch = encode_batch([(None, b"a", TIME, ()), (None, b"b", 5, ())], log_append_time_ms=77)
    assert [(r.timestamp, r.timestamp_type) for r in read(records_module, batch)] == [(77, 1)] * 2


def test_text_is_decoded_without_a_call(records_module: ModuleType) -> None:
    class Text:
        utf8_text = True

        def __call__(self, topic: str, data: Any, headers: Any) -> Any:
            raise AssertionError("called")

    batch = encode_batch([("é".encode(), None, TIME, ()), (None, b"v", TIME, ())])
    records = read(records_module, batch, key_deserializer=Text(), value_deserializer=Text())
    assert [(r.key, r.value) for r in records] == [("é", None), (None, "v")]
    assert records[0].serialized_key_size == 2


def test_deserializers_see_topic_data_and_headers(records_module: ModuleType) -> None:
    seen: list[Any] = []

    def deserialize(topic: str, data: Any, headers: Any) -> Any:
        seen.append((topic, data, headers))
        return len(seen)

    batch = encode_batch([(b"k", None, TIME, (("h", None),))])
    (record,) = read(
        records_module, batch, key_deserializer=deserialize, value_deserializer=deserialize
    )
    assert seen == [("t", b"k", (("h", None),)), ("t", None, (("h", None),))]
    assert (record.key, record.value) == (1, 2)


def test_null_is_not_given_to_a_deserializer_that_has_no_use_for_it(
    records_module: ModuleType,
) -> None:
    def number(topic: str, data: Any, headers: Any) -> Any:
        return int(data)

    number.null_is_null = True  # type: ignore[attr-defined]
    batch = encode_batch([(b"7", None, TIME, ())])
    (record,) = read(records_module, batch, key_deserializer=number, value_deserializer=number)
    assert (record.key, record.value) == (7, None)


def test_a_bad_record_is_told_after_those_before_it(records_module: ModuleType) -> None:
    def number(topic: str, data: Any, headers: Any) -> Any:
        return int(data)

    values = [b"1", b"2", b"x", b"4"]
    batch = encode_batch([(None, value, TIME, ()) for value in values], base_offset=50)
    reader = records_module.BatchReader(batch, 0, "t", 3, value_deserializer=number)
    assert [r.value for r in reader.next(10)] == [1, 2]
    for _ in range(2):
        with pytest.raises(RecordDeserializationError, match="offset 52 of t-3") as caught:
            reader.next(10)
        assert (caught.value.topic, caught.value.partition, caught.value.offset) == ("t", 3, 52)
        assert isinstance(caught.value.__cause__, ValueError)
        assert reader.next_offset == 52
    reader.skip_to(53)
    assert [(r.offset, r.value) for r in reader.next(10)] == [(53, 4)]


def test_text_that_is_not_utf8_is_told(records_module: ModuleType) -> None:
    class Text:
        utf8_text = True

    batch = encode_batch([(None, b"\xff", TIME, ())])
    with pytest.raises(RecordDeserializationError, match="offset 0"):
        read(records_module, batch, value_deserializer=Text())


def test_corrupt_batches_are_told_apart(records_module: ModuleType) -> None:
    good = encode_batch([(b"k", b"v", TIME, ())], base_offset=9)
    flipped = bytearray(good)
    flipped[-2] ^= 1
    with pytest.raises(CorruptRecordError, match=r"t-3: batch at offset 9: its checksum"):
        read(records_module, flipped)
    old = bytearray(good)
    old[16] = 1
    with pytest.raises(CorruptRecordError, match="batch format 1"):
        read(records_module, old)
    with pytest.raises(CorruptRecordError, match="bytes"):
        read(records_module, good[:-1])
    with pytest.raises(CorruptRecordError, match="too few"):
        read(records_module, good[:30])


def test_records_past_the_section_are_never_read(records_module: ModuleType) -> None:
    """With or without the checksum: a length that points outside is found before it is used."""
    batch = bytearray(encode_batch([(b"k", b"v", TIME, ())]))
    batch[HEADER_SIZE + 4] = 0x7E
    batch[17:21] = checksum(batch, 0, len(batch)).to_bytes(4, "big")
    for check in (True, False):
        with pytest.raises(CorruptRecordError, match="record 0: a key runs past its record"):
            read(records_module, batch, check_crcs=check)
    batch[57:61] = (-1 & 0xFFFFFFFF).to_bytes(4, "big")
    with pytest.raises(CorruptRecordError, match="-1 records"):
        read(records_module, batch, check_crcs=False)


@given(data=st.binary(max_size=120), count=st.integers(0, 5))
def test_noise_is_refused_or_read_but_never_crashes(
    records_module: ModuleType, data: bytes, count: int
) -> None:
    batch = bytearray(encode_batch([(None, None, TIME, ())]))[:HEADER_SIZE] + data
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    batch[57:61] = count.to_bytes(4, "big")
    with contextlib.suppress(CorruptRecordError):
        assert len(read(records_module, batch, check_crcs=False)) == count


def test_unreadable_compressed_bytes(records_module: ModuleType) -> None:
    batch = bytearray(encode_batch([(b"k", b"v" * 99, TIME, ())], compression=Compression.ZSTD))
    batch[HEADER_SIZE:] = bytes(len(batch) - HEADER_SIZE)
    with pytest.raises(CorruptRecordError, match="zstd"):
        read(records_module, batch, check_crcs=False)


def test_records_compare_print_and_pickle(records_module: ModuleType) -> None:
    make = records_module.ConsumerRecord
    one = make("t", 1, 2, 3, 0, b"k", b"v", (("h", b"x"),), 5, 1, 1, 4)
    assert one == make("t", 1, 2, 3, 0, b"k", b"v", (("h", b"x"),), 5, 1, 1, 4)
    assert one != make("t", 1, 2, 3, 0, b"k", b"w", (("h", b"x"),), 5, 1, 1, 4)
    assert one != "t"
    assert hash(one) == hash(make("t", 1, 2))
    assert "offset=2" in repr(one)
    assert "value=b'v'" in repr(one)
    assert (one.leader_epoch, one.delivery_count) == (5, 4)
    assert pickle.loads(pickle.dumps(one)) == one


def test_a_cycle_through_a_deserialized_value_is_collected(records_module: ModuleType) -> None:
    class Holder:
        record: Any = None

    batch = encode_batch([(None, b"v", TIME, ())])
    (record,) = read(records_module, batch, value_deserializer=lambda *_: Holder())
    record.value.record = record
    gc.collect()
    del record
    assert gc.collect() > 0


def test_the_rows_of_one_batch_as_a_function(records_module: ModuleType) -> None:
    batch = encode_batch([(None, b"%d" % i, TIME, ()) for i in range(5)])
    records = records_module.decode_consumer_records(
        batch, 0, topic="t", partition=0, start_offset=1, max_count=2
    )
    assert [r.offset for r in records] == [1, 2]


def test_acquired_ranges_choose_records_and_count_deliveries(records_module: ModuleType) -> None:
    batch = encode_batch([(None, b"%d" % i, TIME, ()) for i in range(10)])
    records = records_module.acquired_records(
        read(records_module, batch), [(1, 2, 1), (5, 5, 3), (8, 20, 2)]
    )
    assert [(r.offset, r.delivery_count) for r in records] == [
        (1, 1),
        (2, 1),
        (5, 3),
        (8, 2),
        (9, 2),
    ]
    assert records_module.acquired_records(read(records_module, batch), []) == []
