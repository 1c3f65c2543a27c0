"""Offset syncs, which MirrorMaker 2 and its clients read: when one is due, and what they say.

The exact map (`offset_map.py`) makes them unnecessary between Moldau's mirrors; they are written so
that MirrorMaker 2 can take over, and read where MirrorMaker 2 was the one that copied.
"""

from __future__ import annotations

from moldau.client.topics import TopicPartition
from moldau.mirror.machine.records import OffsetSync

__all__ = ["OffsetSyncs", "SyncSchedule"]

SYNCS_PER_PARTITION = 64


class SyncSchedule:
    """When a sync of a partition is due: `offset.lag.max` records after the last one, after a gap,
    and at the latest with the next commit."""

    def __init__(self, offset_lag_max: int) -> None:
        self._lag_max = offset_lag_max
        self._last_synced: dict[TopicPartition, int] = {}
        self._next_upstream: dict[TopicPartition, int] = {}
        self._delayed: dict[TopicPartition, OffsetSync] = {}

    def copied(
        self, partition: TopicPartition, upstream: int, downstream: int, count: int
    ) -> OffsetSync | None:
        """`count` records are in the target; a sync for the last of them if one is due."""
        sync = OffsetSync(partition, upstream + count - 1, downstream + count - 1)
        last = self._last_synced.get(partition, -1)
        is_due = (
            last < 0
            or sync.downstream_offset - (last + 1) >= self._lag_max
            or upstream != self._next_upstream.get(partition)
            or downstream <= last
        )
        self._next_upstream[partition] = upstream + count
        if not is_due:
            self._delayed[partition] = sync
            return None
        self._delayed.pop(partition, None)
        self._last_synced[partition] = sync.downstream_offset
        return sync

    def committed(self) -> list[OffsetSync]:
        """Offsets are committed: what was held back is due."""
        delayed, self._delayed = self._delayed, {}
        for sync in delayed.values():
            self._last_synced[sync.partition] = sync.downstream_offset
        return list(delayed.values())


class OffsetSyncs:
    """Syncs as read, thinned out towards the past as MirrorMaker 2 does it: of a partition at most
    64, of which the n-th is at most 2**n offsets behind the newest."""

    def __init__(self) -> None:
        self._syncs: dict[TopicPartition, list[OffsetSync]] = {}

    def replay(self, key: bytes | None, value: bytes | None) -> None:
        sync = OffsetSync.parse(key, value)
        known = self._syncs.get(sync.partition)
        if known is None or sync.upstream_offset < known[0].upstream_offset:
            # New, or the mirror went back: nothing from before is true any more.
            self._syncs[sync.partition] = [sync]
            return
        known.insert(0, sync)
        self._thin(known)

    def _thin(self, known: list[OffsetSync]) -> None:
        """Keep the newest one of each distance class 2**n."""
        newest = known[0].upstream_offset
        kept: list[OffsetSync] = []
        classes: set[int] = set()
        for sync in known:
            distance = (newest - sync.upstream_offset).bit_length()
            if sync is known[0] or sync is known[-1] or distance not in classes:
                kept.append(sync)
                classes.add(distance)
        known[:] = kept[:SYNCS_PER_PARTITION]

    def downstream(self, partition: TopicPartition, upstream: int) -> int | None:
        """The best offset that is not too far; -1 if all syncs are beyond, None if there are
        none. Not exact: it may be well before the record that it stands for."""
        known = self._syncs.get(partition)
        if not known:
            return None
        for sync in known:
            if sync.upstream_offset <= upstream:
                return sync.downstream_offset + (0 if sync.upstream_offset == upstream else 1)
        return -1

    def partitions(self) -> list[TopicPartition]:
        return sorted(self._syncs)
