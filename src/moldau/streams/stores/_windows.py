# cython: annotation_typing=False
"""Window stores.

The file is plain Python, and with `_windows.pxd` beside it also the source of a compiled module
with the same names and results. The types are in `windowed.pyi`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import GenericAlias, SimpleNamespace
from typing import Any

from moldau.streams._serdes import core_serde
from moldau.streams.records import Headers, Window, Windowed
from moldau.streams.stores._cache import StoreCache
from moldau.streams.stores._segments import Entry, Segments
from moldau.streams.stores._tables import Listener, changelog_writer
from moldau.streams.stores.base import Drop, Storage, no_drop
from moldau.streams.stores.memory import MemoryStorage

try:
    import cython
except ImportError:
    # Only the compiler needs the real one, and it does not let its name be assigned.
    globals()["cython"] = SimpleNamespace(compiled=False)

if not cython.compiled:
    # The compiler takes them from the .pxd, as C.
    from moldau.streams.longs import prefixed, unpack_long, window_key

_MAX_TIMESTAMP = 2**63 - 1


class WindowStore:
    """Values by key and start of a window.

    `timestamped` values carry the time of their last update; with `retain_duplicates` a put never
    replaces, as the join of two streams needs it.
    """

    __slots__ = (
        "_cache",
        "_keys",
        "_listener",
        "_log",
        "_memory",
        "_retain_duplicates",
        "_segments",
        "_sequence",
        "_size_ms",
        "_timestamped",
        "_topic",
        "_values",
        "name",
    )

    def __init__(
        self,
        name: str,
        key_serde: Any,
        value_serde: Any,
        *,
        retention_ms: int,
        window_size_ms: int,
        retain_duplicates: bool = False,
        timestamped: bool = True,
        log: Callable[..., None] | None = None,
        drop: Drop = no_drop,
        storage: Storage | None = None,
        cache: StoreCache | None = None,
        topic: str | None = None,
    ) -> None:
        self.name = name
        self._topic = topic or name
        self._keys = core_serde(key_serde)
        self._values = core_serde(value_serde)
        self._size_ms = window_size_ms
        self._retain_duplicates = retain_duplicates
        self._timestamped = timestamped
        self._sequence = 0
        self._segments: Any = (storage or MemoryStorage()).segments(retention_ms, drop)
        #: The same, if it is in memory, where it can be reached faster.
        self._memory = self._segments if isinstance(self._segments, Segments) else None
        self._log = changelog_writer(log)
        self._cache = cache
        self._listener: Listener | None = None
        if cache is not None:
            cache.write = self._pass_on

    @classmethod
    def __class_getitem__(cls, types: Any) -> GenericAlias:
        """`WindowStore[str, int]` in annotations: the types of key and value."""
        return GenericAlias(cls, types)

    def listen(self, listener: Listener) -> bool:
        """Forward updates to `listener` when the cache passes them on; false without a cache."""
        self._listener = listener
        if self._cache is not None:
            self._cache.forwards = True
        return self._cache is not None

    def _pass_on(self, entry: Entry, old: bytes | None, new: bytes | None) -> None:
        time = -1
        data = new
        if new is not None and self._timestamped:
            time, data = unpack_long(new, 0), new[8:]
        self._log.write(window_key(entry[0], entry[1], entry[2]), data, time, ())
        if self._listener is not None:
            value = None if new is None else self._value(new)[0]
            before = None if old is None else self._value(old)[0]
            self._listener(self._windowed(entry), value, before, None if time < 0 else time)

    def raw_key(self, key: Any) -> bytes:
        """The bytes of a key."""
        data: bytes | None = self._keys.serialize(self._topic, key)
        if data is None:
            raise ValueError(f"key cannot be null in store {self.name}")
        return data

    def put(self, key: Any, value: Any, start: int, timestamp: int = 0) -> None:
        """Set the value of a window; `None` deletes it: store.put("a", 1, 0, timestamp=5)."""
        self.write(self.raw_key(key), value, start, timestamp)

    def write(self, raw: bytes, value: Any, start: int, timestamp: int) -> None:
        """Set the value of a window whose key is given as bytes."""
        data = self._values.serialize(self._topic, value)
        kept = data if data is None or not self._timestamped else prefixed(timestamp, data)
        self.keep(raw, start, data, kept, timestamp, ())

    def keep(
        self,
        raw: bytes,
        start: int,
        data: bytes | None,
        kept: bytes | None,
        timestamp: int,
        headers: Headers,
    ) -> None:
        """Set what the store keeps for a window, and log the value's bytes."""
        if self._retain_duplicates:
            self._sequence = (self._sequence + 1) & 0x7FFF_FFFF
        entry = raw, start, self._sequence
        cache, old = self._cache, None
        if cache is not None and not cache.has(entry):
            old = self.find(entry)
        # Kafka Streams logs what comes too late or deletes nothing: a restore drops it, too.
        if data is not None or not self._retain_duplicates:
            if self._memory is not None:
                self._memory.put(entry, kept)
            else:
                self._segments.put(entry, kept)
        if cache is not None:
            cache.put(entry, len(raw) + 12, old, kept)
            return
        # The changelog has the time as the record's own.
        time = timestamp if self._timestamped and data is not None else -1
        self._log.write(window_key(raw, start, self._sequence), data, time, headers)

    def find(self, entry: Entry) -> bytes | None:
        """What the store keeps for a window: eight bytes of time, if any, and the value's."""
        if self._memory is not None:
            return self._memory.get(entry)
        found: bytes | None = self._segments.get(entry)
        return found

    def value_of(self, kept: bytes) -> Any:
        """The value in what the store keeps."""
        if self._timestamped:
            return self._values.deserialize_after(self._topic, kept, 8)
        return self._values.deserialize(self._topic, kept)

    def _kept(self, data: bytes, timestamp: int, headers: Headers) -> bytes:
        """What a store with times keeps of a value's bytes."""
        return prefixed(timestamp, data)

    def _value(self, kept: bytes) -> Any:
        return self.value_of(kept), unpack_long(kept, 0) if self._timestamped else -1

    def _windowed(self, entry: Entry) -> Windowed[Any]:
        key = self._keys.deserialize(self._topic, entry[0])
        return Windowed(key, Window(entry[1], min(entry[1] + self._size_ms, _MAX_TIMESTAMP)))

    def get(self, key: Any, start: int) -> tuple[Any, ...] | None:
        """The value of a window and its time (-1 without times), or `None`."""
        kept = self.find((self.raw_key(key), start, 0))
        return None if kept is None else self._value(kept)

    def fetch(self, key: Any, low: int, high: int) -> list[tuple[int, tuple[Any, int]]]:
        """The windows of a key that start from `low` to `high`: start, and value with time."""
        if self._memory is not None:
            found = self._memory.found(self.raw_key(key), low, high)
        else:
            found = self._segments.of_key(self.raw_key(key), low, high)
        return [(entry[1], self._value(kept)) for entry, kept in found]

    def backward_fetch(self, key: Any, low: int, high: int) -> list[tuple[int, tuple[Any, int]]]:
        """The same, the latest window first."""
        return list(reversed(self.fetch(key, low, high)))

    def fetch_range(
        self, key_from: Any, key_to: Any, low: int, high: int
    ) -> list[tuple[Windowed[Any], tuple[Any, int]]]:
        """The windows of the keys from `key_from` to `key_to`: by start, then by key.

        `None` as the first key stands for the smallest, as the last one for the largest.
        """
        first = b"" if key_from is None else self.raw_key(key_from)
        last = None if key_to is None else self.raw_key(key_to)
        found = [
            each
            for each in self._segments.between(low, high)
            if first <= each[0][0] and (last is None or each[0][0] <= last)
        ]
        found.sort(key=_by_start)
        return [(self._windowed(entry), self._value(kept)) for entry, kept in found]

    def backward_fetch_range(
        self, key_from: Any, key_to: Any, low: int, high: int
    ) -> list[tuple[Windowed[Any], tuple[Any, int]]]:
        """The same, the latest window first."""
        return list(reversed(self.fetch_range(key_from, key_to, low, high)))

    def fetch_all(self, low: int, high: int) -> list[tuple[Windowed[Any], tuple[Any, int]]]:
        """The windows of all keys that start from `low` to `high`: by start, then by key."""
        return self.fetch_range(None, None, low, high)

    def backward_fetch_all(
        self, low: int, high: int
    ) -> list[tuple[Windowed[Any], tuple[Any, int]]]:
        """The same, the latest window first."""
        return self.backward_fetch_range(None, None, low, high)

    def all(self) -> Iterator[tuple[Windowed[Any], tuple[Any, int]]]:
        """All windows, in the order of the keys' bytes and of time."""
        for entry, kept in self._segments.all():
            yield self._windowed(entry), self._value(kept)

    def backward_all(self) -> Iterator[tuple[Windowed[Any], tuple[Any, int]]]:
        """The same, the last first."""
        for entry, kept in reversed(self._segments.all()):
            yield self._windowed(entry), self._value(kept)

    def flush(self) -> None:
        """Pass on what waits in the cache."""
        if self._cache is not None:
            self._cache.flush()

    def close(self) -> None:
        """Nothing to close."""

    def restore(self, records: Iterable[tuple[bytes, bytes | None, int, Headers]]) -> None:
        """Apply records of the changelog, which has the times as the records' own."""
        for key, value, timestamp, headers in records:
            start, sequence = int.from_bytes(key[-12:-4]), int.from_bytes(key[-4:])
            if self._timestamped and value is not None:
                value = self._kept(value, timestamp, headers)
            if value is not None or not self._retain_duplicates:
                self._segments.put((key[:-12], start, sequence), value)
            if self._retain_duplicates:
                self._sequence = max(self._sequence, sequence)


def _by_start(found: tuple[Entry, bytes]) -> tuple[int, bytes, int]:
    key, start, sequence = found[0]
    return start, key, sequence
