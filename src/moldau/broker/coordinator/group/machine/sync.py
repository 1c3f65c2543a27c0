"""SyncGroup, Heartbeat and LeaveGroup of a classic group."""

from __future__ import annotations

from moldau.broker.coordinator.group.machine import rebalance
from moldau.broker.coordinator.group.machine.classic import ClassicGroup, Phase
from moldau.broker.coordinator.group.machine.config import GroupConfig
from moldau.broker.coordinator.group.machine.events import UNKNOWN_MEMBER_ID, AssignmentWritten
from moldau.broker.coordinator.machine.decision import Outbox, Ticket
from moldau.invariant import invariant
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    HeartbeatRequest,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)


def sync(group: ClassicGroup, request: SyncGroupRequest, ticket: Ticket, out: Outbox) -> None:
    """Followers wait for the leader's assignment; the leader's request is written down."""
    member = group.check_member(request.member_id, request.group_instance_id)
    group.check_generation(request.generation_id)
    if _differs(request.protocol_type, group.protocol_type) or _differs(
        request.protocol_name, group.protocol
    ):
        raise ApiError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"group {group.group_id} uses {group.protocol_type}/{group.protocol}",
        )
    if group.phase is Phase.PREPARING_REBALANCE:
        raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS, f"group {group.group_id} is rebalancing")
    rebalance.note_synced(group, member.member_id, out)
    if group.phase is Phase.STABLE:
        out.answer(
            ticket,
            SyncGroupResponse(
                protocol_type=group.protocol_type,
                protocol_name=group.protocol,
                assignment=member.assignment,
            ),
        )
        return
    invariant(group.phase is Phase.COMPLETING_REBALANCE, "an empty group has no members")
    if member.awaiting_sync is not None:
        out.answer(
            member.awaiting_sync, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        )
    member.awaiting_sync = ticket
    if group.leader == member.member_id:
        assignments = dict.fromkeys(group.members, b"")
        for given in request.assignments:
            if given.member_id in assignments:
                assignments[given.member_id] = bytes(given.assignment)
        out.write(
            group.to_stored(assignments).to_record(group.group_id),
            AssignmentWritten(group.group_id, group.generation, assignments),
        )


def on_assignment_written(
    group: ClassicGroup,
    written: AssignmentWritten,
    error: ErrorCode,
    config: GroupConfig,
    out: Outbox,
) -> None:
    if group.phase is not Phase.COMPLETING_REBALANCE or group.generation != written.generation:
        # A member came or went while the record was on its way; the next generation counts.
        return
    if error is not ErrorCode.NONE:
        rebalance.propagate_assignment(group, {}, error, out)
        rebalance.prepare_rebalance(group, config, out)
        return
    rebalance.propagate_assignment(group, written.assignments, ErrorCode.NONE, out)
    group.move_to(Phase.STABLE, out.now_ms)


def heartbeat(group: ClassicGroup, request: HeartbeatRequest, out: Outbox) -> ErrorCode:
    member = group.check_member(request.member_id, request.group_instance_id)
    group.check_generation(request.generation_id)
    rebalance.restart_session(group, member, out)
    if group.phase is Phase.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    # Consumers send heartbeats after their JoinGroup response, so the sync phase is no error.
    return ErrorCode.NONE


def leave(
    group: ClassicGroup, request: LeaveGroupRequest, config: GroupConfig, out: Outbox
) -> LeaveGroupResponse:
    results = []
    size_before = len(group.members)
    for identity in request.members:
        error = _leave_one(group, identity, out)
        results.append(
            LeaveGroupResponse.MemberResponse(
                member_id=identity.member_id,
                group_instance_id=identity.group_instance_id,
                error_code=error,
            )
        )
    if group.phase is Phase.PREPARING_REBALANCE:
        rebalance.complete_join_if_all_joined(group, out)
    elif len(group.members) < size_before:
        rebalance.prepare_rebalance(group, config, out)
    return LeaveGroupResponse(members=results)


def _leave_one(
    group: ClassicGroup, identity: LeaveGroupRequest.MemberIdentity, out: Outbox
) -> ErrorCode:
    member_id = identity.member_id
    if member_id == UNKNOWN_MEMBER_ID:
        # An administrator removes a static member by its instance id.
        instance_id = identity.group_instance_id
        known = None if instance_id is None else group.static_member_id(instance_id)
        if known is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id = known
    elif member_id not in group.pending_joins:
        try:
            group.check_member(member_id, identity.group_instance_id)
        except ApiError as error:
            return error.code
    rebalance.dismiss(group, member_id, out)
    return ErrorCode.NONE


def _differs(given: str | None, current: str | None) -> bool:
    return given is not None and current is not None and given != current
