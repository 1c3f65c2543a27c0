"""What a store promises: order, retention, versions, and that its changelog restores it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.streams import (
    PUT_RETURN_CODE_NOT_PUT,
    PUT_RETURN_CODE_VALID_TO_UNDEFINED,
    Window,
    Windowed,
)
from moldau.streams.records import Change, Headers, Record, RecordContext
from moldau.streams.serdes import BYTES, JSON, LONG, STRING
from moldau.streams.stores import formats
from moldau.streams.stores.buffers import JoinBuffer, SuppressBuffer
from moldau.streams.stores.key_value import KeyValueStore, TimestampedKeyValueStore
from moldau.streams.stores.lists import ListStore
from moldau.streams.stores.versioned import VersionedKeyValueStore
from moldau.streams.stores.windowed import SessionStore, WindowStore

KEYS = st.sampled_from(["", "\0", "a", "b", "ab", "é", "x" * 500, "x" * 500 + "a", "x" * 499 + "y"])
TIMES = st.integers(0, 500_000)
VALUES = st.none() | st.integers(-5, 5)


class Log:
    """A changelog that a store can be restored from."""

    def __init__(self) -> None:
        self.records: list[tuple[bytes, bytes | None, int]] = []

    def __call__(
        self,
        key: bytes,
        value: bytes | None,
        timestamp: int | None,
        headers: Headers = (),
    ) -> None:
        self.records.append((key, value, timestamp or 0))

    def apply(self, store: Any) -> None:
        store.restore((key, value, timestamp, ()) for key, value, timestamp in self.records)

    def restore(self, store: Any) -> list[Any]:
        self.apply(store)
        return list(store.all())


@given(st.lists(st.tuples(KEYS, VALUES)))
def test_a_key_value_store_is_sorted_and_comes_back_from_its_changelog(
    puts: list[tuple[str, int | None]],
) -> None:
    log = Log()
    store = KeyValueStore("s", STRING, LONG, log)
    model: dict[str, int | None] = {}
    for key, value in puts:
        store.put(key, value)
        model[key] = value
        assert store.get(key) == value
        rows = sorted((k.encode(), v) for k, v in model.items() if v is not None)
        assert [(k.encode(), v) for k, v in store.all()] == rows
    assert log.restore(KeyValueStore("s", STRING, LONG)) == list(store.all())


@given(st.lists(st.tuples(KEYS, VALUES, TIMES)))
def test_a_timestamped_store_comes_back_from_its_changelog(
    puts: list[tuple[str, int | None, int]],
) -> None:
    log = Log()
    store = TimestampedKeyValueStore("s", STRING, LONG, log)
    for key, value, timestamp in puts:
        store.put(key, value, timestamp)
        assert store.get(key) == (None if value is None else (value, timestamp))
    assert log.restore(TimestampedKeyValueStore("s", STRING, LONG)) == list(store.all())


@given(st.lists(st.tuples(KEYS, VALUES, TIMES)), KEYS, TIMES)
def test_a_versioned_store_knows_the_past_within_its_history(
    puts: list[tuple[str, int | None, int]], key: str, as_of: int
) -> None:
    log, history = Log(), 100_000
    store = VersionedKeyValueStore("s", STRING, LONG, history, log)
    model: dict[tuple[str, int], int | None] = {}
    newest = -1
    for each, value, timestamp in puts:
        valid_to = store.put(each, value, timestamp)
        if timestamp < newest - history:
            assert valid_to == PUT_RETURN_CODE_NOT_PUT
            continue
        newest = max(newest, timestamp)
        times = [t for k, t in model if k == each]
        if times == [timestamp] and value is None and model[each, timestamp] is not None:
            # A deletion at the time of the only version leaves nothing.
            del model[each, timestamp]
            assert valid_to == PUT_RETURN_CODE_VALID_TO_UNDEFINED
            continue
        model[each, timestamp] = value
        later = [t for k, t in model if k == each and t > timestamp]
        assert valid_to == min(later, default=PUT_RETURN_CODE_VALID_TO_UNDEFINED)
    versions = [(t, v) for (k, t), v in model.items() if k == key and t <= as_of]
    expected = None
    if versions:
        time, found = max(versions, key=lambda version: version[0])
        is_latest = time == max(t for k, t in model if k == key)
        if found is not None and (is_latest or as_of >= newest - history):
            expected = found, time
    assert store.get_as_of(key, as_of) == expected
    restored = VersionedKeyValueStore("s", STRING, LONG, history)
    assert log.restore(restored) == list(store.all())


@given(st.lists(st.tuples(KEYS, VALUES, TIMES)), KEYS, TIMES, TIMES)
def test_a_window_store_shows_what_is_within_its_retention(
    puts: list[tuple[str, int | None, int]], key: str, low: int, high: int
) -> None:
    log, retention = Log(), 120_000
    make = lambda **log: WindowStore(  # noqa: E731
        "s", STRING, LONG, retention_ms=retention, window_size_ms=10, **log
    )
    store, model, newest = make(log=log), {}, -1
    for each, value, start in puts:
        newest = max(newest, start)
        store.put(each, value, start, timestamp=start + 1)
        if start // 60_000 >= max(0, newest - retention) // 60_000:
            model[each, start] = value
    visible = {
        (k, start): value
        for (k, start), value in model.items()
        if value is not None and start > newest - retention
    }
    found = {(k.key, k.window.start): v[0] for k, v in store.all()}
    assert found == visible
    assert [(start, value) for start, (value, _) in store.fetch(key, low, high)] == sorted(
        (start, value) for (k, start), value in visible.items() if k == key and low <= start <= high
    )
    assert log.restore(make()) == list(store.all())


def test_a_join_store_keeps_duplicates_in_order() -> None:
    store = WindowStore(
        "s",
        STRING,
        STRING,
        retention_ms=100,
        window_size_ms=10,
        retain_duplicates=True,
        timestamped=False,
    )
    for value in ("b", "a", None, "b"):
        store.put("k", value, 5)
    assert [value for _, (value, _) in store.fetch("k", 0, 10)] == ["b", "a", "b"]


def test_a_session_store_finds_sessions_by_time() -> None:
    log = Log()
    store = SessionStore("s", STRING, LONG, retention_ms=1_000, log=log)
    for start, end in ((0, 10), (20, 30), (50, 90)):
        store.put(Windowed("k", Window(start, end)), end)
    store.put(Windowed("k", Window(20, 30)), None)
    assert [value for _, value in store.find_sessions("k", 10, 60)] == [10, 90]
    assert [value for _, value in store.find_sessions("k", 11, 49)] == []
    assert store.get("k", 50, 90) == 90
    restored = SessionStore("s", STRING, LONG, retention_ms=1_000)
    assert log.restore(restored) == list(store.all())


def test_a_list_store_comes_back_from_its_changelog() -> None:
    log = Log()
    store = ListStore("s", log)
    for key, value in ((b"b", b"1"), (b"a", b""), (b"b", b"2"), (b"c", b"3")):
        store.add(key, value)
    store.delete(b"c")
    assert list(store.all()) == [(b"a", b""), (b"b", b"1"), (b"b", b"2")]
    assert log.restore(ListStore("s")) == list(store.all())


def test_a_value_that_is_changed_later_stays_as_it_was_put() -> None:
    store = KeyValueStore("s", STRING, JSON)
    value = {"n": 1}
    store.put("k", value)
    value["n"] = 2
    assert store.get("k") == {"n": 1}


@pytest.mark.parametrize("found", [None, b"0123456789abcdef"])
@pytest.mark.parametrize("partition", [0, 7])
def test_subscriptions_are_read_as_written(found: bytes | None, partition: int) -> None:
    subscription = formats.Subscription(found, 2, b"key", partition)
    assert formats.read_subscription_value(formats.subscription_value(subscription)) == subscription
    assert formats.read_response_value(formats.response_value(found, b"row")) == (found, b"row")


def test_a_store_of_bytes_needs_a_key() -> None:
    with pytest.raises(ValueError, match="key cannot be null in store s"):
        KeyValueStore("s", BYTES, BYTES).get(None)  # type: ignore[arg-type]


WHERE = RecordContext("in", 3, 7, 5, (("h", b"1"), ("n", None)))


def test_a_suppress_buffer_comes_back_from_what_was_committed() -> None:
    log = Log()
    buffer = SuppressBuffer("s", STRING, LONG, log)
    buffer.put(20, Record("b", Change(1, None), 20), WHERE)
    buffer.put(10, Record("a", Change(2, 1), 10), WHERE)
    buffer.put(90, Record("b", Change(5, 1), 90), WHERE)
    buffer.put(30, Record("c", Change(None, 4), 30), WHERE)
    assert buffer.first()[0].key == "a"
    buffer.remove_first()
    assert log.records == []
    buffer.flush()
    restored = SuppressBuffer("s", STRING, LONG)
    log.apply(restored)
    assert restored.size_bytes == buffer.size_bytes
    assert restored.prior("c") == (True, 4)
    assert restored.min_timestamp == 20
    popped = []
    while len(restored):
        popped.append(restored.first())
        restored.remove_first()
    assert [(record.key, record.value.new, record.value.old) for record, _ in popped] == [
        ("b", 5, 1),
        ("c", None, 4),
    ]
    assert popped[0][1] == WHERE
    assert (len(restored), restored.size_bytes) == (0, 0)


def test_a_join_buffer_comes_back_from_its_changelog() -> None:
    log = Log()
    buffer = JoinBuffer("s", STRING, STRING, 10, log)
    for time, key in ((5, "b"), (5, "a"), (12, "a"), (5, "b")):
        assert buffer.put(Record(key, f"{key}{time}", time), WHERE)
    restored = JoinBuffer("s", STRING, STRING, 10)
    log.apply(restored)
    for each in (buffer, restored):
        assert each.put(Record("z", "z", 16), WHERE)
        found = [(record.key, record.timestamp) for record, _ in each.due()]
        assert found == [("a", 5), ("b", 5), ("b", 5)]
        assert not each.put(Record("late", "x", 5), WHERE)
