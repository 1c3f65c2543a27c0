"""Stores whose values have headers (KIP-1271): key-value, window and session stores.

The changelog has the headers as the record's own, and for a deletion those of the input record.
Bytes are those of `kept_headers.py`. What reads such a store without headers gets a view of it:
`without_headers(store)`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from moldau.streams.errors import InvalidStateStoreError
from moldau.streams.longs import window_key
from moldau.streams.records import (
    AggregationWithHeaders,
    Headers,
    ValueAndTimestamp,
    ValueTimestampHeaders,
    Windowed,
)
from moldau.streams.stores._segments import Entry
from moldau.streams.stores._tables import TimestampedKeyValueStore
from moldau.streams.stores._windows import WindowStore
from moldau.streams.stores.base import ChangelogRecord
from moldau.streams.stores.formats import session_store_key
from moldau.streams.stores.kept_headers import (
    TIME_MAX,
    TIME_MIN,
    StrippedMap,
    StrippedSegments,
    keep_session,
    keep_timed,
    session_value,
    split_session,
    stripped,
    time_of,
    timed_headers,
)
from moldau.streams.stores.read_only import read_only
from moldau.streams.stores.sessions import SessionStore

K = TypeVar("K")
V = TypeVar("V")


class TimestampedKeyValueStoreWithHeaders(TimestampedKeyValueStore):
    """The store of a table: each value with the time and the headers of its last update."""

    __slots__ = ()

    def find(self, raw: bytes) -> bytes | None:
        """What a store without headers would keep for a key."""
        kept = self._map.get(raw)
        return None if kept is None else stripped(kept)

    def _kept(self, data: bytes, timestamp: int, headers: Headers) -> bytes:
        return keep_timed(data, timestamp, headers)

    def _value(self, kept: bytes) -> ValueTimestampHeaders[Any]:
        value = self.value_of(stripped(kept))
        return ValueTimestampHeaders(value, time_of(kept), timed_headers(kept))

    def _pass_on(self, raw: bytes, old: bytes | None, new: bytes | None) -> None:
        time, data, headers = _logged(new)
        self._log.write(raw, data, time, headers)
        if self._listener is not None:
            self._listener(
                self._keys.deserialize(self._topic, raw),
                None if new is None else self.value_of(stripped(new)),
                None if old is None else self.value_of(stripped(old)),
                None if new is None else time,
            )

    def put(self, key: Any, value: Any, timestamp: int, headers: Headers = ()) -> int:
        """Set a value; `None` deletes: store.put("a", 1, 5, (("trace", b"7"),)). Returns -1."""
        self.write(self.raw_key(key), value, timestamp, headers)
        return -1

    def put_if_absent(self, key: Any, value: Any, timestamp: int, headers: Headers = ()) -> Any:
        """Set a value where there is none; returns what was there."""
        found = self.get(key)
        if found is None:
            self.put(key, value, timestamp, headers)
        return found

    def put_all(self, entries: Iterable[tuple[Any, Any]]) -> None:
        """Set several values: store.put_all([("a", (1, 5, headers)), ("b", None)])."""
        for key, value in entries:
            self.put(key, *((None, -1) if value is None else value))

    def write(self, raw: bytes, value: Any, timestamp: int, headers: Headers = ()) -> None:
        """Set the value of a key that is given as bytes."""
        if not headers and TIME_MIN <= timestamp <= TIME_MAX:
            # What tables put: the entry is that of a store without headers, which is faster.
            TimestampedKeyValueStore.write(self, raw, value, timestamp)
            return
        data = self._values.serialize(self._topic, value)
        headers = tuple(headers)
        kept = None if data is None else keep_timed(data, timestamp, headers)
        self.keep(raw, data, kept, timestamp, headers)

    def without_headers(self) -> TimestampedKeyValueStore:
        """The store as one without headers, for reading."""
        return _KeyValuesWithoutHeaders(self, StrippedMap(self._map))


class _KeyValuesWithoutHeaders(TimestampedKeyValueStore):
    """A store with headers as one without them, for reading."""

    __slots__ = ("_of",)

    def __init__(self, of: TimestampedKeyValueStoreWithHeaders, entries: StrippedMap) -> None:
        super().__init__(of.name, of._keys, of._values, entries=entries, topic=of._topic)
        self._of = of

    def get_stored(self, key: Any) -> ValueAndTimestamp[Any] | None:
        """The value without updates that wait in the cache, which is that of the store itself."""
        found = self._of.get_stored(key)
        return None if found is None else ValueAndTimestamp(found.value, found.timestamp)


class WindowStoreWithHeaders(WindowStore):
    """Values by key and start of a window, with the time and the headers of their last update."""

    __slots__ = ()

    def find(self, entry: Entry) -> bytes | None:
        """What a store without headers would keep for a window."""
        kept = WindowStore.find(self, entry)
        return None if kept is None else stripped(kept)

    def get(self, key: Any, start: int) -> ValueTimestampHeaders[Any] | None:
        """The value of a window with its time and headers, or `None`."""
        kept = WindowStore.find(self, (self.raw_key(key), start, 0))
        return None if kept is None else self._value(kept)

    def _kept(self, data: bytes, timestamp: int, headers: Headers) -> bytes:
        return keep_timed(data, timestamp, headers)

    def _value(self, kept: bytes) -> ValueTimestampHeaders[Any]:
        value = self.value_of(stripped(kept))
        return ValueTimestampHeaders(value, time_of(kept), timed_headers(kept))

    def _pass_on(self, entry: Entry, old: bytes | None, new: bytes | None) -> None:
        time, data, headers = _logged(new)
        self._log.write(window_key(entry[0], entry[1], entry[2]), data, time, headers)
        if self._listener is not None:
            self._listener(
                self._windowed(entry),
                None if new is None else self.value_of(stripped(new)),
                None if old is None else self.value_of(stripped(old)),
                None if new is None else time,
            )

    def put(
        self, key: Any, value: Any, start: int, timestamp: int = 0, headers: Headers = ()
    ) -> None:
        """Set the value of a window; `None` deletes it: store.put("a", 1, 0, 5, headers)."""
        self.write(self.raw_key(key), value, start, timestamp, headers)

    def write(
        self, raw: bytes, value: Any, start: int, timestamp: int, headers: Headers = ()
    ) -> None:
        """Set the value of a window whose key is given as bytes."""
        if not headers and TIME_MIN <= timestamp <= TIME_MAX:
            WindowStore.write(self, raw, value, start, timestamp)
            return
        data = self._values.serialize(self._topic, value)
        headers = tuple(headers)
        kept = None if data is None else keep_timed(data, timestamp, headers)
        self.keep(raw, start, data, kept, timestamp, headers)

    def without_headers(self) -> WindowStore:
        """The store as one without headers, for reading."""
        return WindowStore(
            self.name,
            self._keys,
            self._values,
            retention_ms=0,
            window_size_ms=self._size_ms,
            storage=StrippedSegments(self._segments, stripped),
            topic=self._topic,
        )


def _logged(new: bytes | None) -> tuple[int, bytes | None, Headers]:
    """The time, value and headers of the changelog record of an entry."""
    if new is None:
        return -1, None, ()
    return time_of(new), stripped(new)[8:], timed_headers(new)


class SessionStoreWithHeaders(SessionStore[K, V]):
    """Values by key, start and end of a session, with the headers of their last update."""

    def _typed(self, entry: Entry, data: bytes) -> tuple[Windowed[K], Any]:
        value, headers = split_session(data)
        session, found = super()._typed(entry, value)
        return session, AggregationWithHeaders(found, headers)

    def _pass_on(self, entry: Entry, old: bytes | None, new: bytes | None) -> None:
        key, end, start = entry
        value, headers = (None, ()) if new is None else split_session(new)
        self._log(session_store_key(key, start, end), value, None, headers)
        if self._listener is not None:
            before = None if old is None else session_value(old)
            session = self._session(entry)
            self._listener(session, self._read(value), self._read(before), end, headers)

    def put(self, session: Windowed[K], value: V | None, headers: Headers = ()) -> None:
        """Set the value of a session; `None` deletes it."""
        headers = tuple(headers)
        key, data = self._written(session, value)
        kept = None if data is None else keep_session(data, headers)
        self._keep(key, session, data, kept, headers)

    def get(self, key: K, start: int, end: int) -> Any:
        """The value of one session with its headers, or `None`."""
        kept = self._segments.get((self._key(key), end, start))
        if kept is None:
            return None
        value, headers = split_session(kept)
        return AggregationWithHeaders(self._read(value), headers)

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        super().restore(
            (key, None if value is None else keep_session(value, headers), time, headers)
            for key, value, time, headers in records
        )

    def without_headers(self) -> SessionStore[K, V]:
        """The store as one without headers, for reading."""
        return SessionStore(
            self.name,
            self._keys,
            self._values,
            retention_ms=0,
            storage=StrippedSegments(self._segments, session_value),
            topic=self._topic,
        )


StoreWithHeaders = (
    TimestampedKeyValueStoreWithHeaders | WindowStoreWithHeaders | SessionStoreWithHeaders[Any, Any]
)


def has_headers(store: Any) -> bool:
    """Whether values of a store have headers."""
    return isinstance(
        store,
        TimestampedKeyValueStoreWithHeaders | WindowStoreWithHeaders | SessionStoreWithHeaders,
    )


def without_headers(store: Any) -> Any:
    """A store as one without headers, for reading; others are returned as they are."""
    return store.without_headers() if has_headers(store) else store


def with_or_without_headers(store: Any, *, headers: bool) -> Any:
    """A store as it is asked for: with headers, which it must have, or without, for reading."""
    if headers and not has_headers(store):
        raise InvalidStateStoreError(
            f"store {store.name} has no headers: set dsl.store.format=HEADERS, or headers=True "
            f"where the store is declared"
        )
    return store if headers or not has_headers(store) else read_only(store.without_headers())
