"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup of classic members in a consumer group.

To such a member the group looks like a classic one in which the coordinator is the leader: the
generation is its member epoch, JoinGroup is answered at once, and SyncGroup brings what it is
assigned now. A heartbeat gets REBALANCE_IN_PROGRESS when the member has to join again: to get a new
target, to confirm what it has revoked, or to get what others have revoked. Invariant: a member that
has to join, or that has joined and has to sync, is removed if it does not do so within its
rebalance timeout.
"""

from __future__ import annotations

from dataclasses import replace
from weakref import WeakKeyDictionary

from moldau.broker.coordinator.group.machine.classic import CONSUMER_PROTOCOL_TYPE
from moldau.broker.coordinator.group.machine.consumer import membership
from moldau.broker.coordinator.group.machine.consumer.group import ConsumerGroup
from moldau.broker.coordinator.group.machine.consumer.groups import ConsumerGroups
from moldau.broker.coordinator.group.machine.consumer.member import (
    JOIN_EPOCH,
    ClassicMemberMetadata,
    ConsumerMember,
    MemberState,
)
from moldau.broker.coordinator.group.machine.consumer.timers import (
    ClassicJoinTimer,
    ClassicSyncTimer,
    MemberSessionTimer,
)
from moldau.broker.coordinator.group.machine.consumer.update import MemberUpdate
from moldau.broker.coordinator.group.machine.events import (
    KNOWN_MEMBER_ID_FROM,
    UNKNOWN_MEMBER_ID,
    Join,
)
from moldau.broker.coordinator.group.machine.members import Protocols, protocols_of
from moldau.broker.coordinator.group.machine.migration import embedded
from moldau.broker.coordinator.group.machine.migration.downgrade import downgrade, may_downgrade
from moldau.broker.coordinator.machine.decision import Outbox, Ticket
from moldau.wire.errors import ApiError, ErrorCode, WireError
from moldau.wire.messages import (
    ConsumerProtocolSubscription,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

_UNCHANGED = -1


class ClassicMembers:
    def __init__(self, section: ConsumerGroups) -> None:
        self._section = section
        self._context = section.context
        # Members that have to join again; the first request to do so counts, not the last.
        self._awaited: WeakKeyDictionary[ConsumerGroup, set[str]] = WeakKeyDictionary()

    # JoinGroup.

    def join(self, group: ConsumerGroup, event: Join, out: Outbox) -> None:
        """For a group that has members. Every path answers the ticket."""
        request = event.request
        member_id = request.member_id or event.fresh_id
        protocols = protocols_of(request)
        try:
            self._check_join(group, event, member_id, protocols)
            if _needs_member_id(event):
                raise ApiError(ErrorCode.MEMBER_ID_REQUIRED)
            subscription = _subscription(member_id, protocols)
        except ApiError as refusal:
            required = refusal.code is ErrorCode.MEMBER_ID_REQUIRED
            out.answer(
                event.ticket,
                JoinGroupResponse(
                    error_code=refusal.code,
                    member_id=member_id if required else UNKNOWN_MEMBER_ID,
                ),
            )
            return
        # Nothing is refused from here on, so what is written stays consistent.
        if not self._join_and_downgrade(group, event, member_id, protocols, subscription, out):
            self._join(group, event, member_id, protocols, subscription, out)

    def _check_join(
        self, group: ConsumerGroup, event: Join, member_id: str, protocols: Protocols
    ) -> None:
        request = event.request
        membership.check_size(group, member_id, self._context.config.group_consumer_max_size)
        if not _supports(group, request.protocol_type, protocols):
            raise ApiError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"Member {member_id}'s protocols are not supported.",
            )
        instance_id = request.group_instance_id
        if instance_id is not None and request.member_id != UNKNOWN_MEMBER_ID:
            membership.existing_static_member(group, member_id, instance_id)

    def _join(
        self,
        group: ConsumerGroup,
        event: Join,
        member_id: str,
        protocols: Protocols,
        subscription: ConsumerProtocolSubscription,
        out: Outbox,
    ) -> None:
        member = _member(group, event, member_id, out)
        updated = _updated(member, event, protocols, subscription)
        update = MemberUpdate(self._context, group, member, updated, out)
        update.write_subscription()
        target_epoch, target = update.update_target()
        owned = embedded.by_topic_id(subscription.owned_partitions, self._context.topics)
        updated = update.reconcile(target_epoch, target, owned)
        self._awaited.get(group, set()).discard(member_id)
        out.cancel(ClassicJoinTimer(group.group_id, member_id))
        _restart_session(group, updated, out)
        out.schedule(ClassicSyncTimer(group.group_id, member_id), updated.rebalance_timeout_ms)
        out.answer(event.ticket, _joined(member_id, updated.member_epoch, protocols))

    def _join_and_downgrade(
        self,
        group: ConsumerGroup,
        event: Join,
        member_id: str,
        protocols: Protocols,
        subscription: ConsumerProtocolSubscription,
        out: Outbox,
    ) -> bool:
        """If the last member of the consumer protocol came back as a classic one."""
        existing = group.static_member(event.request.group_instance_id)
        if existing is None:
            return False
        # Only to see whether the group epoch rises: the group ends, so does what this writes.
        scratch = Outbox(out.now_ms)
        member = _member(group, event, member_id, scratch)
        updated = _updated(member, event, protocols, subscription)
        staying = [
            updated if each.member_id == existing.member_id else each
            for each in group.members.values()
        ]
        if not may_downgrade(staying, self._context.config):
            return False
        update = MemberUpdate(self._context, group, member, updated, scratch)
        update.write_subscription()
        outdated = group.assignment_epoch < update.group_epoch
        downgrade(group, staying, self._context.topics, out, with_rebalance=outdated)
        # An epoch in which it cannot sync lets it take part in the rebalance.
        generation = JOIN_EPOCH if outdated else group.group_epoch
        out.answer(event.ticket, _joined(member_id, generation, protocols))
        return True

    # SyncGroup, Heartbeat, LeaveGroup.

    def sync(
        self, group: ConsumerGroup, request: SyncGroupRequest, ticket: Ticket, out: Outbox
    ) -> None:
        member = _existing(group, request.member_id, request.group_instance_id)
        classic = _check_generation(member, request.generation_id)
        protocol, metadata = classic.supported_protocols[0]
        if (
            request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE)
            or (request.protocol_name or protocol) != protocol
        ):
            raise ApiError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"Member {member.member_id} joined with {CONSUMER_PROTOCOL_TYPE}/{protocol}, not "
                f"{request.protocol_type}/{request.protocol_name}.",
            )
        if (
            group.assignment_epoch > member.member_epoch
            and member.state is not MemberState.UNREVOKED_PARTITIONS
        ):
            # One that has to give up partitions has joined for this target already.
            self._await_join(group, member, out)
            out.answer(ticket, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
            return
        out.cancel(ClassicSyncTimer(group.group_id, member.member_id))
        _restart_session(group, member, out)
        out.answer(
            ticket,
            SyncGroupResponse(
                protocol_type=request.protocol_type,
                protocol_name=request.protocol_name,
                assignment=embedded.write_assignment(
                    member.assigned, embedded.version_of(metadata), self._context.topics
                ),
            ),
        )

    def heartbeat(
        self, group: ConsumerGroup, request: HeartbeatRequest, out: Outbox
    ) -> HeartbeatResponse:
        member = _existing(group, request.member_id, request.group_instance_id)
        _check_generation(member, request.generation_id)
        _restart_session(group, member, out)
        if not _should_rejoin(group, member):
            return HeartbeatResponse()
        self._await_join(group, member, out)
        return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)

    def leave(
        self, group: ConsumerGroup, request: LeaveGroupRequest, out: Outbox
    ) -> LeaveGroupResponse:
        """Also an administrator's removal of members of either protocol."""
        results = []
        leaving: dict[str, ConsumerMember] = {}
        for identity in request.members:
            error = ErrorCode.NONE
            try:
                member = _leaving(group, identity)
                leaving[member.member_id] = member
            except ApiError as refusal:
                error = refusal.code
            results.append(
                LeaveGroupResponse.MemberResponse(
                    member_id=identity.member_id,
                    group_instance_id=identity.group_instance_id,
                    error_code=error,
                )
            )
        self._section.fence(group, tuple(leaving.values()), out)
        return LeaveGroupResponse(members=results)

    def _await_join(self, group: ConsumerGroup, member: ConsumerMember, out: Outbox) -> None:
        awaited = self._awaited.setdefault(group, set())
        if member.member_id in awaited:
            return
        awaited.intersection_update(group.members)
        awaited.add(member.member_id)
        out.schedule(
            ClassicJoinTimer(group.group_id, member.member_id), member.rebalance_timeout_ms
        )


