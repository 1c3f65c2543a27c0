"""How much a micro-batch reads: `maxOffsetsPerTrigger`, `minOffsetsPerTrigger`, `maxTriggerDelay`.

Pure; the time is passed in. Invariants: a batch never ends before it begins, nor after what
is there; every partition with unread records gets at least one of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from moldau.client.topics import TopicPartition
from moldau.spark.source.machine.offsets import Offsets

__all__ = ["AUTO", "LIMIT_MAX", "AdaptiveLimit", "MinimumGate", "rate_limited", "unread"]

#: The value of `maxOffsetsPerTrigger` with which the source finds the limit.
AUTO: Final = "auto"
_FIRST_LIMIT: Final = 50_000
_LIMIT_MIN: Final = 1_000
#: Bounds what a batch can hold anywhere, however fast it is.
LIMIT_MAX: Final = 1_000_000
_STEP_MAX: Final = 2.0
# A batch that takes about as long as it should may have been waiting for its trigger, so a little
# more is tried.
_NEAR: Final = 0.05
_TRY_MORE: Final = 1.1


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


class AdaptiveLimit:
    """Finds how many offsets a batch takes, so that batches of a backlog take the same time.

    `target_ms` is that time. The time of a batch is from when it was handed out to when the next
    one is asked for, so a trigger's interval must not be longer than it.
    """

    def __init__(self, target_ms: int) -> None:
        self._target_ms = target_ms
        self._limit = _FIRST_LIMIT
        self._batch: tuple[int, bool, int] | None = None

    @property
    def limit(self) -> int:
        return self._limit

    def handed_out(self, count: int, *, is_full: bool, now_ms: int) -> None:
        """A batch begins; `is_full` says that the limit has cut it."""
        self._batch = (count, is_full, now_ms)

    def done(self, now_ms: int) -> None:
        """The batch is done."""
        if self._batch is None:
            return
        count, is_full, began_ms = self._batch
        self._batch = None
        ratio = self._target_ms / max(1, now_ms - began_ms)
        if ratio < 1 - _NEAR:
            wanted = count * max(ratio, 1 / _STEP_MAX)
            self._limit = max(_LIMIT_MIN, min(self._limit, int(wanted)))
        elif is_full:
            step = _TRY_MORE if ratio < 1 + _NEAR else min(ratio, _STEP_MAX)
            self._limit = min(LIMIT_MAX, int(self._limit * step))
