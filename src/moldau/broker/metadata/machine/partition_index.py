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
# By the id as a number: the hash of a UUID is computed in Python, and a stop or a start of a broker
# changes thousands of partitions.
_Keys = dict[tuple[int, int], PartitionKey]


class PartitionIndex:
    def __init__(self, topics: Iterable[Topic] = ()) -> None:
        self._known: dict[int, dict[int, Partition]] = {}
        self._by_replica: dict[int, _Keys] = {}
        self._by_leader: dict[int, _Keys] = {}
        self._imbalanced: _Keys = {}
        self._reassigning: _Keys = {}
        for topic in topics:
            for index, partition in topic.partitions.items():
                self.update(topic.id, index, partition)

    def of_broker(self, broker_id: int) -> tuple[PartitionKey, ...]:
        """Everything it has, or may have, a replica of; also what it is only remembered for."""
        return tuple(self._by_replica.get(broker_id, {}).values())

    def has_leaderships(self, broker_id: int) -> bool:
        return broker_id in self._by_leader

    def leaderless(self) -> tuple[PartitionKey, ...]:
        return tuple(self._by_leader.get(NO_LEADER, {}).values())

    def imbalanced(self) -> tuple[PartitionKey, ...]:
        """Partitions that their preferred replica does not lead."""
        return tuple(self._imbalanced.values())

    def reassigning(self) -> tuple[PartitionKey, ...]:
        return tuple(self._reassigning.values())

    def update(self, topic_id: UUID, index: int, after: Partition) -> None:
        number = topic_id.int
        partitions = self._known.get(number)
        if partitions is None:
            partitions = self._known[number] = {}
        before = partitions.get(index)
        key = (number, index)
        value = (topic_id, index)
        if before is None or _holders(before) != _holders(after):
            self._forget_replicas(key, before)
            for broker_id in _holders(after):
                self._by_replica.setdefault(broker_id, {})[key] = value
        if before is None or before.leader != after.leader:
            self._forget_leader(key, before)
            self._by_leader.setdefault(after.leader, {})[key] = value
        _mark(self._imbalanced, key, value, after.leader != after.replicas[0])
        _mark(self._reassigning, key, value, after.reassigning)
        partitions[index] = after

    def remove_topic(self, topic_id: UUID) -> None:
        for index, partition in self._known.pop(topic_id.int, {}).items():
            key = (topic_id.int, index)
            self._forget_replicas(key, partition)
            self._forget_leader(key, partition)
            self._imbalanced.pop(key, None)
            self._reassigning.pop(key, None)

    def _forget_replicas(self, key: tuple[int, int], partition: Partition | None) -> None:
        for broker_id in () if partition is None else _holders(partition):
            _discard(self._by_replica, broker_id, key)

    def _forget_leader(self, key: tuple[int, int], partition: Partition | None) -> None:
        if partition is not None:
            _discard(self._by_leader, partition.leader, key)


def _holders(partition: Partition) -> tuple[int, ...]:
    # Of old logs it is not sure that ISR and ELR are among the replicas.
    if not partition.elr and len(partition.isr) == len(partition.replicas):
        return partition.replicas
    return tuple(dict.fromkeys(partition.replicas + partition.isr + partition.elr))


def _mark(keys: _Keys, key: tuple[int, int], value: PartitionKey, present: bool) -> None:
    if present:
        keys[key] = value
    else:
        keys.pop(key, None)


def _discard(by_broker: dict[int, _Keys], broker_id: int, key: tuple[int, int]) -> None:
    keys = by_broker[broker_id]
    keys.pop(key, None)
    if not keys:
        del by_broker[broker_id]
