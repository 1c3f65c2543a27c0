"""The values that flow through a topology."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

from moldau.streams.errors import StreamsError

K = TypeVar("K")
V = TypeVar("V")
K2 = TypeVar("K2")
V2 = TypeVar("V2")

Headers = tuple[tuple[str, bytes | None], ...]

MAX_TIMESTAMP = 2**63 - 1


class Record(Generic[K, V]):
    """A key and a value with a timestamp (milliseconds) and headers. Treat it as immutable."""

    __slots__ = ("headers", "key", "timestamp", "value")

    def __init__(self, key: K, value: V, timestamp: int, headers: Headers = ()) -> None:
        if timestamp < 0:
            raise StreamsError("Malformed Record") from ValueError(
                f"Timestamp may not be negative. Got: {timestamp}"
            )
        self.key = key
        self.value = value
        self.timestamp = timestamp
        self.headers = headers

    def with_key(self, key: K2) -> Record[K2, V]:
        """The same record under another key."""
        return Record(key, self.value, self.timestamp, self.headers)

    def with_value(self, value: V2) -> Record[K, V2]:
        """The same record with another value."""
        return Record(self.key, value, self.timestamp, self.headers)

    def with_timestamp(self, timestamp: int) -> Record[K, V]:
        """The same record at another time; negative times are refused."""
        return Record(self.key, self.value, timestamp, self.headers)

    def with_headers(self, headers: Headers) -> Record[K, V]:
        """The same record with other headers."""
        return Record(self.key, self.value, self.timestamp, headers)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return (self.key, self.value, self.timestamp, self.headers) == (
            other.key,
            other.value,
            other.timestamp,
            other.headers,
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"Record(key={self.key!r}, value={self.value!r}, timestamp={self.timestamp}, "
            f"headers={self.headers!r})"
        )


class Change(Generic[V]):
    """An update of a table: the new value and, where a downstream step needs it, the old one.

    `is_latest` is false when a versioned table got an update for a time before its newest version.
    """

    __slots__ = ("is_latest", "new", "old")

    def __init__(self, new: V | None, old: V | None, is_latest: bool = True) -> None:
        self.new = new
        self.old = old
        self.is_latest = is_latest


class ValueAndTimestamp(NamedTuple, Generic[V]):
    """A value of a table with the time of its last update."""

    value: V
    timestamp: int


class Window(NamedTuple):
    """A span of time in milliseconds. Whether `end` belongs to it depends on the kind of window."""

    start: int
    end: int


class Windowed(NamedTuple, Generic[K]):
    """The key of a windowed aggregation."""

    key: K
    window: Window


class RecordContext(NamedTuple):
    """Where the record that is being processed comes from."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    headers: Headers
