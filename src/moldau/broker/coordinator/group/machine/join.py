"""JoinGroup: which member may join, with which id, and whether that needs a rebalance.

Invariants: every path ends with the ticket answered or stored with a member of the group; a static
member that returns with an unknown member id replaces the former one, whose id is fenced from then
on.
"""

from __future__ import annotations

from moldau.broker.coordinator.group.machine import rebalance
from moldau.broker.coordinator.group.machine.classic import ClassicGroup, Phase
from moldau.broker.coordinator.group.machine.config import GroupConfig
from moldau.broker.coordinator.group.machine.events import (
    KNOWN_MEMBER_ID_FROM,
    SKIP_ASSIGNMENT_FROM,
    UNKNOWN_MEMBER_ID,
    Join,
    SessionTimer,
    StaticMemberWritten,
)
from moldau.broker.coordinator.group.machine.members import ClassicMember, Protocols, protocols_of
from moldau.broker.coordinator.machine.decision import Outbox
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import JoinGroupResponse


def join(group: ClassicGroup, event: Join, config: GroupConfig, out: Outbox) -> None:
    request = event.request
    protocols = protocols_of(request)
    if not _has_room(group, request.member_id, config):
        rebalance.dismiss(group, request.member_id, out)
        _refuse(event, ErrorCode.GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, out)
        # The one turned away may be the one the others waited for.
        rebalance.complete_join_if_all_joined(group, out)
    elif not group.supports(request.protocol_type, protocols):
        _refuse(event, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id, out)
    elif request.member_id != UNKNOWN_MEMBER_ID:
        _join_known(group, event, protocols, config, out)
    elif request.group_instance_id is not None:
        _join_new_static(group, event, protocols, config, out)
    else:
        _join_new_dynamic(group, event, protocols, config, out)


def _has_room(group: ClassicGroup, member_id: str, config: GroupConfig) -> bool:
    if group.phase is Phase.EMPTY:
        return True
    member = group.members.get(member_id)
    if group.phase is Phase.PREPARING_REBALANCE:
        # Waiting members count, not known ones, so that the last to rejoin are rejected when
        # the limit was lowered below the size of a running group.
        already_in = member is not None and member.awaiting_join is not None
        return already_in or group.awaiting_join_count < config.group_max_size
    return member is not None or len(group.members) < config.group_max_size


def _join_new_dynamic(
    group: ClassicGroup, event: Join, protocols: Protocols, config: GroupConfig, out: Outbox
) -> None:
    member_id = f"{event.client_id}-{event.fresh_id}"
    if event.version < KNOWN_MEMBER_ID_FROM:
        _add(group, event, member_id, protocols, config, out)
        return
    # KIP-394: a client that dies here leaves an id that expires, not a member that
    # everybody waits for.
    group.pending_joins.add(member_id)
    out.schedule(SessionTimer(group.group_id, member_id), event.request.session_timeout_ms)
    _refuse(event, ErrorCode.MEMBER_ID_REQUIRED, member_id, out)


def _join_new_static(
    group: ClassicGroup, event: Join, protocols: Protocols, config: GroupConfig, out: Outbox
) -> None:
    instance_id = event.request.group_instance_id or ""
    member_id = f"{instance_id}-{event.fresh_id}"
    former_id = group.static_member_id(instance_id)
    if former_id is None:
        _add(group, event, member_id, protocols, config, out)
    else:
        _replace_static(group, event, former_id, member_id, protocols, config, out)


def _join_known(
    group: ClassicGroup, event: Join, protocols: Protocols, config: GroupConfig, out: Outbox
) -> None:
    request = event.request
    if request.member_id in group.pending_joins:
        if request.group_instance_id is not None:
            # A static member never is handed an id to come back with.
            _refuse(event, ErrorCode.UNKNOWN_MEMBER_ID, request.member_id, out)
        else:
            _add(group, event, request.member_id, protocols, config, out)
        return
    try:
        member = group.check_member(request.member_id, request.group_instance_id)
    except ApiError as error:
        _refuse(event, error.code, request.member_id, out)
        return
    unchanged = member.protocols == protocols
    if group.phase is Phase.COMPLETING_REBALANCE and unchanged:
        # It missed the answer to its first request.
        out.answer(event.ticket, group.join_response(member.member_id))
    elif group.phase is Phase.STABLE and unchanged and group.leader != member.member_id:
        out.answer(event.ticket, group.join_response(member.member_id))
    else:
        # In Stable the leader rebalances even with unchanged metadata: it has seen
        # something, such as new partitions, that asks for a new assignment.
        _update(group, event, member, protocols, out)
        rebalance.rebalance_or_complete(group, config, out)


