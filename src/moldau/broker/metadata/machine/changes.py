"""The partition changes of one decision.

A decision may change a partition more than once (a broker that is fenced and also lost a log
directory, a request that names it twice): each change starts from the result of the previous ones.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from moldau.broker.metadata.machine.elections import (
    Election,
    ElectionRules,
    Target,
    change_partition,
    check_change,
)
from moldau.broker.metadata.machine.model import DIRECTORY_UNASSIGNED, Partition, Topic
from moldau.broker.metadata.machine.placement import default_directory
from moldau.broker.metadata.machine.view import ControllerView

if TYPE_CHECKING:
    from moldau.wire.messages import PartitionChangeRecord


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
