"""Stores on disk equal those in memory, and come back with the offsets they were committed with."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.streams import Window, Windowed
from moldau.streams.serdes import LONG, STRING
from moldau.streams.stores.base import Storage
from moldau.streams.stores.disk import DiskState, open_state
from moldau.streams.stores.key_value import KeyValueStore
from moldau.streams.stores.memory import MemoryStorage
from moldau.streams.stores.versioned import VersionedKeyValueStore
from moldau.streams.stores.windowed import SessionStore, WindowStore
from support.examples import examples

LONG_KEY = "x" * 600
KEYS = st.sampled_from(
    ["", "\0", "\0" * 479, "\0" * 511, "a", "a\0", "ab", "é", *(LONG_KEY + c for c in "cabd")]
)
TIMES = st.integers(0, 500_000)
VALUES = st.none() | st.integers(-5, 5)
#: Whether a commit follows a put: none, one that is written, one after which the state is reopened.
COMMITS = st.sampled_from(["", "", "", "commit", "reopen"])


class Twin:
    """A store in memory and one on disk that get the same puts."""

    def __init__(self, kind: type, make: object) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self._make = make
        self.memory = make(MemoryStorage())  # type: ignore[operator]
        self._open()

    def _open(self) -> None:
        self.state = open_state(Path(self.folder.name))
        self.disk = self._make(self.state.storage("s"))  # type: ignore[operator]

    def commit(self, how: str) -> None:
        if how:
            self.state.commit({"s": 7}, force=True)
        if how == "reopen":
            self.state.close()
            self._open()
            assert self.state.checkpoint("s") == 7

    def close(self) -> None:
        self.state.close()
        self.folder.cleanup()


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(st.tuples(KEYS, VALUES, COMMITS)), KEYS, KEYS)
def test_a_map_on_disk_equals_one_in_memory(
    puts: list[tuple[str, int | None, str]], low: str, high: str
) -> None:
    twin = Twin(KeyValueStore, lambda at: KeyValueStore("s", STRING, LONG, entries=at.map()))
    for key, value, commit in puts:
        twin.memory.put(key, value)
        twin.disk.put(key, value)
        twin.commit(commit)
        assert twin.disk.get(key) == value
        assert twin.disk.get(low) == twin.memory.get(low)
    assert list(twin.disk.all()) == list(twin.memory.all())
    assert list(twin.disk.range(low, high)) == list(twin.memory.range(low, high))
    prefix = low.encode()
    assert list(twin.disk.prefix_scan(prefix)) == list(twin.memory.prefix_scan(prefix))
    twin.close()


def _window_store(at: Storage) -> WindowStore[str, int]:
    return WindowStore("s", STRING, LONG, retention_ms=120_000, window_size_ms=10, storage=at)


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(st.tuples(KEYS, VALUES, TIMES, COMMITS)), KEYS, TIMES, TIMES)
def test_windows_on_disk_equal_those_in_memory(
    puts: list[tuple[str, int | None, int, str]], key: str, low: int, high: int
) -> None:
    twin = Twin(WindowStore, _window_store)
    for each, value, start, commit in puts:
        twin.memory.put(each, value, start, start + 1)
        twin.disk.put(each, value, start, start + 1)
        twin.commit(commit)
        assert twin.disk.get(each, start) == twin.memory.get(each, start)
    assert list(twin.disk.all()) == list(twin.memory.all())
    assert twin.disk.fetch(key, low, high) == twin.memory.fetch(key, low, high)
    assert twin.disk.fetch_all(low, high) == twin.memory.fetch_all(low, high)
    twin.close()


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(KEYS, VALUES, TIMES, COMMITS)), KEYS, TIMES, TIMES)
def test_sessions_on_disk_equal_those_in_memory(
    puts: list[tuple[str, int | None, int, str]], key: str, low: int, high: int
) -> None:
    twin = Twin(
        SessionStore,
        lambda at: SessionStore("s", STRING, LONG, retention_ms=120_000, storage=at),
    )
    for each, value, start, commit in puts:
        session = Windowed(each, Window(start, start + 5))
        twin.memory.put(session, value)
        twin.disk.put(session, value)
        twin.commit(commit)
    assert list(twin.disk.all()) == list(twin.memory.all())
    assert twin.disk.find_sessions(key, low, high) == twin.memory.find_sessions(key, low, high)
    assert twin.disk.find_ended(low, high) == twin.memory.find_ended(low, high)
    twin.close()


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(KEYS, VALUES, TIMES, COMMITS)), KEYS, TIMES)
def test_versions_on_disk_equal_those_in_memory(
    puts: list[tuple[str, int | None, int, str]], key: str, as_of: int
) -> None:
    twin = Twin(
        VersionedKeyValueStore,
        lambda at: VersionedKeyValueStore("s", STRING, LONG, 100_000, storage=at),
    )
    for each, value, time, commit in puts:
        assert twin.disk.put(each, value, time) == twin.memory.put(each, value, time)
        twin.commit(commit)
    assert twin.disk.get_as_of(key, as_of) == twin.memory.get_as_of(key, as_of)
    assert list(twin.disk.all()) == list(twin.memory.all())
    twin.close()


@pytest.fixture
def state(tmp_path: Path) -> Iterator[DiskState]:
    opened = open_state(tmp_path)
    yield opened
    opened.close()


def test_what_was_not_committed_is_gone(tmp_path: Path) -> None:
    state = open_state(tmp_path)
    entries = state.storage("s").map()
    entries.put(b"a", b"1")
    state.commit({"s": 1}, force=True)
    entries.put(b"a", b"2")
    state.commit({"s": 2})  # Too little to be written.
    entries.put(b"b", b"3")
    state.close()
    again = open_state(tmp_path)
    assert again.checkpoint("s") == 1
    assert list(again.storage("s").map().range()) == [(b"a", b"1")]
    again.close()


def test_nothing_is_written_before_there_is_something_to_keep(tmp_path: Path) -> None:
    """Each database that is created waits for the disk, and a task has one for each store."""
    state = open_state(tmp_path)
    before = (tmp_path / "data.mdb").read_bytes()
    entries = state.storage("s").map()
    entries.put(b"a", b"1")
    state.commit({"s": 1})
    assert (entries.get(b"a"), entries.get(b"b"), list(entries.range())) == (
        b"1",
        None,
        [(b"a", b"1")],
    )
    assert (tmp_path / "data.mdb").read_bytes() == before
    state.commit({"s": 1}, force=True)
    assert (tmp_path / "data.mdb").read_bytes() != before
    assert list(entries.range()) == [(b"a", b"1")]
    state.close()


def test_a_scan_goes_on_across_a_commit(state: DiskState) -> None:
    entries = state.storage("s").map()
    keys = [f"{number:04}".encode() for number in range(1000)]
    for key in keys:
        entries.put(key, b"1")
    state.commit({}, force=True)
    seen = []
    for key, _ in entries.range():
        seen.append(key)
        if len(seen) % 100 == 0:
            entries.put(key, None)
            state.commit({}, force=True)
    assert seen == keys
    assert len(entries) == 990


def test_the_map_grows_with_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moldau.streams.stores.disk._MAP_SIZE", 256 * 1024)
    state = open_state(tmp_path)
    entries = state.storage("s").map()
    for number in range(64):
        entries.put(f"{number}".encode(), bytes(32 * 1024))
        state.commit({"s": number}, force=True)
    assert len(list(entries.range())) == 64
    state.close()


def test_expired_segments_leave_the_disk(state: DiskState) -> None:
    store = _window_store(state.storage("s"))
    for minute in range(100):
        store.put("k", minute, minute * 60_000, 0)
        state.commit({}, force=True)
    (segments,) = state.storage("s").parts
    assert segments._disk.count() <= 4  # type: ignore[union-attr]


def test_a_state_that_cannot_be_read_is_started_again(tmp_path: Path) -> None:
    state = open_state(tmp_path)
    state.storage("s").map().put(b"a", b"1")
    state.commit({"s": 1}, force=True)
    state.close()
    (tmp_path / "data.mdb").write_bytes(b"no pages" * 4096)
    again = open_state(tmp_path)
    assert again.checkpoint("s") is None
    again.close()


PROGRAM = """
import sys
from pathlib import Path
from moldau.streams.stores.disk import open_state
state = open_state(Path(sys.argv[1]), batch_bytes=0)
entries = state.storage("s").map()
number = state.checkpoint("s") or 0
while True:
    for each in range(50):
        entries.put(f"{each}".encode(), f"{number}".encode())
    number += 1
    state.commit({"s": number})
    print(number, flush=True)
"""


def test_entries_and_offset_are_of_one_moment_after_a_kill(tmp_path: Path) -> None:
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        for _ in range(20):
            last = int(process.stdout.readline())
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        state = open_state(tmp_path)
        checkpoint = state.checkpoint("s")
        assert checkpoint is not None
        assert checkpoint >= last
        values = {value for _, value in state.storage("s").map().range()}
        assert values == {f"{checkpoint - 1}".encode()}
        state.close()
