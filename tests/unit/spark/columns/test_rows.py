"""Rows become the records of open batches, in both forms."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.client._batch_builder import BatchBuilder
from moldau.client.producer._murmur2 import partition_for_key
from moldau.spark.columns import _rows, inputs
from moldau.spark.columns.errors import RowError
from moldau.spark.columns.schema import HEADERS
from moldau.wire.compression import Compression
from moldau.wire.records import decode_batch
from support.examples import examples

NOW = 1_700_000_000_000
_CLASSES = ("BinaryInput", "HeaderInput", "NumberInput", "Rows")


@contextmanager
def form(module: ModuleType) -> Iterator[None]:
    """Arrow batches are taken apart into this form's classes."""
    for name in _CLASSES:
        setattr(inputs, name, getattr(module, name))
    try:
        yield
    finally:
        for name in _CLASSES:
            setattr(inputs, name, getattr(_rows, name))


def rows_of(
    module: ModuleType, batch: pyarrow.RecordBatch, default_topic: str | None = "t"
) -> tuple[Any, list[str]]:
    with form(module):
        return inputs.rows_of(batch, default_topic=default_topic, first_row=0, now_ms=NOW)


def open_place(module: ModuleType, topic: str, partitions: int, *, limit: int = 2**20) -> Any:
    place = module.Place(topic)
    place.update(partitions, 0)
    for partition in range(partitions):
        builder = BatchBuilder(limit, compression=Compression.NONE)
        place.slots[partition] = module.Slot(SimpleNamespace(builder=builder))
    return place


def records_in(place: Any) -> list[list[Any]]:
    return [decode_batch(bytes(slot.batch.builder.build())) for slot in place.slots]


contents = st.one_of(st.none(), st.binary(max_size=40))
pairs = st.one_of(
    st.none(),
    st.lists(st.fixed_dictionaries({"key": st.text(max_size=4), "value": contents}), max_size=3),
)
table = st.lists(
    st.fixed_dictionaries(
        {
            "key": contents,
            "value": contents,
            "headers": pairs,
            "partition": st.one_of(st.none(), st.integers(0, 3)),
            "timestamp": st.one_of(st.none(), st.integers(0, 2**40)),
        }
    ),
    min_size=1,
    max_size=12,
)
SCHEMA = pyarrow.schema(
    [
        ("key", pyarrow.binary()),
        ("value", pyarrow.binary()),
        ("headers", HEADERS),
        ("partition", pyarrow.int32()),
        ("timestamp", pyarrow.timestamp("ms", tz="UTC")),
    ]
)


@settings(deadline=None, max_examples=examples(60))
@given(given_rows=table, skipped=st.integers(0, 3))
def test_every_row_is_a_record_of_its_partition(
    rows_module: ModuleType, given_rows: list[dict[str, Any]], skipped: int
) -> None:
    batch = pyarrow.RecordBatch.from_pylist(given_rows, schema=SCHEMA).slice(skipped)
    if batch.num_rows == 0:
        return
    rows, topics = rows_of(rows_module, batch)
    place = open_place(rows_module, topics[0], 4)
    appender = rows_module.RowAppender(digests=True, ignore_keys=False)
    assert appender.append(rows, 0, [place]) == batch.num_rows
    expected: list[list[Any]] = [[], [], [], []]
    for row in given_rows[skipped:]:
        number = row["partition"]
        if number is None:
            number = 0 if row["key"] is None else partition_for_key(row["key"], 4)
        timestamp = NOW if row["timestamp"] is None else row["timestamp"]
        named = tuple((each["key"], each["value"]) for each in row["headers"] or ())
        expected[number].append((row["key"], row["value"], timestamp, named))
    found = [
        [(each.key, each.value, each.timestamp, each.headers) for each in records]
        for records in records_in(place)
    ]
    assert found == expected
    assert appender.row_number == batch.num_rows


