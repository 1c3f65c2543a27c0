"""The values that flow through a topology."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

from moldau.streams._records import (
    Change,
    PartitionProgress,
    Produced,
    Record,
    RecordContext,
    TaskCore,
    new_change,
    new_record,
)

__all__ = [
    "MAX_TIMESTAMP",
    "AggregationWithHeaders",
    "Change",
    "Headers",
    "PartitionProgress",
    "Produced",
    "Record",
    "RecordContext",
    "TaskCore",
    "ValueAndTimestamp",
    "ValueTimestampHeaders",
    "Window",
    "Windowed",
    "aggregation",
    "new_change",
    "new_record",
]

K = TypeVar("K")
V = TypeVar("V")

Headers = tuple[tuple[str, bytes | None], ...]

MAX_TIMESTAMP = 2**63 - 1


class ValueAndTimestamp(NamedTuple, Generic[V]):
    """A value of a table with the time of its last update."""

    value: V
    timestamp: int


class ValueTimestampHeaders(NamedTuple, Generic[V]):
    """A value of a store with headers: also the time and the headers it was put with."""

    value: V
    timestamp: int
    headers: Headers


class AggregationWithHeaders(NamedTuple, Generic[V]):
    """A value of a session store with headers: also the headers it was put with."""

    aggregation: V
    headers: Headers


class Window(NamedTuple):
    """A span of time in milliseconds. Whether `end` belongs to it depends on the kind of window."""

    start: int
    end: int


class Windowed(NamedTuple, Generic[K]):
    """The key of a windowed aggregation."""

    key: K
    window: Window


def aggregation(found: Any) -> Any:
    """The value of a session in what a store found, which may have headers."""
    return found.aggregation if isinstance(found, AggregationWithHeaders) else found
