"""The partition changes of one decision.

A decision may change a partition more than once (a broker that is fenced and also lost a log
directory, a request that names it twice): each change starts from the result of the previous ones.

A broker that stops or dies changes thousands of partitions, most of them alike: same replicas, ISR
and leader. What an election makes of one holds for all of them, as nothing else that it reads
changes within a decision; only the epochs differ.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple
from uuid import UUID

from moldau.broker.metadata.machine.elections import (
    Election,
    ElectionRules,
    Target,
    change_partition,
    check_change,
)
from moldau.broker.metadata.machine.model import (
    DIRECTORY_UNASSIGNED,
    NO_LEADER_CHANGE,
    Partition,
    Topic,
)
from moldau.broker.metadata.machine.placement import default_directory
from moldau.broker.metadata.machine.view import ControllerView
from moldau.wire.messages import PartitionChangeRecord


class _Change(NamedTuple):
    """What a decision made of a partition."""

    record: PartitionChangeRecord
    partition: Partition


class PartitionChanges:
    def __init__(
        self, controller: ControllerView, *, removed: int | None = None, added: int | None = None
    ) -> None:
        """`removed` may not lead although it is active in the image, `added` may although it is
        not."""
        self._controller = controller
        self._removed = removed
        self._added = added
        self._changed: dict[tuple[UUID, int], Partition] = {}
        self._rules: dict[UUID, ElectionRules] = {}
        self._alike: dict[tuple[object, ...], _Change | None] = {}
        self.records: list[PartitionChangeRecord] = []

    def partition(self, topic: Topic, index: int) -> Partition | None:
        return self._changed.get((topic.id, index)) or topic.partitions.get(index)

    def may_lead(self, partition: Partition, replica: int, moved: Mapping[int, UUID]) -> bool:
        """Whether the replica's broker is active and its log directory is online."""
        broker = self._controller.image.brokers.get(replica)
        directory = moved[replica] if replica in moved else partition.directory_of(replica)
        return (
            broker is not None
            and replica != self._removed
            and (broker.active or replica == self._added)
            and broker.has_online(directory)
        )

    def change(
        self,
        topic: Topic,
        index: int,
        partition: Partition,
        *,
        isr: Collection[int] | None = None,
        target: Target | None = None,
        election: Election | None = None,
        unclean_shutdown: Collection[int] = (),
    ) -> PartitionChangeRecord | None:
        """Change a partition to its target and elect a leader; None if nothing changes."""
        if target is not None:
            return self._change(topic, index, partition, isr, target, election, unclean_shutdown)
        key = (
            topic.id,
            partition[:-2],
            None if isr is None else tuple(isr),
            election,
            tuple(unclean_shutdown),
        )
        if key in self._alike:
            return self._change_alike(topic, index, partition, self._alike[key])
        record = self._change(topic, index, partition, isr, None, election, unclean_shutdown)
        self._alike[key] = (
            None if record is None else _Change(record, self._changed[topic.id, index])
        )
        return record

    def _change_alike(
        self, topic: Topic, index: int, partition: Partition, alike: _Change | None
    ) -> PartitionChangeRecord | None:
        """Change a partition as one that differs only in its epochs."""
        if alike is None:
            return None
        model = alike.record
        record = PartitionChangeRecord(
            partition_id=index,
            topic_id=topic.id,
            isr=model.isr,
            leader=model.leader,
            replicas=model.replicas,
            removing_replicas=model.removing_replicas,
            adding_replicas=model.adding_replicas,
            leader_recovery_state=model.leader_recovery_state,
            directories=model.directories,
            eligible_leader_replicas=model.eligible_leader_replicas,
            last_known_elr=model.last_known_elr,
        )
        self.records.append(record)
        self._changed[topic.id, index] = Partition(
            *alike.partition[:-2],
            leader_epoch=partition.leader_epoch + (model.leader != NO_LEADER_CHANGE),
            partition_epoch=partition.partition_epoch + 1,
        )
        return record

    def _change(
        self,
        topic: Topic,
        index: int,
        partition: Partition,
        isr: Collection[int] | None,
        target: Target | None,
        election: Election | None,
        unclean_shutdown: Collection[int],
    ) -> PartitionChangeRecord | None:
        moved = {} if target is None or target.directories is None else target.directories
        record = change_partition(
            partition,
            topic_id=topic.id,
            index=index,
            isr=isr,
            target=target,
            acceptable=lambda replica: self.may_lead(partition, replica, moved),
            rules=self._rules_of(topic),
            election=election,
            unclean_shutdown=unclean_shutdown,
            default_directory=self._default_directory,
        )
        if record is not None:
            self.add(topic, partition, record)
        return record

    def remove(self, topic: Topic, index: int, partition: Partition, *, clean: bool = True) -> None:
        """Remove `removed` from the ISR and as leader; after a crash from the ELR too."""
        broker_id = self._removed
        self.change(
            topic,
            index,
            partition,
            isr=tuple(replica for replica in partition.isr if replica != broker_id),
            unclean_shutdown=() if clean or broker_id is None else (broker_id,),
        )

    def add(self, topic: Topic, partition: Partition, record: PartitionChangeRecord) -> None:
        changed = partition.changed_by(record)
        check_change(f"partition {topic.name}-{record.partition_id}", partition, changed)
        self.records.append(record)
        self._changed[topic.id, record.partition_id] = changed

    def _rules_of(self, topic: Topic) -> ElectionRules:
        # Configs do not change within a decision, and a topic may have thousands of partitions.
        rules = self._rules.get(topic.id)
        if rules is None:
            rules = self._rules[topic.id] = self._controller.election_rules(topic)
        return rules

    def _default_directory(self, replica: int) -> UUID:
        broker = self._controller.image.brokers.get(replica)
        return DIRECTORY_UNASSIGNED if broker is None else default_directory(broker)
