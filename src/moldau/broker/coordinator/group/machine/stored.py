"""A classic group as `__consumer_offsets` holds it, and its form as a record.

This is the replicated half of a group: made by replay alone, never changed in
place. The volatile half (waiting and joined members) is `classic.ClassicGroup`
and is rebuilt from this after a restart or a move.
"""

from __future__ import annotations

from dataclasses import dataclass

from moldau.broker.coordinator.machine.decision import CoordinatorRecord
from moldau.wire.constants import NO_TIMESTAMP
from moldau.wire.messages import GroupMetadataKey, GroupMetadataValue

# The last version without tagged fields: what Kafka 4.3 writes.
_VALUE_VERSION = 3


@dataclass(frozen=True, slots=True)
class StoredMember:
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class StoredGroup:
    protocol_type: str | None = None
    """None: no member ever joined, offsets were committed without one (a simple group)."""
    generation: int = 0
    protocol: str | None = None
    leader: str | None = None
    state_timestamp_ms: int = NO_TIMESTAMP
    members: tuple[StoredMember, ...] = ()

    @classmethod
    def from_value(cls, value: GroupMetadataValue) -> StoredGroup:
        return cls(
            protocol_type=value.protocol_type or None,
            generation=value.generation,
            protocol=value.protocol,
            leader=value.leader,
            state_timestamp_ms=value.current_state_timestamp,
            members=tuple(
                StoredMember(
                    member_id=member.member_id,
                    instance_id=member.group_instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    # Records before version 1 have no rebalance timeout.
                    rebalance_timeout_ms=member.session_timeout
                    if member.rebalance_timeout == -1
                    else member.rebalance_timeout,
                    session_timeout_ms=member.session_timeout,
                    subscription=bytes(member.subscription),
                    assignment=bytes(member.assignment),
                )
                for member in value.members
            ),
        )

    def to_record(self, group_id: str) -> CoordinatorRecord:
        return CoordinatorRecord(
            GroupMetadataKey(group=group_id),
            GroupMetadataValue(
                protocol_type=self.protocol_type or "",
                generation=self.generation,
                protocol=self.protocol,
                leader=self.leader,
                current_state_timestamp=self.state_timestamp_ms,
                members=[
                    GroupMetadataValue.MemberMetadata(
                        member_id=member.member_id,
                        group_instance_id=member.instance_id,
                        client_id=member.client_id,
                        client_host=member.client_host,
                        rebalance_timeout=member.rebalance_timeout_ms,
                        session_timeout=member.session_timeout_ms,
                        subscription=member.subscription,
                        assignment=member.assignment,
                    )
                    for member in self.members
                ],
            ),
            _VALUE_VERSION,
        )


def tombstone(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(GroupMetadataKey(group=group_id), None)
