"""How the offsets of a batch become Spark partitions.

Pure. Invariants: the ranges cover what they were made from, without overlap and in order;
none is empty. The proportions are those of Spark's Kafka source: one range per topic partition, and
with `minPartitions` the large ones are cut until there are about as many.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["OffsetRange", "cut"]


class OffsetRange(NamedTuple):
    """Offsets from `start` up to but not including `end`."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        """An estimate of the records: compaction and transactions leave gaps."""
        return self.end - self.start


def cut(
    ranges: Sequence[OffsetRange],
    *,
    min_partitions: int | None = None,
    max_records: int | None = None,
) -> list[OffsetRange]:
    """The ranges that tasks read; empty ones are left out."""
    result = [each for each in ranges if each.size > 0]
    if max_records is not None:
        result = [part for each in result for part in _parts(each, -(-each.size // max_records))]
    if min_partitions is not None and len(result) < min_partitions:
        result = _cut_in_proportion(result, min_partitions)
    return result


def _cut_in_proportion(ranges: Sequence[OffsetRange], wanted: int) -> list[OffsetRange]:
    total = sum(each.size for each in ranges)
    # Ranges that stay whole take their share out of the calculation; else the others would be cut
    # into too few.
    whole = {each for each in ranges if _part_count(each.size, total, wanted) == 1}
    left_total = total - sum(each.size for each in whole)
    left_wanted = max(wanted - len(whole), 1)
    return [
        part
        for each in ranges
        for part in _parts(
            each, 1 if each in whole else _part_count(each.size, left_total, left_wanted)
        )
    ]


def _part_count(size: int, total: int, wanted: int) -> int:
    # Rounded half up, as Java rounds.
    return max((2 * size * wanted + total) // (2 * total), 1)


def _parts(whole: OffsetRange, count: int) -> list[OffsetRange]:
    parts = []
    start, left = whole.start, whole.size
    for index in range(count):
        size = left // (count - index)
        left -= size
        if size:
            parts.append(OffsetRange(whole.topic, whole.partition, start, start + size))
        start += size
    return parts
