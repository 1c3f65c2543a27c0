"""How stores with headers keep them beside the values, in the entries of stores without headers.

Without headers an entry has the bytes that a store without them keeps, so such a store becomes one
with headers as it is, also on disk. An entry with headers has a mark:

- with a time, bit 62 of the time is not the same as bit 63, which no time before the year 146
  million has; the sized headers are behind the time, and the value's bytes behind them;
- without a time (sessions) 16 bytes that no value begins with; then the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from moldau.streams.errors import StreamsError
from moldau.streams.longs import prefixed, unpack_long
from moldau.streams.records import Headers
from moldau.streams.stores._maps import OrderedMap
from moldau.streams.stores.base import Drop, Entry, SegmentedMap
from moldau.streams.stores.formats import header_bytes, read_header_bytes, read_varint, varint

_MARK = 1 << 62
#: The times that an entry can have.
TIME_MIN, TIME_MAX = -_MARK, _MARK - 1
_SESSION_MARK = bytes.fromhex("9b1f6e0ac4d84f7ba3e25d90c781364e")


def keep_timed(data: bytes, timestamp: int, headers: Headers) -> bytes:
    """An entry of a value with its time and headers."""
    if not TIME_MIN <= timestamp <= TIME_MAX:
        raise ValueError(f"a store with headers has no time {timestamp}: it is 2**62 or more away")
    if not headers:
        return prefixed(timestamp, data)
    raw = header_bytes(headers)
    return prefixed(timestamp ^ _MARK, varint(len(raw)) + raw + data)


def is_marked(kept: bytes) -> bool:
    """Whether an entry with a time has headers."""
    return bool((kept[0] ^ kept[0] << 1) & 0x80)


def time_of(kept: bytes) -> int:
    """The time of an entry."""
    return unpack_long(kept, 0) ^ (_MARK if is_marked(kept) else 0)


def stripped(kept: bytes) -> bytes:
    """An entry with a time as a store without headers keeps it."""
    # As in `is_marked`, without the call: a table asks for every record.
    if not (kept[0] ^ kept[0] << 1) & 0x80:
        return kept
    return prefixed(time_of(kept), _split(kept, 8)[1])


def timed_headers(kept: bytes) -> Headers:
    """The headers of an entry with a time."""
    return read_header_bytes(_split(kept, 8)[0]) if is_marked(kept) else ()


def keep_session(data: bytes, headers: Headers) -> bytes:
    """An entry of a session's value with its headers."""
    if not headers and not data.startswith(_SESSION_MARK):
        return data
    raw = header_bytes(headers)
    return _SESSION_MARK + varint(len(raw)) + raw + data


def split_session(kept: bytes) -> tuple[bytes, Headers]:
    """The value's bytes of a session, and its headers."""
    if not kept.startswith(_SESSION_MARK):
        return kept, ()
    raw, data = _split(kept, len(_SESSION_MARK))
    return data, read_header_bytes(raw)


def session_value(kept: bytes) -> bytes:
    """The value's bytes of a session."""
    return split_session(kept)[0]


def _split(kept: bytes, at: int) -> tuple[bytes, bytes]:
    size, length = read_varint(kept[at : at + 5])
    at += length
    if not 0 <= size <= len(kept) - at:
        raise StreamsError(f"headers of {size} bytes do not fit into an entry of {len(kept)}")
    return kept[at : at + size], kept[at + size :]


class StrippedMap(OrderedMap):
    """The entries of a store with headers, read without them."""

    __slots__ = ("_inner",)

    def __init__(self, inner: OrderedMap) -> None:
        self._inner = inner

    def __len__(self) -> int:
        return len(self._inner)

    def get(self, key: bytes) -> bytes | None:
        kept = self._inner.get(key)
        return None if kept is None else stripped(kept)

    def range(self, start: bytes = b"", end: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        return ((key, stripped(kept)) for key, kept in self._inner.range(start, end))

    def prefix(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        return ((key, stripped(kept)) for key, kept in self._inner.prefix(prefix))


class StrippedSegments:
    """The same of a store by time, as the `Storage` and the segments of one without headers."""

    #: Reading needs no time of its own.
    observed_ms = -1
    is_used = True

    def __init__(self, inner: SegmentedMap, strip: Callable[[bytes], bytes]) -> None:
        self._inner = inner
        self._strip = strip

    def map(self) -> OrderedMap:
        raise NotImplementedError("a store by time has no map")

    def segments(self, retention_ms: int, drop: Drop) -> SegmentedMap:
        return self

    def get(self, entry: Entry) -> bytes | None:
        kept = self._inner.get(entry)
        return None if kept is None else self._strip(kept)

    def put(self, entry: Entry, value: bytes | None) -> bool:
        raise NotImplementedError("what is read without headers is not written")

    def _each(self, found: Iterable[tuple[Entry, bytes]]) -> list[tuple[Entry, bytes]]:
        return [(entry, self._strip(kept)) for entry, kept in found]

    def of_key(self, key: bytes, low: int, high: int) -> Iterator[tuple[Entry, bytes]]:
        return iter(self._each(self._inner.of_key(key, low, high)))

    def between(self, low: int, high: int) -> list[tuple[Entry, bytes]]:
        return self._each(self._inner.between(low, high))

    def all(self) -> list[tuple[Entry, bytes]]:
        return self._each(self._inner.all())
