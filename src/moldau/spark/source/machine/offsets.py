"""Offsets of many partitions, and the JSON in which Spark's Kafka source writes them.

Pure. Invariants: the same offsets give the same JSON, topics and partitions in order, so
that Spark, which compares texts, sees that nothing is new.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from moldau.client.topics import TopicPartition

__all__ = [
    "EARLIEST",
    "LATEST",
    "Offsets",
    "OffsetsJson",
    "merged",
    "offsets_from_json",
    "offsets_to_json",
    "parse_offsets",
    "parse_partitions",
    "show_partitions",
]

#: In the JSON of `startingOffsets` and `endingOffsets`, and on the wire as timestamps.
LATEST: Final = -1
EARLIEST: Final = -2

Offsets = dict[TopicPartition, int]
OffsetsJson = dict[str, dict[str, int]]


def offsets_to_json(offsets: Mapping[TopicPartition, int]) -> OffsetsJson:
    """As Spark's KafkaSourceOffset: `{"topic": {"0": 5}}`."""
    result: OffsetsJson = {}
    for key in sorted(offsets):
        result.setdefault(key.topic, {})[str(key.partition)] = offsets[key]
    return result


def offsets_from_json(value: Mapping[str, Mapping[str, Any]]) -> Offsets:
    """The inverse; raises ValueError for anything else than `{"topic": {"0": 5}}`."""
    offsets: Offsets = {}
    if not isinstance(value, Mapping):
        raise ValueError(f"not an object: {value!r}")
    for topic, partitions in value.items():
        if not isinstance(partitions, Mapping):
            raise ValueError(f"{topic}: not an object: {partitions!r}")
        for partition, offset in partitions.items():
            if not isinstance(offset, int) or isinstance(offset, bool):
                raise ValueError(f"{topic}-{partition}: not a whole number: {offset!r}")
            offsets[TopicPartition(topic, _partition(partition))] = offset
    return offsets


def parse_offsets(text: str) -> Offsets:
    """The JSON of an option; raises ValueError."""
    return offsets_from_json(json.loads(text))


def parse_partitions(text: str) -> frozenset[TopicPartition]:
    """`{"topicA": [0, 1], "topicB": [2, 4]}`; raises ValueError."""
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError(f"not an object: {value!r}")
    found: set[TopicPartition] = set()
    for topic, partitions in value.items():
        if not isinstance(partitions, list):
            raise ValueError(f"{topic}: not a list: {partitions!r}")
        found.update(TopicPartition(topic, _partition(each)) for each in partitions)
    return frozenset(found)


def merged(offsets: Mapping[TopicPartition, int], other: Mapping[TopicPartition, int]) -> Offsets:
    """The higher of both where both have one."""
    result = dict(offsets)
    for key, offset in other.items():
        result[key] = max(offset, result.get(key, offset))
    return result


def show_partitions(partitions: Iterable[TopicPartition], limit: int = 20) -> str:
    """For messages: in order, and not all of a thousand."""
    ordered = sorted(partitions)
    shown = ", ".join(map(str, ordered[:limit]))
    more = len(ordered) - limit
    return f"{shown} and {more} more" if more > 0 else shown


def _partition(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f"not a partition: {value!r}")
    number = int(value)
    if not 0 <= number < 2**31:
        raise ValueError(f"not a partition: {value!r}")
    return number
