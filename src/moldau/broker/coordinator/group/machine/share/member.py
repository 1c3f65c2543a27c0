"""A member of a share group, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from moldau.invariant import invariant
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupDescribeResponse,
    ShareGroupHeartbeatResponse,
    ShareGroupMemberMetadataValue,
)

JOIN_EPOCH = 0
LEAVE_EPOCH = -1

Assignment = Mapping[UUID, frozenset[int]]


@dataclass(frozen=True, slots=True)
class ShareMember:
    """Members of share groups are always stable: partitions are shared, nothing is handed over."""

    member_id: str
    member_epoch: int = JOIN_EPOCH
    previous_member_epoch: int = LEAVE_EPOCH
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed: frozenset[str] = frozenset()
    assigned: Assignment = field(default_factory=dict)

    def check_epoch(self, member_epoch: int) -> None:
        """Accept the previous epoch too: the response with the new one may have been lost."""
        known = (self.member_epoch, self.previous_member_epoch)
        if member_epoch == JOIN_EPOCH or member_epoch in known:
            return
        raise ApiError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The share group member has epoch {member_epoch}, the group coordinator knows epoch "
            f"{self.member_epoch} and before it {self.previous_member_epoch}. The member must "
            "abandon all its partitions and rejoin.",
        )

    def at_epoch(self, epoch: int) -> ShareMember:
        invariant(
            epoch >= self.member_epoch,
            f"member {self.member_id} would go back from epoch {self.member_epoch} to {epoch}",
        )
        return replace(self, member_epoch=epoch, previous_member_epoch=self.member_epoch)

    def with_metadata(self, value: ShareGroupMemberMetadataValue) -> ShareMember:
        return replace(
            self,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed=frozenset(value.subscribed_topic_names),
        )

    def with_current(self, value: ShareGroupCurrentMemberAssignmentValue | None) -> ShareMember:
        if value is None:
            return replace(
                self, member_epoch=LEAVE_EPOCH, previous_member_epoch=LEAVE_EPOCH, assigned={}
            )
        return replace(
            self,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            assigned={
                topic.topic_id: frozenset(topic.partitions) for topic in value.assigned_partitions
            },
        )

    def heartbeat_assignment(self) -> ShareGroupHeartbeatResponse.Assignment:
        return ShareGroupHeartbeatResponse.Assignment(
            topic_partitions=[
                ShareGroupHeartbeatResponse.TopicPartitions(
                    topic_id=topic_id, partitions=sorted(partitions)
                )
                for topic_id, partitions in self.assigned.items()
            ]
        )

    def described(self, names: Mapping[UUID, str]) -> ShareGroupDescribeResponse.Member:
        """`names` of the topics that still exist: others are not shown."""
        return ShareGroupDescribeResponse.Member(
            member_id=self.member_id,
            rack_id=self.rack_id,
            member_epoch=self.member_epoch,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=sorted(self.subscribed),
            assignment=ShareGroupDescribeResponse.Assignment(
                topic_partitions=[
                    ShareGroupDescribeResponse.TopicPartitions(
                        topic_id=topic_id,
                        topic_name=names[topic_id],
                        partitions=sorted(partitions),
                    )
                    for topic_id, partitions in self.assigned.items()
                    if topic_id in names
                ]
            ),
        )
