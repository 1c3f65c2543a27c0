"""What stores that a program makes by hand can do, and what they write to their changelogs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moldau.streams import (
    PUT_RETURN_CODE_NOT_PUT,
    PUT_RETURN_CODE_VALID_TO_UNDEFINED,
    StoreBuilder,
    Window,
    Windowed,
    key_value_store,
    lru_map,
    session_store,
    timestamped_key_value_store,
    versioned_key_value_store,
    window_store,
)
from moldau.streams.machine.context import Processor
from moldau.streams.machine.definitions import ProcessorDefinition
from moldau.streams.machine.task import Task, TaskSettings
from moldau.streams.records import Produced
from moldau.streams.stores._cache import RecordCache
from moldau.streams.stores.memory import MemoryStorage

TEXT: dict[str, Any] = {"key_serde": "string", "value_serde": "string"}


class Made:
    """A store in a task of its own."""

    def __init__(self, builder: StoreBuilder, cache_bytes: int = 10_000) -> None:
        self._written: list[Produced] = []
        node = ProcessorDefinition(name="p", supplier=Processor, parents=[], stores=[builder.name])
        settings = TaskSettings(application_id="app", cache=RecordCache(cache_bytes))
        self._task = Task([node], {builder.name: builder}, settings, self._written.append)
        self._task.initialize()
        self.store: Any = self._task.store(builder.name)

    def written(self) -> list[tuple[bytes | None, bytes | None]]:
        """What the changelog was given since the last call."""
        found = [(each.key, each.value) for each in self._written]
        self._written.clear()
        return found

    def commit(self) -> list[tuple[bytes | None, bytes | None]]:
        self._task.prepare_commit()
        return self.written()


def test_a_key_value_store_is_read_from_both_ends() -> None:
    made = Made(key_value_store("s", **TEXT))
    store = made.store
    store.put_all([("b", "2"), ("a", "1"), ("c", "3"), ("b", None)])
    assert made.written() == [(b"b", b"2"), (b"a", b"1"), (b"c", b"3"), (b"b", None)]
    assert list(store.reverse_all()) == [("c", "3"), ("a", "1")]
    assert list(store.reverse_range("a", "b")) == [("a", "1")]
    assert list(store.reverse_range(end="b")) == [("a", "1")]


def test_a_timestamped_store_has_all_writes_of_a_plain_one() -> None:
    store = Made(timestamped_key_value_store("s", **TEXT)).store
    store.put_all([("a", ("1", 5)), ("b", ("2", 6)), ("c", None)])
    assert store.put_if_absent("a", "9", 9) == ("1", 5)
    assert store.put_if_absent("c", "3", 7) is None
    assert store.delete("b") == ("2", 6)
    assert list(store.reverse_all()) == [("c", ("3", 7)), ("a", ("1", 5))]
    assert list(store.reverse_range("a", "b")) == [("a", ("1", 5))]


def test_windows_are_read_backwards_and_by_ranges_of_keys() -> None:
    options: dict[str, Any] = {"window_size": 10, "retention": 1000, "timestamped": False}
    store = Made(window_store("s", **TEXT, **options)).store
    for key, start in (("b", 0), ("a", 10), ("c", 10), ("a", 20), ("d", 30)):
        store.put(key, f"{key}{start}", start)

    def names(found: Any) -> list[str]:
        return [value[0] for _, value in found]

    assert names(store.backward_fetch("a", 0, 100)) == ["a20", "a10"]
    assert names(store.fetch_range("a", "c", 0, 15)) == ["b0", "a10", "c10"]
    assert names(store.backward_fetch_range("a", "c", 0, 15)) == ["c10", "a10", "b0"]
    assert names(store.fetch_range("c", None, 0, 100)) == ["c10", "d30"]
    assert names(store.fetch_range(None, "b", 0, 100)) == ["b0", "a10", "a20"]
    assert names(store.fetch_range("c", "a", 0, 100)) == []
    assert names(store.backward_fetch_all(10, 30)) == ["d30", "a20", "c10", "a10"]
    assert names(store.backward_all()) == ["d30", "c10", "b0", "a20", "a10"]


def test_sessions_are_found_backwards_and_by_ranges_of_keys() -> None:
    made = Made(session_store("s", **TEXT, retention=1000))
    store = made.store
    for key, start, end in (("b", 0, 5), ("a", 2, 5), ("a", 20, 30), ("c", 40, 50)):
        store.put(Windowed(key, Window(start, end)), f"{key}{start}")

    def names(found: Any) -> list[str]:
        return [value for _, value in found]

    assert names(store.backward_find_sessions("a", 0, 100)) == ["a20", "a2"]
    assert names(store.find_sessions_range("a", "b", 0, 20)) == ["a2", "b0", "a20"]
    assert names(store.backward_find_sessions_range(None, None, 5, 19)) == ["b0", "a2"]
    assert names(store.fetch("a")) == ["a2", "a20"]
    assert names(store.backward_fetch("a")) == ["a20", "a2"]
    assert names(store.fetch_range("b", None)) == ["b0", "c40"]
    assert names(store.backward_fetch_range(None, "b")) == ["a20", "b0", "a2"]
    made.written()
    store.remove(Windowed("a", Window(2, 5)))
    assert [value for _, value in made.written()] == [None]
    assert names(store.fetch("a")) == ["a20"]


def test_putting_a_version_returns_when_it_ends() -> None:
    store = Made(versioned_key_value_store("s", **TEXT, history=100)).store
    assert store.put("a", "1", 50) == PUT_RETURN_CODE_VALID_TO_UNDEFINED
    assert store.put("a", "0", 10) == 50
    assert store.put("a", None, 30) == 50
    assert store.put("a", "3", 10) == 30
    assert store.put("a", None, 200) == PUT_RETURN_CODE_VALID_TO_UNDEFINED
    assert store.put("a", "4", 99) == PUT_RETURN_CODE_NOT_PUT


def test_deleting_a_version_returns_the_one_it_ends() -> None:
    made = Made(versioned_key_value_store("s", **TEXT, history=100))
    store = made.store
    store.put("a", "1", 10)
    store.put("a", "2", 50)
    assert store.delete("a", 30) == ("1", 10)
    assert (store.get_as_of("a", 29), store.get_as_of("a", 30)) == (("1", 10), None)
    assert store.get("a") == ("2", 50)
    store.put("b", "3", 500)
    made.written()
    assert store.delete("a", 20) is None, "older than the history"
    assert store.get("a") == ("2", 50)
    assert made.written() == [(b"a", None)], "logged, as Kafka Streams does"


@pytest.mark.parametrize(
    ("make", "put"),
    [
        (key_value_store, lambda store, value: store.put("a", value)),
        (timestamped_key_value_store, lambda store, value: store.put("a", value, 5)),
        (
            lambda *name, **options: window_store(*name, window_size=1, retention=9, **options),
            lambda store, value: store.put("a", value, 5, timestamp=5),
        ),
        (
            lambda *name, **options: session_store(*name, retention=9, **options),
            lambda store, value: store.put(Windowed("a", Window(1, 5)), value),
        ),
    ],
    ids=["key value", "timestamped", "window", "session"],
)
def test_a_cache_logs_the_last_update_at_a_commit(
    make: Callable[..., StoreBuilder], put: Callable[[Any, str | None], None]
) -> None:
    cached, plain = Made(make("s", caching=True, **TEXT)), Made(make("s", **TEXT))
    for made, count in ((cached, 0), (plain, 2)):
        put(made.store, "1")
        put(made.store, "2")
        assert len(made.written()) == count
        assert len(list(made.store.all())) == 1
    assert [value for _, value in cached.commit()] == [b"2"]
    # Nobody listens, so that what came and went is logged, too.
    put(cached.store, None)
    cached.commit()
    put(cached.store, "3")
    put(cached.store, None)
    assert [value for _, value in cached.commit()] == [None]


def test_windows_with_duplicates_are_not_cached() -> None:
    options: dict[str, Any] = {"window_size": 10, "retention": 1000, "retain_duplicates": True}
    made = Made(window_store("s", **TEXT, **options, caching=True))
    made.store.put("a", "1", 0)
    assert len(made.written()) == 1


def test_an_lru_map_deletes_what_was_not_used_for_longest() -> None:
    made = Made(lru_map("s", **TEXT, size_max=2))
    store = made.store
    store.put("a", "1")
    store.put("b", "2")
    store.get("a")
    assert [key for key, _ in store.all()] == ["a", "b"]
    made.written()
    store.put("c", "3")
    assert made.written() == [(b"b", None), (b"c", b"3")]
    assert list(store.reverse_all()) == [("c", "3"), ("a", "1")]
    store.restore([(b"d", b"4", 0, ())])
    assert made.written() == [], "a restore writes nothing"
    assert [key for key, _ in store.all()] == ["c", "d"]
    assert store.approximate_num_entries() == 2


def test_a_store_keeps_its_entries_where_the_program_says() -> None:
    places: dict[str, MemoryStorage] = {}

    def place(name: str) -> MemoryStorage:
        return places.setdefault(name, MemoryStorage())

    Made(key_value_store("s", **TEXT, storage=place)).store.put("a", "1")
    assert places["s"].is_used


def test_a_store_without_logging_writes_nothing() -> None:
    made = Made(key_value_store("s", **TEXT, logging=False))
    made.store.put("a", "1")
    assert made.commit() == []