def _add(
    group: ClassicGroup,
    event: Join,
    member_id: str,
    protocols: Protocols,
    config: GroupConfig,
    out: Outbox,
) -> None:
    request = event.request
    member = ClassicMember(
        member_id=member_id,
        instance_id=request.group_instance_id,
        client_id=event.client_id,
        client_host=event.client_host,
        rebalance_timeout_ms=_rebalance_timeout_ms(event),
        session_timeout_ms=request.session_timeout_ms,
        protocols=protocols,
        awaiting_join=event.ticket,
        is_new=True,
    )
    group.add(member, request.protocol_type)
    if group.initial_delay is not None:
        group.initial_delay.extended = True
    # A new member cannot send heartbeats before it has its id, and a client that gave up
    # cannot be distinguished from one that waits: so its wait is bounded, and it retries.
    rebalance.restart_session(group, member, out, config.new_member_join_timeout_ms)
    rebalance.rebalance_or_complete(group, config, out)


def _update(
    group: ClassicGroup, event: Join, member: ClassicMember, protocols: Protocols, out: Outbox
) -> None:
    # A second request of the same member: its first connection is gone or confused.
    # Answering the first with a retriable error keeps nothing waiting for ever.
    rebalance.answer_waits(group, member, ErrorCode.REBALANCE_IN_PROGRESS, member.member_id, out)
    group.update(
        member,
        protocols,
        rebalance_timeout_ms=_rebalance_timeout_ms(event),
        session_timeout_ms=event.request.session_timeout_ms,
    )
    group.await_join(member, event.ticket)


def _replace_static(
    group: ClassicGroup,
    event: Join,
    former_id: str,
    member_id: str,
    protocols: Protocols,
    config: GroupConfig,
    out: Outbox,
) -> None:
    former_leader = group.leader
    former = group.members[former_id]
    rebalance.answer_waits(group, former, ErrorCode.FENCED_INSTANCE_ID, former_id, out)
    out.cancel(SessionTimer(group.group_id, former_id))
    member = group.replace_static(former_id, member_id)
    _update(group, event, member, protocols, out)
    rebalance.restart_session(group, member, out)
    if group.phase is Phase.STABLE and group.select_protocol() == group.protocol:
        # The restart changes no assignment: store the new id without a rebalance.
        group.refresh_topics()
        assignments = {each.member_id: each.assignment for each in group.members.values()}
        out.write(
            group.to_stored(assignments).to_record(group.group_id),
            StaticMemberWritten(
                group.group_id,
                member_id,
                event.ticket,
                former_leader,
                event.version >= SKIP_ASSIGNMENT_FROM,
            ),
        )
    else:
        # In CompletingRebalance the leader may be assigning to the former id right now,
        # so only a new generation gives the new id its share.
        rebalance.rebalance_or_complete(group, config, out)


def on_static_member_written(
    group: ClassicGroup, written: StaticMemberWritten, error: ErrorCode, out: Outbox
) -> None:
    member = group.members.get(written.member_id)
    if member is None or member.awaiting_join != written.ticket or group.phase is not Phase.STABLE:
        # A rebalance has begun meanwhile and answers, or has answered, the request.
        return
    group.take_join(member)
    if error is not ErrorCode.NONE:
        # The new id stays: the former owner is fenced either way, and this client
        # comes again with an unknown id, which replaces and stores once more.
        response = JoinGroupResponse(error_code=error, member_id=UNKNOWN_MEMBER_ID)
    elif written.can_skip_assignment:
        is_leader = group.leader == member.member_id
        response = group.join_response(member.member_id, skip_assignment=is_leader)
    else:
        # Naming the former leader id keeps an older client that was the leader from
        # computing an assignment that is not needed.
        response = group.join_response(member.member_id, leader=written.former_leader or "")
    out.answer(written.ticket, response)


def _rebalance_timeout_ms(event: Join) -> int:
    if event.version == 0:
        return event.request.session_timeout_ms
    return event.request.rebalance_timeout_ms


def _refuse(event: Join, error: ErrorCode, member_id: str, out: Outbox) -> None:
    out.answer(event.ticket, JoinGroupResponse(error_code=error, member_id=member_id))
