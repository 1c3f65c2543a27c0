"""Records between a connector and the worker, with schemas and headers.

A record never changes; `new_record` returns one with other parts. Values are those of
`moldau.data`: plain Python objects, `Struct` for structs, and the types of `moldau.data.logical`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from moldau.data.schema import Schema

R = TypeVar("R", bound="ConnectRecord")


@dataclass(frozen=True, slots=True)
class Header:
    """A header with a typed value."""

    key: str
    value: Any
    schema: Schema | None = None


class SourcePartition(Mapping[str, Any]):
    """A source partition as a key: a mapping that never changes. Equal ones hash alike."""

    __slots__ = ("_items", "_text")

    def __init__(self, items: Mapping[str, Any]) -> None:
        self._items = dict(items)
        self._text = json.dumps(self._items, sort_keys=True, default=str)

    def __getitem__(self, name: str) -> Any:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SourcePartition):
            return self._text == other._text
        return self._items == other

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return repr(self._items)


#: Timestamps of records that a sink reads.
NO_TIMESTAMP_TYPE = "NoTimestampType"
CREATE_TIME = "CreateTime"
LOG_APPEND_TIME = "LogAppendTime"


class ConnectRecord:
    """What source and sink records share. `timestamp` is in milliseconds since 1970."""

    __slots__ = (
        "headers",
        "key",
        "key_schema",
        "partition",
        "timestamp",
        "topic",
        "value",
        "value_schema",
    )

    def __init__(
        self,
        topic: str,
        partition: int | None = None,
        *,
        key: Any = None,
        key_schema: Schema | None = None,
        value: Any = None,
        value_schema: Schema | None = None,
        timestamp: int | None = None,
        headers: Iterable[Header] = (),
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.key = key
        self.key_schema = key_schema
        self.value = value
        self.value_schema = value_schema
        self.timestamp = timestamp
        self.headers: tuple[Header, ...] = tuple(headers)

    def new_record(self: R, **changes: Any) -> R:
        """The same record with some parts changed, by the names of the attributes."""
        made = object.__new__(type(self))
        for slot in self._copied():
            setattr(made, slot, changes.pop(slot) if slot in changes else getattr(self, slot))
        if changes:
            raise TypeError(f"{type(self).__name__} has no attributes {', '.join(changes)}")
        return made

    @classmethod
    def _all_slots(cls) -> tuple[str, ...]:
        return ConnectRecord.__slots__

    @classmethod
    def _copied(cls) -> tuple[str, ...]:
        return cls._all_slots()

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, each) == getattr(other, each) for each in self._all_slots())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        parts = ", ".join(f"{each}={getattr(self, each)!r}" for each in self._all_slots())
        return f"{type(self).__name__}({parts})"


class SourceRecord(ConnectRecord):
    """A record from a source system.

    `source_partition` names the part of the source it comes from (such as a file), `source_offset`
    where the task continues after it; both are dicts that JSON can hold, or None.
    """

    __slots__ = ("source_offset", "source_partition")
    _SLOTS = (*ConnectRecord.__slots__, *__slots__)

    def __init__(
        self,
        source_partition: Mapping[str, Any] | None,
        source_offset: Mapping[str, Any] | None,
        topic: str,
        partition: int | None = None,
        *,
        key: Any = None,
        key_schema: Schema | None = None,
        value: Any = None,
        value_schema: Schema | None = None,
        timestamp: int | None = None,
        headers: Iterable[Header] = (),
    ) -> None:
        # Written out instead of passed on: a source makes one of these per record.
        self.topic = topic
        self.partition = partition
        self.key = key
        self.key_schema = key_schema
        self.value = value
        self.value_schema = value_schema
        self.timestamp = timestamp
        self.headers = tuple(headers) if headers else ()
        self.source_partition = source_partition
        self.source_offset = source_offset

    @classmethod
    def _all_slots(cls) -> tuple[str, ...]:
        return cls._SLOTS


class SinkRecord(ConnectRecord):
    """A record of a topic on its way to a sink.

    Transforms may change `topic` and `partition`; the `original_*` attributes are where it was
    read, which is what offsets are about.
    """

    __slots__ = (
        "offset",
        "original_offset",
        "original_partition",
        "original_topic",
        "raw",
        "timestamp_type",
    )
    _COPIED = (*ConnectRecord.__slots__, *__slots__)
    #: Without the record as it was read, which is no part of its value.
    _SLOTS = tuple(each for each in _COPIED if each != "raw")

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        *,
        key: Any = None,
        key_schema: Schema | None = None,
        value: Any = None,
        value_schema: Schema | None = None,
        timestamp: int | None = None,
        timestamp_type: str = NO_TIMESTAMP_TYPE,
        headers: Iterable[Header] = (),
    ) -> None:
        # Written out instead of passed on: a worker makes one of these per record.
        self.topic = topic
        self.partition = partition
        self.key = key
        self.key_schema = key_schema
        self.value = value
        self.value_schema = value_schema
        self.timestamp = timestamp
        self.headers = tuple(headers) if headers else ()
        self.offset = offset
        self.timestamp_type = timestamp_type
        self.original_topic = topic
        self.original_partition = partition
        self.original_offset = offset
        #: The record as it was read, for the dead-letter topic; None if a connector made this one.
        self.raw: Any = None

    @classmethod
    def _all_slots(cls) -> tuple[str, ...]:
        return cls._SLOTS

    @classmethod
    def _copied(cls) -> tuple[str, ...]:
        return cls._COPIED
