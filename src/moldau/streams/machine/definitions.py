"""A topology as data: the nodes that a task is built from."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from moldau.streams.machine.context import Processor
from moldau.streams.records import RecordContext
from moldau.streams.serdes import Serde

#: The time of a record, from where it comes, its value and the partition's time so far (-1: none).
TimestampExtractor = Callable[[RecordContext, Any, int], int]
#: The partition of a record: topic, key, value, number of partitions. None leaves it to the host;
#: the record goes to each of several partitions, and nowhere if there are none of them.
Partitioner = Callable[[str, Any, Any, int], int | Collection[int] | None]
#: The topic of a record: key, value, where it comes from.
TopicChooser = Callable[[Any, Any, RecordContext], str]


class SourceDefinition(NamedTuple):
    """Reads topics, or all topics whose name matches a pattern."""

    name: str
    topics: list[str]
    key_serde: Serde[Any]
    value_serde: Serde[Any]
    #: It has none.
    parents: list[str]
    pattern: re.Pattern[str] | None = None
    timestamp_extractor: TimestampExtractor | None = None
    offset_reset: str | None = None


class ProcessorDefinition(NamedTuple):
    """Runs a processor; every task makes its own from `supplier`."""

    name: str
    supplier: Callable[[], Processor]
    parents: list[str]
    stores: list[str]


class SinkDefinition(NamedTuple):
    """Writes to a topic, or to the topic that is chosen for each record."""

    name: str
    topic: str | TopicChooser
    key_serde: Serde[Any]
    value_serde: Serde[Any]
    parents: list[str]
    partitioner: Partitioner | None = None


Definition = SourceDefinition | ProcessorDefinition | SinkDefinition
