"""A group as tests see it: its state, its members, its offsets, and what can happen to it.

Works for groups of the classic and the consumer protocol, for share and for Streams groups. What
happens to them happens by the ordinary protocol, as another member or an operator would have it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final

from moldau.client.admin.machine.group_translation import assigned_partitions
from moldau.client.errors import GroupIdNotFoundError
from moldau.testing.errors import BrokerError, WaitTimeout
from moldau.testing.intruder import intrude
from moldau.testing.machine.group_values import GroupDescription, GroupMember
from moldau.testing.waiting import wait_until
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DescribeGroupsRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    OffsetFetchRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
)

if TYPE_CHECKING:
    from moldau.client.cluster import ClusterClient
    from moldau.testing.data import DataClient

__all__ = ["Group", "GroupDescription", "GroupMember", "Rebalance"]

_LEAVE_EPOCH: Final = -1
_HEARTBEATS: Final[dict[str, Callable[..., Message]]] = {
    "consumer": ConsumerGroupHeartbeatRequest,
    "share": ShareGroupHeartbeatRequest,
    "streams": StreamsGroupHeartbeatRequest,
}


class Rebalance:
    """A rebalance under way."""

    def __init__(self, future: Future[None]) -> None:
        self._future = future

    @property
    def done(self) -> bool:
        return self._future.done()

    def wait(self, timeout: float = 30.0) -> None:
        """Wait until it is over; the consumers have to be polled meanwhile, in other threads."""
        try:
            self._future.result(timeout)
        except TimeoutError:
            raise WaitTimeout(
                f"the rebalance was not over after {timeout:g} s: are all consumers polled?"
            ) from None

    def cancel(self) -> None:
        """The member that caused it leaves at once."""
        self._future.cancel()


class Group:
    """See the module; made by `Cluster.group`."""

    def __init__(self, data: DataClient, group_id: str) -> None:
        self._data = data
        self.id = group_id

    def __repr__(self) -> str:
        return f"<group {self.id}>"

    # Looking.

    def describe(self) -> GroupDescription:
        """The group's state and members, as its coordinator has them now."""
        return self._data.run(self._describe, f"group {self.id}")

    @property
    def state(self) -> str:
        """Kafka's word: Stable, PreparingRebalance, Empty, Dead, ..."""
        return self.describe().state

    @property
    def members(self) -> tuple[GroupMember, ...]:
        """Its members now."""
        return self.describe().members

    @property
    def assignment(self) -> dict[str, dict[str, list[int]]]:
        """Topics and partitions by the members' client.id."""
        return {member.client_id: member.assignment for member in self.members}

    def committed(self) -> dict[tuple[str, int], int]:
        """Committed offsets by topic and partition."""
        return self._data.run(self._committed, f"the offsets of group {self.id}")

    def wait_until_stable(self, members: int | None = None, timeout: float = 30.0) -> None:
        """Until the group is stable, with so many members if `members` is given, and all
        partitions are assigned."""

        def stable() -> bool:
            now = self.describe()
            wanted = len(now.members) if members is None else members
            return now.state == "Stable" and len(now.members) == wanted and wanted > 0

        wait_until(stable, timeout=timeout, interval=0.02, what=f"group {self.id} to be stable")

    # What can happen to it.

    def rebalance(self) -> Rebalance:
        """Force a rebalance: another member joins, gets its share, and leaves again.

        Returns at once: the group's own members go through it as they poll. Partitions move to
        the new member and back.
        """
        now = self.describe()
        if not now.members:
            raise BrokerError(f"group {self.id} has no members that could rebalance")
        if now.type == "streams":
            raise BrokerError(
                f"group {self.id} runs a Streams topology, which a test member cannot join: "
                "expire one of its members instead"
            )
        return Rebalance(self._data.submit(lambda client: intrude(client, self.id, now)))

    def expire(self, member: str | GroupMember | None = None) -> GroupMember:
        """Expire the session of a member now, by its member id or client.id; returns the member.

        The coordinator removes it, the others get its partitions, and its next heartbeat is
        refused. Without a name, the group must have exactly one member.
        """
        now = self.describe()
        found = _chosen(now.members, member, self.id)

        async def drop(client: ClusterClient) -> None:
            await self._drop(client, now.type, found)

        self._data.run(drop, f"expiring {found.member_id}")
        return found

    def expire_all(self) -> None:
        """Expire the sessions of all members now."""
        for member in self.members:
            self.expire(member)

    # Calls.

    async def _call(self, client: ClusterClient, request: Any) -> Any:
        return await self._data.call_group(client, self.id, request)

    async def _describe(self, client: ClusterClient) -> GroupDescription:
        listed = await self._call(client, ListGroupsRequest())
        self._data.check(client, self.id, listed.error_code)
        found = next((each for each in listed.groups if each.group_id == self.id), None)
        if found is None:
            return GroupDescription(type="", state="Dead")
        kind = (found.group_type or "classic").lower()
        try:
            return await self._describe_as(client, kind)
        except GroupIdNotFoundError:
            # Since it was listed it has gone, or become a group of another kind.
            return GroupDescription(type="", state="Dead")

    async def _describe_as(self, client: ClusterClient, kind: str) -> GroupDescription:
        response = await self._call(client, _DESCRIBE[kind](self.id))
        (group,) = response.groups
        if kind != "classic" or group.error_code != ErrorCode.GROUP_ID_NOT_FOUND:
            self._data.check(client, self.id, group.error_code)
        return GroupDescription(
            type=kind,
            state=group.group_state,
            protocol=getattr(group, "protocol_data", ""),
            members=tuple(_member(kind, each) for each in group.members),
        )

    async def _committed(self, client: ClusterClient) -> dict[tuple[str, int], int]:
        group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=self.id, topics=None)
        request = OffsetFetchRequest(groups=[group])
        # By name: the newest version answers with topic ids.
        response = await self._data.call_group(client, self.id, request, max_version=9)
        (found,) = response.groups
        self._data.check(client, self.id, found.error_code)
        return {
            (topic.name, each.partition_index): each.committed_offset
            for topic in found.topics
            for each in topic.partitions
            if each.committed_offset >= 0
        }

    async def _drop(self, client: ClusterClient, kind: str, member: GroupMember) -> None:
        if kind == "classic":
            identity = LeaveGroupRequest.MemberIdentity(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                reason="the test expired its session",
            )
            response = await self._call(
                client, LeaveGroupRequest(group_id=self.id, members=[identity])
            )
            self._data.check(client, self.id, response.error_code)
            return
        heartbeat = _HEARTBEATS[kind]
        request = heartbeat(group_id=self.id, member_id=member.member_id, member_epoch=_LEAVE_EPOCH)
        response = await self._call(client, request)
        if response.error_code != ErrorCode.UNKNOWN_MEMBER_ID:
            self._data.check(client, self.id, response.error_code)