def digest_of(module: ModuleType, batch: pyarrow.RecordBatch, topic: str = "t") -> int:
    rows, _ = rows_of(module, batch, topic)
    place = open_place(module, topic, 3)
    appender = module.RowAppender(digests=True, ignore_keys=False)
    assert appender.append(rows, 0, [place]) == batch.num_rows
    return int(appender.digest)


@settings(deadline=None, max_examples=40)
@given(given_rows=table)
def test_both_forms_give_the_same_digest_in_any_order(
    rows_module: ModuleType, given_rows: list[dict[str, Any]]
) -> None:
    for row in given_rows:
        row["partition"] = None
    batch = pyarrow.RecordBatch.from_pylist(given_rows, schema=SCHEMA)
    backwards = pyarrow.RecordBatch.from_pylist(given_rows[::-1], schema=SCHEMA)
    assert digest_of(rows_module, batch) == digest_of(_rows, backwards)


def one(**columns: Any) -> pyarrow.RecordBatch:
    return pyarrow.RecordBatch.from_pydict({name: [each] for name, each in columns.items()})


def test_what_a_digest_tells_apart(rows_module: ModuleType) -> None:
    shown = [
        digest_of(rows_module, one(key=b"a", value=b"b")),
        digest_of(rows_module, one(key=b"b", value=b"a")),
        digest_of(rows_module, one(key=b"ab", value=b"")),
        digest_of(rows_module, one(key=b"", value=b"ab")),
        digest_of(rows_module, one(value=b"ab")),
        digest_of(rows_module, one(key=b"a", value=b"b"), "u"),
        digest_of(rows_module, one(value=b"x" * 100)),
        digest_of(rows_module, one(value=b"x" * 99 + b"y")),
        digest_of(rows_module, one(value=b"y" + b"x" * 99)),
    ]
    assert len(set(shown)) == len(shown)
    assert digest_of(rows_module, one(value=b"ab")) == digest_of(
        rows_module, one(key=None, value="ab")
    )


def test_it_stops_where_a_batch_is_full_or_missing(rows_module: ModuleType) -> None:
    batch = pyarrow.RecordBatch.from_pydict({"value": [b"x" * 60] * 5})
    rows, _ = rows_of(rows_module, batch)
    place = open_place(rows_module, "t", 1, limit=200)
    appender = rows_module.RowAppender(digests=False, ignore_keys=False)
    assert appender.append(rows, 0, [place]) == 2
    assert appender.row_number == 2
    place.slots[0] = None
    assert appender.append(rows, 2, [place]) == 2
    assert appender.digest == 0
    assert place.sticky_size == 2 * (60 - 1 + 10)


def test_a_batch_that_was_done_before_its_next_row_takes_none(rows_module: ModuleType) -> None:
    rows, _ = rows_of(rows_module, one(value=b"x"))
    place = open_place(rows_module, "t", 1)
    place.slots[0] = rows_module.Slot(SimpleNamespace(builder=None))
    appender = rows_module.RowAppender(digests=True, ignore_keys=False)
    assert appender.append(rows, 0, [place]) == 0


def test_partitions_that_are_not_there_are_left_to_the_ordinary_way(
    rows_module: ModuleType,
) -> None:
    for partition in (-1, 3):
        rows, _ = rows_of(rows_module, one(value=b"x", partition=partition))
        place = open_place(rows_module, "t", 3)
        appender = rows_module.RowAppender(digests=False, ignore_keys=False)
        assert appender.append(rows, 0, [place]) == 0


def test_keys_are_ignored_where_that_is_set(rows_module: ModuleType) -> None:
    rows, _ = rows_of(rows_module, one(key=b"some key", value=b"x"))
    place = open_place(rows_module, "t", 3)
    place.update(3, 2)
    appender = rows_module.RowAppender(digests=False, ignore_keys=True)
    appender.append(rows, 0, [place])
    assert [len(each) for each in records_in(place)] == [0, 0, 1]


