"""A member of a streams group: its subscription and its tasks.

    STABLE ──tasks to revoke───▶ UNREVOKED_TASKS ──revoked───▶ STABLE
      └───tasks not yet free───▶ UNRELEASED_TASKS ──all free──▶ STABLE

A new target may arrive in any state. Members are values: replay replaces the old one.

Invariants: states follow `TRANSITIONS`; a member has tasks to revoke exactly in UNREVOKED_TASKS;
its epoch never decreases.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, NamedTuple

from moldau.broker.coordinator.group.machine.group import ClientInfo
from moldau.broker.coordinator.group.machine.streams.tasks import (
    NOTHING_ASSIGNED,
    AssignedTasks,
    TaskMap,
    Tasks,
)
from moldau.broker.machine.transitions import Transitions
from moldau.invariant import invariant
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import StreamsGroupDescribeResponse, StreamsGroupHeartbeatRequest

LEFT_EPOCH = -1
_Described = StreamsGroupDescribeResponse


class MemberState(IntEnum):
    """As records number them."""

    STABLE = 1
    UNREVOKED_TASKS = 2
    UNRELEASED_TASKS = 3
    UNKNOWN = 127

    @classmethod
    def of(cls, value: int) -> MemberState:
        # A newer coordinator may have written a state that is not known here.
        return cls(value) if value in cls._value2member_map_ else cls.UNKNOWN


_SETTLED = frozenset({MemberState.STABLE, MemberState.UNRELEASED_TASKS})
_KNOWN = _SETTLED | {MemberState.UNREVOKED_TASKS}
# A new target may arrive in any state. A member in an unknown state has nothing to give up.
TRANSITIONS = Transitions(
    {
        MemberState.STABLE: _KNOWN,
        MemberState.UNREVOKED_TASKS: _KNOWN,
        MemberState.UNRELEASED_TASKS: _KNOWN,
        MemberState.UNKNOWN: _SETTLED,
    }
)


class Endpoint(NamedTuple):
    """Where the application serves queries of its state."""

    host: str
    port: int

    @classmethod
    def of(cls, message: Any | None) -> Endpoint | None:
        return None if message is None else cls(message.host, message.port)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsMember:
    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: tuple[tuple[str, str], ...] = ()
    """Sorted by key, as they are recorded."""
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: AssignedTasks = field(default=NOTHING_ASSIGNED)
    pending_revocation: AssignedTasks = field(default=NOTHING_ASSIGNED)

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == epoch

    def reconciled(
        self,
        state: MemberState,
        member_epoch: int,
        assigned: AssignedTasks,
        pending_revocation: AssignedTasks,
    ) -> StreamsMember:
        """The member after a transition; its present epoch becomes the previous one."""
        TRANSITIONS.check(f"member {self.member_id}", self.state, state)
        invariant(
            member_epoch >= self.member_epoch,
            f"member {self.member_id} would go back from epoch {self.member_epoch}"
            f" to {member_epoch}",
        )
        invariant(
            pending_revocation.is_empty == (state is not MemberState.UNREVOKED_TASKS),
            f"member {self.member_id} would be {state.name} with {pending_revocation} to revoke",
        )
        return replace(
            self,
            state=state,
            member_epoch=member_epoch,
            previous_member_epoch=self.member_epoch,
            assigned=assigned,
            pending_revocation=pending_revocation,
        )

    def updated(self, request: StreamsGroupHeartbeatRequest, client: ClientInfo) -> StreamsMember:
        """The member with what a heartbeat contains; what it leaves out stays."""
        return replace(
            self,
            client_id=client.client_id,
            client_host=client.client_host,
            rack_id=self.rack_id if request.rack_id is None else request.rack_id,
            rebalance_timeout_ms=self.rebalance_timeout_ms
            if request.rebalance_timeout_ms == -1
            else request.rebalance_timeout_ms,
            topology_epoch=self.topology_epoch
            if request.topology is None
            else request.topology.epoch,
            process_id=self.process_id if request.process_id is None else request.process_id,
            user_endpoint=self.user_endpoint
            if request.user_endpoint is None
            else Endpoint.of(request.user_endpoint),
            client_tags=self.client_tags
            if request.client_tags is None
            else _tags(request.client_tags),
        )

    def described(self, target: Tasks | None) -> StreamsGroupDescribeResponse.Member:
        target = target or Tasks()
        return _Described.Member(
            member_id=self.member_id,
            member_epoch=self.member_epoch,
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            topology_epoch=self.topology_epoch,
            process_id=self.process_id,
            user_endpoint=None
            if self.user_endpoint is None
            else _Described.Endpoint(host=self.user_endpoint.host, port=self.user_endpoint.port),
            client_tags=[
                _Described.KeyValue(key=key, value=value) for key, value in self.client_tags
            ],
            assignment=_Described.Assignment(
                active_tasks=_described_tasks(self.assigned.active_tasks),
                standby_tasks=_described_tasks(self.assigned.standby),
                warmup_tasks=_described_tasks(self.assigned.warmup),
            ),
            target_assignment=_Described.Assignment(
                active_tasks=_described_tasks(target.active),
                standby_tasks=_described_tasks(target.standby),
                warmup_tasks=_described_tasks(target.warmup),
            ),
        )


def _tags(
    pairs: list[StreamsGroupHeartbeatRequest.KeyValue],
) -> tuple[tuple[str, str], ...]:
    tags = {pair.key: pair.value for pair in pairs}
    if len(tags) < len(pairs):
        raise ApiError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"each client tag may be given once, unlike {[pair.key for pair in pairs]}",
        )
    return tuple(sorted(tags.items()))


def _described_tasks(tasks: TaskMap) -> list[StreamsGroupDescribeResponse.TaskIds]:
    return [
        _Described.TaskIds(subtopology_id=subtopology, partitions=sorted(partitions))
        for subtopology, partitions in sorted(tasks.items())
    ]
