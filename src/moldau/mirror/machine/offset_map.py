"""Exact translation of offsets: where every record of a source partition is in the target.

Copied records lie in runs of consecutive offsets on both sides; a run ends where a transaction
marker, a compacted record or a restart of the mirror shifts one side. The map keeps the runs of all
partitions. Invariants: the runs of a partition are in the order of their upstream offsets and do
not overlap there; a run that begins at or below an earlier one replaces it, because the mirror went
back (the topic was created again, or records were copied a second time).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace

from moldau.client.topics import TopicPartition
from moldau.mirror.machine.records import OffsetRun

__all__ = ["Intervals", "OffsetMap", "PartitionMap", "Translation"]


@dataclass(frozen=True, slots=True)
class Translation:
    """Where a reader continues in the other cluster."""

    offset: int
    is_exact: bool
    """Whether a reader that continues there misses nothing and gets nothing twice."""
    behind: int = 0
    """How many source offsets before the reader's are not copied yet."""


class Intervals:
    """A set of offsets as ranges, for questions about which records are copies."""

    __slots__ = ("_ends", "_starts")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, start: int, end: int) -> None:
        if end <= start:
            return
        first = bisect_left(self._ends, start)
        last = bisect_right(self._starts, end)
        if first < last:
            start = min(start, self._starts[first])
            end = max(end, self._ends[last - 1])
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]

    def contains(self, offset: int) -> bool:
        index = bisect_right(self._starts, offset) - 1
        return index >= 0 and offset < self._ends[index]

    def ranges(self) -> list[tuple[int, int]]:
        """(first, after the last), in order."""
        return list(zip(self._starts, self._ends, strict=True))


class PartitionMap:
    """The runs of one partition."""

    __slots__ = ("_upstreams", "copies", "runs")

    def __init__(self) -> None:
        self.runs: list[OffsetRun] = []
        self._upstreams: list[int] = []
        self.copies = Intervals()
        """Offsets of the target that hold copies."""

    @property
    def last(self) -> OffsetRun | None:
        return self.runs[-1] if self.runs else None

    @property
    def position(self) -> int:
        """Where the mirror continues in the source; -1 if nothing is known."""
        return -1 if not self.runs else self.runs[-1].position

    def add(self, run: OffsetRun) -> list[OffsetRun]:
        """Take a run; the runs that it replaces or shortens are returned as they were."""
        self.copies.add(run.downstream, run.downstream_end)
        index = bisect_left(self._upstreams, run.upstream)
        replaced = self.runs[index:]
        del self.runs[index:]
        del self._upstreams[index:]
        before = self.last
        if before is not None and before.upstream_end > run.upstream:
            replaced.insert(0, before)
            kept = run.upstream - before.upstream
            self.runs[-1] = replace(before, count=kept, position=run.upstream)
        self.runs.append(run)
        self._upstreams.append(run.upstream)
        return replaced

    def remove(self, upstream: int) -> None:
        index = bisect_left(self._upstreams, upstream)
        if index < len(self.runs) and self._upstreams[index] == upstream:
            del self.runs[index]
            del self._upstreams[index]

    def extended(self, run: OffsetRun) -> OffsetRun:
        """The run as it is to be stored: the last one made longer, where it continues it."""
        before = self.last
        if (
            before is not None
            and before.upstream_end == run.upstream
            and before.downstream_end == run.downstream
        ):
            return replace(before, count=before.count + run.count, position=run.position)
        return run

    def downstream(self, upstream: int) -> Translation | None:
        """Where a reader continues in the target that has read everything below `upstream`;
        None if the map does not reach back so far."""
        index = bisect_right(self._upstreams, upstream) - 1
        if index < 0:
            return None
        run = self.runs[index]
        if upstream <= run.upstream_end:
            return Translation(run.downstream + upstream - run.upstream, True)
        if upstream <= run.position or index + 1 < len(self.runs):
            return Translation(run.downstream_end, True)
        return Translation(run.downstream_end, False, behind=upstream - run.position)


class OffsetMap:
    """All partitions of a flow. `replay` is the only mutator."""

    def __init__(self, runs_max: int = 100_000) -> None:
        self._runs_max = runs_max
        self._partitions: dict[TopicPartition, PartitionMap] = {}

    def partition(self, key: TopicPartition) -> PartitionMap:
        found = self._partitions.get(key)
        if found is None:
            found = self._partitions[key] = PartitionMap()
        return found

    def __contains__(self, key: TopicPartition) -> bool:
        return key in self._partitions

    def partitions(self) -> list[TopicPartition]:
        return sorted(self._partitions)

    def replay(self, key: bytes | None, value: bytes | None) -> None:
        if value is None:
            partition, upstream = OffsetRun.parse_key(key)
            self.partition(partition).remove(upstream)
        else:
            run = OffsetRun.parse(key, value)
            self.partition(run.partition).add(run)

    def records_for(self, run: OffsetRun) -> list[tuple[bytes, bytes | None]]:
        """What to write so that `replay` gets the map with this run: the run, and the end of
        those that it replaces or that are too many."""
        known = self.partition(run.partition)
        stored = known.extended(run)
        records: list[tuple[bytes, bytes | None]] = []
        for each in known.runs[bisect_left(known._upstreams, stored.upstream) :]:
            if each.upstream != stored.upstream:
                records.append((each.key(), None))
        surplus = len(known.runs) + 1 - self._runs_max
        if surplus > 0:
            # A tenth at once, not one with every run.
            dropped = known.runs[: surplus + self._runs_max // 10]
            records += [(each.key(), None) for each in dropped]
        return [*records, (stored.key(), stored.value())]

    def downstream(self, key: TopicPartition, upstream: int) -> Translation | None:
        found = self._partitions.get(key)
        return None if found is None else found.downstream(upstream)