def _supports(group: ConsumerGroup, protocol_type: str, protocols: Protocols) -> bool:
    """Whether all classic members of the group know one of the protocols."""
    if protocol_type != CONSUMER_PROTOCOL_TYPE or not protocols:
        return False
    common = {name for name, _ in protocols}
    for member in group.members.values():
        if member.classic is not None:
            common.intersection_update(name for name, _ in member.classic.supported_protocols)
    return bool(common)


def _needs_member_id(event: Join) -> bool:
    """KIP-394: a dynamic member is given an id first, and joins with it."""
    return (
        event.request.member_id == UNKNOWN_MEMBER_ID
        and event.request.group_instance_id is None
        and event.version >= KNOWN_MEMBER_ID_FROM
    )


def _subscription(member_id: str, protocols: Protocols) -> ConsumerProtocolSubscription:
    try:
        # It is the same in all protocols.
        return embedded.read_subscription(protocols[0][1])
    except WireError as error:
        raise ApiError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"The embedded consumer protocol of member {member_id} is malformed: {error}",
        ) from error


def _member(group: ConsumerGroup, event: Join, member_id: str, out: Outbox) -> ConsumerMember:
    """The member as the group knows it; an empty one, or its former self under the new id."""
    instance_id = event.request.group_instance_id
    if instance_id is not None and event.request.member_id == UNKNOWN_MEMBER_ID:
        return membership.joining_static_member(
            group, member_id, instance_id, classic=True, out=out
        )
    return group.members.get(member_id) or ConsumerMember(member_id)