def _chosen(
    members: tuple[GroupMember, ...], wanted: str | GroupMember | None, group_id: str
) -> GroupMember:
    name = wanted.member_id if isinstance(wanted, GroupMember) else wanted
    found = [each for each in members if name in (None, each.member_id, each.client_id)]
    if len(found) == 1:
        return found[0]
    known = ", ".join(f"{each.client_id} ({each.member_id})" for each in members) or "none"
    what = "it has no such member" if not found else "several members are meant"
    raise ValueError(f"group {group_id}, member {name}: {what}; its members: {known}")


def _member(kind: str, found: Any) -> GroupMember:
    """A member in a response about a group of this kind; not every kind has every field."""
    instance_id = "group_instance_id" if kind == "classic" else "instance_id"
    return GroupMember(
        member_id=found.member_id,
        client_id=found.client_id,
        instance_id=getattr(found, instance_id, None),
        assignment=_ASSIGNMENT[kind](found),
        topics=tuple(getattr(found, "subscribed_topic_names", None) or ()),
        metadata=bytes(getattr(found, "member_metadata", None) or b""),
    )


def _classic_assignment(found: Any) -> dict[str, list[int]]:
    """Of members of consumer groups; other kinds of groups have their own formats."""
    assignment: dict[str, list[int]] = {}
    for key in sorted(assigned_partitions(found.member_assignment or b"")):
        assignment.setdefault(key.topic, []).append(key.partition)
    return assignment


def _named(found: Any) -> dict[str, list[int]]:
    return {each.topic_name: sorted(each.partitions) for each in found.assignment.topic_partitions}


def _tasks(found: Any) -> dict[str, list[int]]:
    """Members of Streams groups have tasks, by the id of the sub-topology, instead of topics."""
    return {each.subtopology_id: sorted(each.partitions) for each in found.assignment.active_tasks}


#: By the kind of group.
_DESCRIBE: Final[dict[str, Callable[[str], Message]]] = {
    "classic": lambda group_id: DescribeGroupsRequest(groups=[group_id]),
    "consumer": lambda group_id: ConsumerGroupDescribeRequest(group_ids=[group_id]),
    "share": lambda group_id: ShareGroupDescribeRequest(group_ids=[group_id]),
    "streams": lambda group_id: StreamsGroupDescribeRequest(group_ids=[group_id]),
}
_ASSIGNMENT: Final[dict[str, Callable[[Any], dict[str, list[int]]]]] = {
    "classic": _classic_assignment,
    "consumer": _named,
    "share": _named,
    "streams": _tasks,
}
