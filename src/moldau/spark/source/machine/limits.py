"""How much a micro-batch reads: `maxOffsetsPerTrigger`, `minOffsetsPerTrigger`, `maxTriggerDelay`.

Pure; the time is passed in. Invariants: a batch never ends before it begins, nor after what
is there; every partition with unread records gets at least one of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from moldau.client.topics import TopicPartition
from moldau.spark.source.machine.offsets import Offsets

__all__ = ["MinimumGate", "rate_limited", "unread"]


def unread(start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]) -> Offsets:
    """The offsets between, by partition; only those where there are some."""
    return {
        key: end - start[key] for key, end in latest.items() if key in start and end > start[key]
    }


def rate_limited(
    limit: int, start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]
) -> Offsets:
    """Where a batch of about `limit` offsets ends: each partition's part of what is unread.

    `start` has the first offsets of new partitions too; one without is left as it is.
    """
    sizes = unread(start, latest)
    total = sum(sizes.values())
    result = dict(latest)
    for key, size in sizes.items():
        # Small ones are not starved: less than one becomes one.
        share = max(1, limit * size // total)
        result[key] = min(latest[key], start[key] + share)
    return result


class MinimumGate:
    """Holds batches back until there is enough to read, but not for longer than a time."""

    def __init__(self, minimum: int, delay_ms_max: int) -> None:
        self._minimum = minimum
        self._delay_ms_max = delay_ms_max
        # As in Spark the first batch waits for nothing.
        self._opened_ms: int | None = None

    def opens(self, available: int, now_ms: int) -> bool:
        """Whether a batch of this many offsets may start now."""
        waited = self._opened_ms is None or now_ms - self._opened_ms >= self._delay_ms_max
        if not waited and available < self._minimum:
            return False
        self._opened_ms = now_ms
        return True