def _updated(
    member: ConsumerMember,
    event: Join,
    protocols: Protocols,
    subscription: ConsumerProtocolSubscription,
) -> ConsumerMember:
    request = event.request
    timeout_ms = request.rebalance_timeout_ms
    if timeout_ms == _UNCHANGED:
        # Requests of old have one timeout for both.
        timeout_ms = request.session_timeout_ms
    return replace(
        member,
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=timeout_ms,
        subscribed_topic_names=frozenset(subscription.topics),
        subscribed_topic_regex="",
        client_id=event.client_id,
        client_host=event.client_host,
        classic=ClassicMemberMetadata(request.session_timeout_ms, protocols),
    )


def _joined(member_id: str, generation: int, protocols: Protocols) -> JoinGroupResponse:
    """No member is the leader: there is nothing for a client to assign."""
    return JoinGroupResponse(
        member_id=member_id,
        generation_id=generation,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=protocols[0][0],
    )


def _existing(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    if instance_id is None:
        return group.member(member_id)
    return membership.existing_static_member(group, member_id, instance_id)


def _leaving(group: ConsumerGroup, identity: LeaveGroupRequest.MemberIdentity) -> ConsumerMember:
    instance_id = identity.group_instance_id
    if instance_id is not None and identity.member_id == UNKNOWN_MEMBER_ID:
        # An administrator knows the instance only.
        member = group.static_member(instance_id)
        if member is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
        return member
    return _existing(group, identity.member_id, instance_id)


def _check_generation(member: ConsumerMember, generation: int) -> ClassicMemberMetadata:
    if member.classic is None:
        raise ApiError(
            ErrorCode.UNKNOWN_MEMBER_ID,
            f"Member {member.member_id} does not use the classic protocol.",
        )
    if generation != member.member_epoch:
        raise ApiError(
            ErrorCode.ILLEGAL_GENERATION,
            f"The request generation id {generation} is not equal to the member epoch "
            f"{member.member_epoch} of member {member.member_id}.",
        )
    return member.classic


def _should_rejoin(group: ConsumerGroup, member: ConsumerMember) -> bool:
    if member.member_epoch < group.assignment_epoch:
        return True
    if group.assignment_epoch < group.group_epoch and _are_all_classic(group):
        # A new target is due, and heartbeats of these members do not make it: a join does.
        return True
    match member.state:
        case MemberState.UNREVOKED_PARTITIONS:
            return True
        case MemberState.UNRELEASED_PARTITIONS:
            return not _waits_for_others(group, member)
        case _:
            return False


def _are_all_classic(group: ConsumerGroup) -> bool:
    """As in a group that may not become a classic one."""
    return group.classic_member_count == len(group.members)


def _waits_for_others(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether a partition of the member's target still belongs to another member."""
    for topic_id, partitions in group.target.get(member.member_id, {}).items():
        assigned = member.assigned.get(topic_id, {})
        owners = group.owners.get(topic_id, {})
        if any(each not in assigned and each in owners for each in partitions):
            return True
    return False


def _restart_session(group: ConsumerGroup, member: ConsumerMember, out: Outbox) -> None:
    if member.classic is not None:
        out.schedule(
            MemberSessionTimer(group.group_id, member.member_id),
            member.classic.session_timeout_ms,
        )
