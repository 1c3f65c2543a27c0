"""Checks of what applications pass: a wrong argument gets a sentence that says what to pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from moldau.client.topics import OffsetAndMetadata, TopicPartition

__all__ = ["checked_offsets", "checked_partition", "checked_partitions"]

_EXAMPLE = "{TopicPartition('orders', 0): 5}"


def checked_partition(given: Any) -> TopicPartition:
    """A partition; raises TypeError or ValueError."""
    if (
        not isinstance(given, tuple)
        or len(given) != 2
        or not isinstance(given[1], int)
        or isinstance(given[1], bool)
    ):
        raise TypeError(f"a partition is a TopicPartition or (topic, number), not {given!r}")
    topic, partition = given
    if not isinstance(topic, str) or not topic.strip():
        raise ValueError(f"a topic partition cannot have a null or empty topic: {given!r}")
    return TopicPartition(topic, partition)


def checked_partitions(given: Iterable[Any]) -> list[TopicPartition]:
    """Several partitions; one alone, or a topic's name, in place of them is refused."""
    if isinstance(given, str):
        raise TypeError(f"a list of partitions is expected: [TopicPartition({given!r}, 0)]")
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str):
        raise TypeError(f"a list of partitions is expected: [{given!r}], not {given!r}")
    return [checked_partition(each) for each in given]


def checked_offsets(given: Any) -> dict[TopicPartition, OffsetAndMetadata]:
    """Offsets by partition, as commits take them."""
    if not isinstance(given, Mapping):
        raise TypeError(
            f"offsets are a mapping from partitions to offsets, such as {_EXAMPLE}, not {given!r}"
        )
    found = {}
    for key, each in given.items():
        if isinstance(key, str):
            raise TypeError(
                f"offsets are given by partition: {{TopicPartition({key!r}, 0): {each!r}}}, "
                f"not by topic: {{{key!r}: {each!r}}}"
            )
        partition = checked_partition(key)
        offset = each if isinstance(each, OffsetAndMetadata) else OffsetAndMetadata(each)
        if not isinstance(offset.offset, int) or isinstance(offset.offset, bool):
            raise TypeError(
                f"the offset of {partition} is an int or an OffsetAndMetadata, not {each!r}"
            )
        if offset.offset < 0:
            raise ValueError(f"Invalid negative offset {offset.offset} of {partition}")
        found[partition] = offset
    return found
