"""One round of a classic rebalance: JoinGroup, the assignment if this member leads, SyncGroup.

Invariants: a round ends with an assignment's bytes, with `RoundFailed`, which says what to
do next, or with the error of the application's assignor. JoinGroup has a connection of its own: the
coordinator answers it only when all members are there, and commits must not wait for that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from moldau.client.cluster import LANE_COORDINATOR
from moldau.client.consumer.assignors.assignor import Assignor, common_protocol
from moldau.client.consumer.assignors.embedded import write_assignment, write_subscription
from moldau.client.consumer.assignors.interface import RebalanceProtocol, Subscription
from moldau.client.consumer.assignors.resolve import resolve_assignors
from moldau.client.consumer.membership.machine.classic import After, ClassicMember, Generation
from moldau.client.consumer.membership.machine.leader import (
    JoinedMember,
    Snapshot,
    check_cooperative,
    read_members,
    snapshot,
    topics_of,
)
from moldau.client.consumer.membership_interface import GroupHost
from moldau.client.deadline import Deadline
from moldau.client.errors import (
    IllegalStateError,
    InconsistentGroupProtocolError,
    KafkaError,
    code_of,
    error_for,
)
from moldau.client.machine.coordinators import CoordinatorType
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

__all__ = ["ClassicRounds", "RoundFailed"]

_log = logging.getLogger(__name__)

_LANE_JOIN: Final = "join"
PROTOCOL_TYPE: Final = "consumer"
# Beside the time that the coordinator itself waits for members.
_JOIN_LAPSE_MS: Final = 5_000
_INT32_MAX: Final = 2**31 - 1


class RoundFailed(Exception):
    """A round that came to nothing."""

    def __init__(self, after: After, error: KafkaError) -> None:
        super().__init__(str(error))
        self.after = after
        self.error = error


class ClassicRounds:
    """What a member remembers of rounds, and how it goes through one."""

    def __init__(
        self, host: GroupHost, member: ClassicMember, on_joined: Callable[[], None]
    ) -> None:
        values = host.values
        #: Called when heartbeats have to begin.
        self._on_joined = on_joined
        self._host = host
        self._member = member
        self._cluster = host.cluster
        self._clock = host.cluster.clock
        self._metrics = host.metrics
        self._group_id: str = values["group.id"]
        self._instance_id: str | None = values["group.instance.id"]
        self._rack: str | None = values["client.rack"] or None
        self._session_timeout_ms: int = values["session.timeout.ms"]
        self._rebalance_timeout_ms: int = values["max.poll.interval.ms"]
        self._assignors: list[Assignor] = resolve_assignors(host.assignors, values)
        #: None if there is no assignor: then nothing can be subscribed to.
        self.protocol: RebalanceProtocol | None = (
            common_protocol(self._assignors) if self._assignors else None
        )
        self.joined_topics: frozenset[str] | None = None
        self._group_topics: frozenset[str] = frozenset()
        self._assigned_by: Snapshot | None = None
        self._lane = _LANE_JOIN
        self._lane_count = 0

    def abandon(self) -> None:
        """A round was broken off. Its JoinGroup may be held back for long, and with it whatever is
        sent after it: the next one gets another connection."""
        self._lane_count += 1
        self._lane = f"{_LANE_JOIN}-{self._lane_count}"

    def forget(self) -> None:
        """Before another round, or after leaving: no leader, and nothing to watch."""
        self._assigned_by = None
        self._group_topics = frozenset()

    def change(self) -> str | None:
        """Why another round is needed, if it is: another subscription, or other partitions."""
        topics = self._host.subscription.topics
        if self.joined_topics is not None and topics != self.joined_topics:
            return "subscription has changed"
        if self._assigned_by is not None and self._assigned_by != self._snapshot():
            return "cached metadata has changed"
        return None

    def _snapshot(self) -> Snapshot:
        topics = self._group_topics | self._host.subscription.topics
        return snapshot(self._cluster.metadata, topics, racks=self._rack is not None)

    def assignor(self, name: str | None) -> Assignor:
        for each in self._assignors:
            if each.name == name:
                return each
        raise IllegalStateError(f"the coordinator chose assignor {name!r}, which is not configured")

    async def run(self) -> bytes:
        """The assignment of this member."""
        self.joined_topics = self._host.subscription.topics
        sent = self._member.begin_join(self._clock.elapsed_ms())
        response = await self._join(sent)
        code = code_of(response.error_code)
        if code is not ErrorCode.NONE:
            after = self._member.on_join_failed(code, sent, response.member_id)
            raise RoundFailed(after, error_for(code, f"JoinGroup of group {self._group_id}"))
        if response.protocol_type not in (None, PROTOCOL_TYPE):
            raise InconsistentGroupProtocolError(
                f"group {self._group_id} has members of type {response.protocol_type!r}"
            )
        generation = Generation(
            response.generation_id, response.member_id, response.protocol_name or ""
        )
        if not self._member.on_joined(generation, self._clock.elapsed_ms()):
            raise RoundFailed(After.RETRY, IllegalStateError("left the group while joining it"))
        self._on_joined()
        _log.info("group %s: joined as %s", self._group_id, generation)
        if response.leader == response.member_id:
            assignments = await self._lead(response)
        else:
            assignments = {}
            self.forget()
            self._host.want_topics(())
        return await self._sync(generation, assignments)

    async def _join(self, sent: Generation) -> JoinGroupResponse:
        limit_ms = min(self._rebalance_timeout_ms + _JOIN_LAPSE_MS, _INT32_MAX)
        request = JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=self._session_timeout_ms,
            rebalance_timeout_ms=self._rebalance_timeout_ms,
            member_id=sent.member_id,
            group_instance_id=self._instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=self._protocols(sent),
            reason=self._member.reason_to_send,
        )
        started_ms = self._clock.elapsed_ms()
        response: JoinGroupResponse = await self.call(
            request,
            lane=self._lane,
            timeout_ms=max(limit_ms, self._cluster.settings.request_timeout_ms),
        )
        if response.error_code == ErrorCode.NONE:
            self._metrics.joined(self._clock.elapsed_ms() - started_ms)
        return response

    def _protocols(self, sent: Generation) -> list[JoinGroupRequest.JoinGroupRequestProtocol]:
        topics = self._host.subscription.topics
        owned = tuple(self._host.owned_partitions)
        found = []
        for assignor in self._assignors:
            subscription = Subscription(
                tuple(topics),
                assignor.subscription_user_data(topics),
                owned,
                sent.generation_id,
                self._rack,
            )
            found.append(
                JoinGroupRequest.JoinGroupRequestProtocol(
                    name=assignor.name, metadata=write_subscription(subscription)
                )
            )
        return found

    async def _lead(self, response: JoinGroupResponse) -> dict[str, bytes]:
        assignor = self.assignor(response.protocol_name)
        members = read_members(
            JoinedMember(each.member_id, each.group_instance_id, each.metadata)
            for each in response.members
        )
        topics = topics_of(members)
        await self._watch(topics)
        if response.skip_assignment:
            # A static leader that came back: everybody goes on with what they have.
            self._assigned_by = self._snapshot()
            return {}
        assigned = assignor.assign(self._cluster.metadata, members)
        check_cooperative(assignor, self.protocol or RebalanceProtocol.EAGER, members, assigned)
        added = {key.topic for each in assigned.values() for key in each.partitions} - topics
        if added:
            await self._watch(topics | added)
        self._assigned_by = self._snapshot()
        return {member_id: write_assignment(each) for member_id, each in assigned.items()}

    async def _watch(self, topics: frozenset[str]) -> None:
        """Have the topics of the whole group in the metadata."""
        self._group_topics = topics
        self._host.want_topics(topics)
        metadata = self._cluster.metadata
        if any(topic not in metadata.topics and topic not in metadata.errors for topic in topics):
            await self._cluster.refresh(
                deadline=Deadline(self._clock, self._cluster.settings.request_timeout_ms)
            )

    async def _sync(self, generation: Generation, assignments: dict[str, bytes]) -> bytes:
        request = SyncGroupRequest(
            group_id=self._group_id,
            generation_id=generation.generation_id,
            member_id=generation.member_id,
            group_instance_id=self._instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=generation.protocol_name,
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(
                    member_id=member_id, assignment=assignment
                )
                for member_id, assignment in assignments.items()
            ],
        )
        started_ms = self._clock.elapsed_ms()
        response: SyncGroupResponse = await self.call(request, lane=self._lane)
        now_ms = self._clock.elapsed_ms()
        code = code_of(response.error_code)
        if code is not ErrorCode.NONE:
            after = self._member.on_sync_failed(code, generation)
            raise RoundFailed(after, error_for(code, f"SyncGroup of group {self._group_id}"))
        self._metrics.synced(now_ms - started_ms)
        began_ms = self._member.rebalance_began_ms
        outcome = self._member.on_synced(response.protocol_name)
        if outcome is not None:
            raise RoundFailed(
                outcome,
                InconsistentGroupProtocolError(f"{response.protocol_name} was not agreed on"),
            )
        self._metrics.rebalanced(0 if began_ms is None else now_ms - began_ms)
        return response.assignment

    def forget_coordinator(self) -> None:
        """It has moved: the next request looks for it."""
        self._cluster.forget_coordinator(CoordinatorType.GROUP, self._group_id)

    async def call(
        self, request: Message, *, timeout_ms: int | None = None, lane: str = LANE_COORDINATOR
    ) -> Any:
        """The coordinator's response."""
        return await self._cluster.call_coordinator(
            CoordinatorType.GROUP, self._group_id, request, timeout_ms=timeout_ms, lane=lane
        )
