# cython: annotation_typing=False
"""The values that flow through a topology, one for each record and step; and where a task stands.

The file is plain Python, and with `_records.pxd` beside it also the source of a compiled module
with the same names and results. The types are in `_records.pyi`.
"""

from __future__ import annotations

from types import GenericAlias
from typing import Any

from moldau.streams.errors import StreamsError


class Record:
    """A key and a value with a timestamp (milliseconds) and headers. Treat it as immutable."""

    __slots__ = ("headers", "key", "timestamp", "value")

    def __init__(self, key: Any, value: Any, timestamp: int, headers: Any = ()) -> None:
        if timestamp < 0:
            raise _malformed(timestamp)
        self.key = key
        self.value = value
        self.timestamp = timestamp
        self.headers = headers

    @classmethod
    def __class_getitem__(cls, types: Any) -> GenericAlias:
        """`Record[str, int]` in annotations: the types of key and value."""
        return GenericAlias(cls, types)

    def with_key(self, key: Any) -> Record:
        """The same record under another key."""
        return new_record(key, self.value, self.timestamp, self.headers)

    def with_value(self, value: Any) -> Record:
        """The same record with another value."""
        return new_record(self.key, value, self.timestamp, self.headers)

    def with_timestamp(self, timestamp: int) -> Record:
        """The same record at another time; negative times are refused."""
        return Record(self.key, self.value, timestamp, self.headers)

    def with_headers(self, headers: Any) -> Record:
        """The same record with other headers."""
        return Record(self.key, self.value, self.timestamp, headers)

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, Record):
            return NotImplemented
        mine = self.key, self.value, self.timestamp, self.headers
        return mine == (other.key, other.value, other.timestamp, other.headers)

    __hash__ = None

    def __repr__(self) -> str:
        return (
            f"Record(key={self.key!r}, value={self.value!r}, timestamp={self.timestamp}, "
            f"headers={self.headers!r})"
        )


def _malformed(timestamp: int) -> StreamsError:
    error = StreamsError("Malformed Record")
    error.__cause__ = ValueError(f"Timestamp may not be negative. Got: {timestamp}")
    return error


def new_record(key: Any, value: Any, timestamp: int, headers: Any) -> Record:
    """A record at a time that is known to be valid, made as fast as possible."""
    record = Record.__new__(Record)
    record.key = key
    record.value = value
    record.timestamp = timestamp
    record.headers = headers
    return record


class Change:
    """An update of a table: the new value and, where a downstream step needs it, the old one.

    `is_latest` is false when a versioned table got an update for a time before its newest version.
    """

    __slots__ = ("is_latest", "new", "old")

    def __init__(self, new: Any, old: Any, is_latest: bool = True) -> None:
        self.new = new
        self.old = old
        self.is_latest = is_latest

    @classmethod
    def __class_getitem__(cls, types: Any) -> GenericAlias:
        """`Change[int]` in annotations: the type of both values."""
        return GenericAlias(cls, types)


def new_change(new: Any, old: Any) -> Change:
    """The latest update of a key, made as fast as possible."""
    change = Change.__new__(Change)
    change.new = new
    change.old = old
    change.is_latest = True
    return change


class RecordContext:
    """Where the record that is being processed comes from, with its timestamp and headers."""

    __slots__ = ("headers", "offset", "partition", "timestamp", "topic")

    def __init__(
        self, topic: str, partition: int, offset: int, timestamp: int, headers: Any
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.timestamp = timestamp
        self.headers = headers

    def at(self, timestamp: int, headers: Any) -> RecordContext:
        """The same place with another time and other headers."""
        return RecordContext(self.topic, self.partition, self.offset, timestamp, headers)

    def _fields(self) -> tuple[Any, ...]:
        return self.topic, self.partition, self.offset, self.timestamp, self.headers

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, RecordContext):
            return NotImplemented
        return self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        return (
            f"RecordContext(topic={self.topic!r}, partition={self.partition}, "
            f"offset={self.offset}, timestamp={self.timestamp}, headers={self.headers!r})"
        )


class Produced:
    """A record that a task wants to have written."""

    __slots__ = ("headers", "key", "partition", "timestamp", "topic", "value")

    def __init__(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Any = (),
        partition: int | None = None,
    ) -> None:
        self.topic = topic
        self.key = key
        self.value = value
        self.timestamp = timestamp
        self.headers = headers
        self.partition = partition

    def _fields(self) -> tuple[Any, ...]:
        return self.topic, self.key, self.value, self.timestamp, self.headers, self.partition

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, Produced):
            return NotImplemented
        return self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        return (
            f"Produced(topic={self.topic!r}, key={self.key!r}, value={self.value!r}, "
            f"timestamp={self.timestamp}, headers={self.headers!r}, partition={self.partition})"
        )


class PartitionProgress:
    """How far a partition of an input topic was read."""

    __slots__ = ("position", "time")

    def __init__(self) -> None:
        #: The next offset to read; -1 when nothing was read since the last commit.
        self.position = -1
        #: The largest timestamp; -1 when it is not known.
        self.time = -1


class TaskCore:
    """What a task has that changes with every record."""

    __slots__ = (
        "dropped",
        "raw_key",
        "raw_value",
        "record_context",
        "stream_time_ms",
        "wall_clock_ms",
    )

    def __init__(self, wall_clock_ms: int) -> None:
        self.record_context = RecordContext("", -1, -1, -1, ())
        #: The input record that is being processed, as it was read.
        self.raw_key = None
        self.raw_value = None
        self.stream_time_ms = -1
        self.wall_clock_ms = wall_clock_ms
        #: Records that were dropped: late, without a key, or refused by a handler.
        self.dropped = 0
