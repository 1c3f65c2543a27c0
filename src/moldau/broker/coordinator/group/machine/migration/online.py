"""What the section of consumer groups calls when a group changes its kind."""

from __future__ import annotations

from collections.abc import Collection

from moldau.broker.coordinator.group.machine.classic import ClassicGroup
from moldau.broker.coordinator.group.machine.config import GroupConfig
from moldau.broker.coordinator.group.machine.consumer.group import ConsumerGroup
from moldau.broker.coordinator.group.machine.consumer.member import ConsumerMember
from moldau.broker.coordinator.group.machine.group import Group
from moldau.broker.coordinator.group.machine.migration.downgrade import downgrade_without
from moldau.broker.coordinator.group.machine.migration.upgrade import upgrade
from moldau.broker.coordinator.machine.decision import Outbox
from moldau.broker.coordinator.machine.topics import ClusterTopics
from moldau.wire.errors import ApiError, ErrorCode


class OnlineMigration:
    """Implements `Migration` by `group.consumer.migration.policy`."""

    def __init__(self, config: GroupConfig, topics: ClusterTopics) -> None:
        self._config = config
        self._topics = topics

    def upgrade(self, classic: Group, out: Outbox) -> ConsumerGroup:
        if not isinstance(classic, ClassicGroup):
            raise ApiError(
                ErrorCode.GROUP_ID_NOT_FOUND, f"Group {classic.group_id} is not a consumer group."
            )
        return upgrade(classic, self._topics, self._config, out)

    def downgrade(
        self, group: ConsumerGroup, leaving: Collection[ConsumerMember], out: Outbox
    ) -> bool:
        return downgrade_without(group, leaving, self._topics, self._config, out)