def test_rows_carry_their_topics(rows_module: ModuleType) -> None:
    batch = pyarrow.RecordBatch.from_pydict(
        {"value": ["1", "2", "3", "4"], "topic": ["a", "b", None, "a"]}
    )
    rows, topics = rows_of(rows_module, batch, "other")
    assert topics == ["a", "b", "other"]
    places = [open_place(rows_module, name, 1) for name in topics]
    appender = rows_module.RowAppender(digests=False, ignore_keys=False)
    assert appender.append(rows, 0, places) == 4
    found = [[each.value for each in records_in(place)[0]] for place in places]
    assert found == [[b"1", b"4"], [b"2"], [b"3"]]


def test_a_slot_knows_the_rows_of_its_records(rows_module: ModuleType) -> None:
    slot = rows_module.Slot(SimpleNamespace(builder=BatchBuilder(100)))
    for number in range(1000):
        slot.note(number * 3)
    assert [slot.row(index) for index in (0, 1, 999, 5000)] == [0, 3, 2997, 2997]


@pytest.mark.parametrize(
    ("array", "values"),
    [
        (pyarrow.array(["a", None], pyarrow.large_string()), [b"a", None]),
        (pyarrow.array([b"a", None], pyarrow.large_binary()), [b"a", None]),
        (pyarrow.array(["a", "b"]), [b"a", b"b"]),
        (pyarrow.array([b"ab", b"cd"], pyarrow.binary(2)), [b"ab", b"cd"]),
        (pyarrow.array([None, None], pyarrow.null()), [None, None]),
        (pyarrow.array(["", ""]), [b"", b""]),
    ],
)
def test_bytes_and_text_of_any_width(
    rows_module: ModuleType, array: pyarrow.Array, values: list[bytes | None]
) -> None:
    batch = pyarrow.RecordBatch.from_arrays([array], ["value"])
    rows, topics = rows_of(rows_module, batch)
    place = open_place(rows_module, topics[0], 1)
    rows_module.RowAppender(digests=True, ignore_keys=False).append(rows, 0, [place])
    assert [each.value for each in records_in(place)[0]] == values
    assert [rows.record(index)[1] for index in range(2)] == values


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"key": [b"k"]}, "there is no column value; the columns are: key"),
        ({"value": [1]}, "column value has type int64; it must be binary or string"),
        ({"value": ["v"], "other": [1]}, "column other is none of key, value"),
        ({"value": ["v"], "topic": ["t"], "partition": ["0"]}, "column partition has type string"),
        ({"value": ["v"], "partition": [2**40]}, "column partition has numbers that do not fit"),
        ({"value": ["v"], "timestamp": [5]}, "column timestamp has type int64"),
        ({"value": ["v"], "headers": [["x"]]}, "column headers has type list"),
        ({"value": ["v"], "headers": [[{"key": None, "value": b""}]]}, "row 7: a header has no"),
        ({"value": ["v"], "topic": [5]}, "column topic has type int64"),
    ],
)
def test_what_cannot_be_written_is_refused(columns: dict[str, list[Any]], problem: str) -> None:
    batch = pyarrow.RecordBatch.from_pydict(columns)
    with pytest.raises(RowError, match=problem):
        inputs.rows_of(batch, default_topic="t", first_row=7, now_ms=NOW)


def test_rows_without_a_topic_or_before_1970_are_named() -> None:
    batch = pyarrow.RecordBatch.from_pydict({"value": ["a", "b"], "topic": ["t", None]})
    with pytest.raises(RowError, match="row 8: column topic is null"):
        inputs.rows_of(batch, default_topic=None, first_row=7, now_ms=NOW)
    with pytest.raises(RowError, match="no topic is given"):
        inputs.rows_of(batch.select(["value"]), default_topic=None, first_row=7, now_ms=NOW)
    early = pyarrow.RecordBatch.from_pydict(
        {"value": ["a", "b"], "timestamp": pyarrow.array([1, -5000], pyarrow.timestamp("us"))}
    )
    with pytest.raises(RowError, match="row 8: a timestamp before 1970"):
        inputs.rows_of(early, default_topic="t", first_row=7, now_ms=NOW)
