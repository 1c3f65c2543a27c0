"""Committed offsets of all groups of one shard, and those of transactions not yet decided.

Only replay changes them. Invariants: a group has an entry exactly while it has a committed offset,
and a transaction's offsets are invisible until its commit marker has been replayed.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from moldau.broker.coordinator.machine.decision import CoordinatorRecord
from moldau.times import WallMs
from moldau.wire.constants import NO_PRODUCER_ID
from moldau.wire.messages import OffsetCommitKey, OffsetCommitValue
from moldau.wire.uuids import ZERO_UUID

NO_EXPIRY = -1
INVALID_OFFSET = -1
NO_LEADER_EPOCH = -1

# Kafka 4.3 writes version 4, but version 1 where an old client requested its own
# retention: no later version has a place for it.
_VALUE_VERSION = 4
_VALUE_VERSION_WITH_EXPIRY = 1


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int
    topic_id: uuid.UUID
    record_offset: int
    """Where the record lies in the log: among commits in and out of transactions the later wins."""

    def is_expired(self, now_ms: WallMs, base_timestamp_ms: int, retention_ms: int) -> bool:
        if self.expire_timestamp_ms != NO_EXPIRY:
            return now_ms >= self.expire_timestamp_ms
        return now_ms - base_timestamp_ms >= retention_ms

    def is_of_topic(self, topic_id: uuid.UUID) -> bool:
        """False if it belongs to a former topic of the same name; unknown ids match."""
        return ZERO_UUID in (topic_id, self.topic_id) or topic_id == self.topic_id


def offset_record(
    group_id: str,
    topic: str,
    partition: int,
    *,
    offset: int,
    leader_epoch: int,
    metadata: str,
    commit_timestamp_ms: int,
    expire_timestamp_ms: int,
    topic_id: uuid.UUID,
) -> CoordinatorRecord:
    expires = expire_timestamp_ms != NO_EXPIRY
    return CoordinatorRecord(
        OffsetCommitKey(group=group_id, topic=topic, partition=partition),
        OffsetCommitValue(
            offset=offset,
            # Version 1 has no leader epoch and no topic id; what is replayed live must
            # be what a reload finds.
            leader_epoch=NO_LEADER_EPOCH if expires else leader_epoch,
            metadata=metadata,
            commit_timestamp=commit_timestamp_ms,
            expire_timestamp=expire_timestamp_ms,
            topic_id=ZERO_UUID if expires else topic_id,
        ),
        _VALUE_VERSION_WITH_EXPIRY if expires else _VALUE_VERSION,
    )


def offset_tombstone(group_id: str, topic: str, partition: int) -> CoordinatorRecord:
    return CoordinatorRecord(
        OffsetCommitKey(group=group_id, topic=topic, partition=partition), None
    )


TopicOffsets = dict[str, dict[int, CommittedOffset]]


class OffsetStore:
    def __init__(self) -> None:
        self._groups: dict[str, TopicOffsets] = {}
        # producer id -> group id -> (topic, partition) -> offset
        self._pending: dict[int, dict[str, dict[tuple[str, int], CommittedOffset]]] = {}
        self._open_producers: dict[str, set[int]] = {}
        """By group id: whose open transactions hold offsets of the group."""

    # Reading.

    @property
    def count(self) -> int:
        """How many offsets are committed."""
        return sum(
            len(partitions) for topics in self._groups.values() for partitions in topics.values()
        )

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        return self._groups.get(group_id, {}).get(topic, {}).get(partition)

    def of_group(self, group_id: str) -> TopicOffsets:
        return self._groups.get(group_id, {})

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Does an open transaction hold an offset for this partition?"""
        return any(
            (topic, partition) in self._pending[producer_id][group_id]
            for producer_id in self._open_producers.get(group_id, ())
        )

    def has_open_transaction(self, group_id: str) -> bool:
        return group_id in self._open_producers

    def partitions(
        self, group_id: str, topics: Mapping[str, uuid.UUID] | None = None
    ) -> set[tuple[str, int]]:
        """All partitions with a committed or a pending offset of the group.

        `topics` leaves only those of topics with these names and ids: a topic that was deleted and
        recreated has the same name.
        """
        found = {
            (topic, partition): offset
            for topic, partitions in self.of_group(group_id).items()
            for partition, offset in partitions.items()
        }
        for producer_id in self._open_producers.get(group_id, ()):
            found.update(self._pending[producer_id][group_id])
        if topics is None:
            return set(found)
        return {
            place
            for place, offset in found.items()
            if place[0] in topics and offset.is_of_topic(topics[place[0]])
        }

    def known_group_ids(self) -> set[str]:
        """Groups with committed or pending offsets."""
        return self._groups.keys() | self._open_producers.keys()

    # Replay.

    def replay(
        self, record_offset: int, producer_id: int, key: OffsetCommitKey, value: OffsetCommitValue
    ) -> None:
        committed = CommittedOffset(
            offset=value.offset,
            leader_epoch=value.leader_epoch,
            metadata=value.metadata,
            commit_timestamp_ms=value.commit_timestamp,
            expire_timestamp_ms=value.expire_timestamp,
            topic_id=value.topic_id,
            record_offset=record_offset,
        )
        if producer_id == NO_PRODUCER_ID:
            self._put(key.group, key.topic, key.partition, committed)
        else:
            groups = self._pending.setdefault(producer_id, {})
            groups.setdefault(key.group, {})[key.topic, key.partition] = committed
            self._open_producers.setdefault(key.group, set()).add(producer_id)

    def replay_tombstone(self, key: OffsetCommitKey) -> None:
        topics = self._groups.get(key.group)
        if topics is not None and key.topic in topics:
            topics[key.topic].pop(key.partition, None)
            if not topics[key.topic]:
                del topics[key.topic]
            if not topics:
                del self._groups[key.group]
        for producer_id in list(self._open_producers.get(key.group, ())):
            groups = self._pending[producer_id]
            groups[key.group].pop((key.topic, key.partition), None)
            if not groups[key.group]:
                del groups[key.group]
                self._forget_open(key.group, producer_id)
            if not groups:
                del self._pending[producer_id]

    def _forget_open(self, group_id: str, producer_id: int) -> None:
        producers = self._open_producers[group_id]
        producers.discard(producer_id)
        if not producers:
            del self._open_producers[group_id]

    def replay_end_transaction(self, producer_id: int, committed: bool) -> None:
        groups = self._pending.pop(producer_id, {})
        for group_id in groups:
            self._forget_open(group_id, producer_id)
        if not committed:
            return
        for group_id, offsets in groups.items():
            for (topic, partition), offset in offsets.items():
                current = self.get(group_id, topic, partition)
                if current is None or current.record_offset < offset.record_offset:
                    self._put(group_id, topic, partition, offset)

    def _put(self, group_id: str, topic: str, partition: int, offset: CommittedOffset) -> None:
        self._groups.setdefault(group_id, {}).setdefault(topic, {})[partition] = offset

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OffsetStore):
            return NotImplemented
        return self._groups == other._groups and self._pending == other._pending

    # A store changes, so it has no hash.
    __hash__ = None  # type: ignore[assignment]
