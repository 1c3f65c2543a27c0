"""Which partitions a broker has to do with, so that its death costs what it holds, not what there
is.

The index follows the controller's image: `update` after a partition changed, `remove_topic` after
its topic went. Everything is kept in order of arrival, so equal histories give equal decisions.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from moldau.broker.metadata.machine.model import NO_LEADER, Partition, Topic

PartitionKey = tuple[UUID, int]
_Keys = dict[PartitionKey, None]


class PartitionIndex:
    def __init__(self, topics: Iterable[Topic] = ()) -> None:
        self._known: dict[UUID, dict[int, Partition]] = {}
        self._by_replica: dict[int, _Keys] = {}
        self._by_leader: dict[int, _Keys] = {}
        self._imbalanced: _Keys = {}
        self._reassigning: _Keys = {}
        for topic in topics:
            for index, partition in topic.partitions.items():
                self.update(topic.id, index, partition)

    def of_broker(self, broker_id: int) -> tuple[PartitionKey, ...]:
        """Everything it has, or may have, a replica of; also what it is only remembered for."""
        return tuple(self._by_replica.get(broker_id, ()))

    def has_leaderships(self, broker_id: int) -> bool:
        return broker_id in self._by_leader

    def leaderless(self) -> tuple[PartitionKey, ...]:
        return tuple(self._by_leader.get(NO_LEADER, ()))

    def imbalanced(self) -> tuple[PartitionKey, ...]:
        """Partitions that their preferred replica does not lead."""
        return tuple(self._imbalanced)

    def reassigning(self) -> tuple[PartitionKey, ...]:
        return tuple(self._reassigning)

    def update(self, topic_id: UUID, index: int, after: Partition) -> None:
        partitions = self._known.setdefault(topic_id, {})
        before = partitions.get(index)
        key = (topic_id, index)
        if before is None or _holders(before) != _holders(after):
            self._forget_replicas(key, before)
            for broker_id in _holders(after):
                self._by_replica.setdefault(broker_id, {})[key] = None
        if before is None or before.leader != after.leader:
            self._forget_leader(key, before)
            self._by_leader.setdefault(after.leader, {})[key] = None
        _mark(self._imbalanced, key, after.leader != after.replicas[0])
        _mark(self._reassigning, key, after.reassigning)
        partitions[index] = after

    def remove_topic(self, topic_id: UUID) -> None:
        for index, partition in self._known.pop(topic_id, {}).items():
            key = (topic_id, index)
            self._forget_replicas(key, partition)
            self._forget_leader(key, partition)
            self._imbalanced.pop(key, None)
            self._reassigning.pop(key, None)

    def _forget_replicas(self, key: PartitionKey, partition: Partition | None) -> None:
        for broker_id in () if partition is None else _holders(partition):
            _discard(self._by_replica, broker_id, key)

    def _forget_leader(self, key: PartitionKey, partition: Partition | None) -> None:
        if partition is not None:
            _discard(self._by_leader, partition.leader, key)


def _holders(partition: Partition) -> tuple[int, ...]:
    # Of old logs it is not sure that ISR and ELR are among the replicas.
    if not partition.elr and len(partition.isr) == len(partition.replicas):
        return partition.replicas
    return tuple(dict.fromkeys(partition.replicas + partition.isr + partition.elr))


def _mark(keys: _Keys, key: PartitionKey, present: bool) -> None:
    if present:
        keys[key] = None
    else:
        keys.pop(key, None)


def _discard(by_broker: dict[int, _Keys], broker_id: int, key: PartitionKey) -> None:
    keys = by_broker[broker_id]
    keys.pop(key, None)
    if not keys:
        del by_broker[broker_id]
