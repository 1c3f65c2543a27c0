"""One member of a classic group, in the volatile half of the group."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from moldau.broker.coordinator.group.machine.stored import StoredMember
from moldau.broker.coordinator.machine.decision import Ticket
from moldau.invariant import invariant
from moldau.wire.messages import DescribeGroupsResponse, JoinGroupRequest, JoinGroupResponse

Protocols = tuple[tuple[str, bytes], ...]
"""(name, metadata) in the member's order of preference; names are unique."""


def protocols_of(request: JoinGroupRequest) -> Protocols:
    unique: dict[str, bytes] = {}
    for protocol in request.protocols:
        unique.setdefault(protocol.name, bytes(protocol.metadata))
    return tuple(unique.items())


@dataclass(slots=True)
class ClassicMember:
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    awaiting_join: Ticket | None = None
    awaiting_sync: Ticket | None = None
    is_new: bool = False
    """In its first JoinGroup: it cannot heartbeat yet, so its session may end while it waits."""

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def heartbeat_satisfied(self) -> bool:
        """A member that waits in JoinGroup or SyncGroup counts as alive."""
        if self.is_new:
            return False
        return self.awaiting_join is not None or self.awaiting_sync is not None

    def metadata(self, protocol: str | None) -> bytes:
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        invariant(False, f"member {self.member_id} does not support protocol {protocol}")
        return b""

    def vote(self, candidates: Container[str]) -> str:
        for name, _ in self.protocols:
            if name in candidates:
                return name
        invariant(False, f"member {self.member_id} supports none of the group's protocols")
        return ""

    @classmethod
    def from_stored(cls, stored: StoredMember, protocol: str | None) -> ClassicMember:
        # Only the chosen protocol is stored: after a reload the group has no other.
        return cls(
            member_id=stored.member_id,
            instance_id=stored.instance_id,
            client_id=stored.client_id,
            client_host=stored.client_host,
            rebalance_timeout_ms=stored.rebalance_timeout_ms,
            session_timeout_ms=stored.session_timeout_ms,
            protocols=((protocol or "", stored.subscription),),
            assignment=stored.assignment,
        )

    def to_stored(self, protocol: str | None, assignment: bytes) -> StoredMember:
        return StoredMember(
            member_id=self.member_id,
            instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            session_timeout_ms=self.session_timeout_ms,
            subscription=self.metadata(protocol),
            assignment=assignment,
        )

    def joined(self, protocol: str | None) -> JoinGroupResponse.JoinGroupResponseMember:
        """This member in the leader's JoinGroup response."""
        return JoinGroupResponse.JoinGroupResponseMember(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            metadata=self.metadata(protocol),
        )

    def described(self, protocol: str | None) -> DescribeGroupsResponse.DescribedGroupMember:
        """This member for DescribeGroups; without a settled protocol its metadata is hidden."""
        return DescribeGroupsResponse.DescribedGroupMember(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            member_metadata=b"" if protocol is None else self.metadata(protocol),
            member_assignment=self.assignment,
        )
