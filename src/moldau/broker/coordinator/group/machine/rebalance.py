"""The steps of a classic group's rebalance.

Joins, syncs, leaves and timers share these: starting a rebalance, ending its join phase, answering
waiting members. Each function takes the group and an outbox, changes the one and fills the other.
"""

from __future__ import annotations

from moldau.broker.coordinator.group.machine.classic import ClassicGroup, InitialDelay, Phase
from moldau.broker.coordinator.group.machine.config import GroupConfig
from moldau.broker.coordinator.group.machine.events import (
    UNKNOWN_MEMBER_ID,
    JoinTimer,
    SessionTimer,
    SyncTimer,
)
from moldau.broker.coordinator.group.machine.members import ClassicMember
from moldau.broker.coordinator.machine.decision import Outbox
from moldau.invariant import invariant
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import JoinGroupResponse, SyncGroupResponse


def restart_session(
    group: ClassicGroup, member: ClassicMember, out: Outbox, timeout_ms: int | None = None
) -> None:
    out.schedule(
        SessionTimer(group.group_id, member.member_id),
        member.session_timeout_ms if timeout_ms is None else timeout_ms,
    )


def rebalance_or_complete(group: ClassicGroup, config: GroupConfig, out: Outbox) -> None:
    """Something about the members changed: start a rebalance, or see if this ends one."""
    if group.phase is Phase.PREPARING_REBALANCE:
        complete_join_if_all_joined(group, out)
    else:
        prepare_rebalance(group, config, out)


def prepare_rebalance(group: ClassicGroup, config: GroupConfig, out: Outbox) -> None:
    if group.phase is Phase.COMPLETING_REBALANCE:
        # Their assignment will never come: let them join the new generation instead.
        propagate_assignment(group, {}, ErrorCode.REBALANCE_IN_PROGRESS, out)
    group.pending_syncs.clear()
    out.cancel(SyncTimer(group.group_id))
    was_empty = group.phase is Phase.EMPTY
    group.move_to(Phase.PREPARING_REBALANCE, out.now_ms)
    if was_empty:
        # A group that starts up gets more than one member soon: gather them first.
        delay_ms = config.group_initial_rebalance_delay_ms
        group.initial_delay = InitialDelay(delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
        out.schedule(JoinTimer(group.group_id), delay_ms)
    elif group.all_joined:
        complete_join(group, out)
    else:
        out.schedule(JoinTimer(group.group_id), group.rebalance_timeout_ms)


def complete_join_if_all_joined(group: ClassicGroup, out: Outbox) -> None:
    if (
        group.phase is Phase.PREPARING_REBALANCE
        and group.initial_delay is None
        and group.all_joined
    ):
        complete_join(group, out)


def on_join_timer(group: ClassicGroup, config: GroupConfig, out: Outbox) -> None:
    if group.phase is not Phase.PREPARING_REBALANCE:
        return
    initial = group.initial_delay
    if initial is not None and initial.extended and initial.remaining_ms > 0:
        delay_ms = min(config.group_initial_rebalance_delay_ms, initial.remaining_ms)
        group.initial_delay = InitialDelay(
            delay_ms, max(initial.remaining_ms - initial.delay_ms, 0)
        )
        out.schedule(JoinTimer(group.group_id), delay_ms)
        return
    complete_join(group, out)


def complete_join(group: ClassicGroup, out: Outbox) -> None:
    """End the join phase: the members that rejoined are in the next generation."""
    out.cancel(JoinTimer(group.group_id))
    for member in list(group.members.values()):
        # Static members stay: they may be restarting, and their session timeout guards them.
        if member.awaiting_join is None and not member.is_static:
            dismiss(group, member.member_id, out)
    if group.members and not group.elect_joined_leader():
        # Only silent static members are left; wait until they come or their sessions end.
        out.schedule(JoinTimer(group.group_id), group.rebalance_timeout_ms)
        return
    group.start_generation(out.now_ms)
    if group.phase is Phase.EMPTY:
        out.write(group.to_stored({}).to_record(group.group_id))
        return
    for member in group.members.values():
        ticket = group.take_join(member)
        if ticket is not None:
            out.answer(ticket, group.join_response(member.member_id))
        restart_session(group, member, out)
        member.is_new = False
        group.pending_syncs.add(member.member_id)
    out.schedule(SyncTimer(group.group_id), group.rebalance_timeout_ms)


def propagate_assignment(
    group: ClassicGroup, assignments: dict[str, bytes], error: ErrorCode, out: Outbox
) -> None:
    """Give every member its assignment, and answer those that wait in SyncGroup."""
    invariant(group.phase is Phase.COMPLETING_REBALANCE, "assignments belong to a sync phase")
    succeeded = error is ErrorCode.NONE
    for member in group.members.values():
        member.assignment = assignments.get(member.member_id, b"")
        ticket = member.awaiting_sync
        if ticket is None:
            continue
        member.awaiting_sync = None
        out.answer(
            ticket,
            SyncGroupResponse(
                error_code=error,
                protocol_type=group.protocol_type if succeeded else None,
                protocol_name=group.protocol if succeeded else None,
                assignment=member.assignment,
            ),
        )
        # Its session may have expired without effect while it waited, so it starts again.
        restart_session(group, member, out)


def dismiss(group: ClassicGroup, member_id: str, out: Outbox) -> None:
    """Remove a member or a handed-out id; whatever it waits for is answered."""
    out.cancel(SessionTimer(group.group_id, member_id))
    member = group.members.get(member_id)
    if member is not None:
        answer_waits(group, member, ErrorCode.UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER_ID, out)
    group.remove(member_id)


def answer_waits(
    group: ClassicGroup, member: ClassicMember, error: ErrorCode, member_id: str, out: Outbox
) -> None:
    ticket = group.take_join(member)
    if ticket is not None:
        out.answer(ticket, JoinGroupResponse(error_code=error, member_id=member_id))
    ticket = member.awaiting_sync
    if ticket is not None:
        member.awaiting_sync = None
        out.answer(ticket, SyncGroupResponse(error_code=error))


def on_session_timer(group: ClassicGroup, member_id: str, config: GroupConfig, out: Outbox) -> None:
    if member_id in group.pending_joins:
        group.remove(member_id)
        complete_join_if_ready(group, out)
        return
    member = group.members.get(member_id)
    if member is None or member.heartbeat_satisfied:
        return
    dismiss(group, member_id, out)
    if group.phase is Phase.PREPARING_REBALANCE:
        complete_join_if_ready(group, out)
    else:
        prepare_rebalance(group, config, out)


def complete_join_if_ready(group: ClassicGroup, out: Outbox) -> None:
    """As Kafka does on expiry: all that are left have joined, even in the initial delay."""
    if group.phase is Phase.PREPARING_REBALANCE and group.all_joined:
        complete_join(group, out)


def on_sync_timer(group: ClassicGroup, config: GroupConfig, out: Outbox) -> None:
    if group.phase not in (Phase.COMPLETING_REBALANCE, Phase.STABLE) or not group.pending_syncs:
        return
    for member_id in sorted(group.pending_syncs):
        dismiss(group, member_id, out)
    prepare_rebalance(group, config, out)


def note_synced(group: ClassicGroup, member_id: str, out: Outbox) -> None:
    group.pending_syncs.discard(member_id)
    if not group.pending_syncs:
        out.cancel(SyncTimer(group.group_id))
