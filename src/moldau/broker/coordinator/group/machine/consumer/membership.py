"""Membership: joining, rejoining with a new id, leaving, removal.

Epochs fence. A member with an epoch that is not its own is behind or ahead of the coordinator, and
must revoke its partitions and join again; only its previous epoch is still accepted, as the
response with the next one may have been lost.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from moldau.broker.coordinator.group.machine.consumer import records
from moldau.broker.coordinator.group.machine.consumer.context import ConsumerContext
from moldau.broker.coordinator.group.machine.consumer.group import ConsumerGroup
from moldau.broker.coordinator.group.machine.consumer.member import (
    JOIN_EPOCH,
    LEAVE_STATIC_EPOCH,
    Assignment,
    ConsumerMember,
    with_epoch,
    without_epochs,
)
from moldau.broker.coordinator.group.machine.consumer.timers import MEMBER_TIMERS
from moldau.broker.coordinator.machine.decision import Outbox
from moldau.wire.errors import ApiError, ErrorCode


def check_size(group: ConsumerGroup, member_id: str, size_max: int) -> None:
    if len(group.members) >= size_max and member_id not in group.members:
        raise ApiError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {size_max} members.",
        )


def check_epoch(member: ConsumerMember, epoch: int, owned: Assignment | None) -> None:
    known = member.member_epoch
    if epoch in (JOIN_EPOCH, known):
        return
    if epoch < known and epoch == member.previous_member_epoch and _has_all(member, owned):
        # The response with the new epoch was lost, it seems.
        return
    compared = "greater" if epoch > known else "smaller"
    raise ApiError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {compared} member epoch ({epoch}) than the one known "
        f"by the group coordinator ({known}). The member must abandon all its partitions "
        "and rejoin.",
    )


def _has_all(member: ConsumerMember, owned: Assignment | None) -> bool:
    """Whether all the member says it owns is assigned to it."""
    return owned is not None and all(
        topic_id in member.assigned and partitions <= member.assigned[topic_id].keys()
        for topic_id, partitions in owned.items()
    )


def dynamic_member(
    group: ConsumerGroup, member_id: str, epoch: int, owned: Assignment | None
) -> ConsumerMember:
    """The member a heartbeat speaks for; an empty new one if it joins."""
    member = group.members.get(member_id)
    if member is None and epoch == JOIN_EPOCH:
        return ConsumerMember(member_id)
    member = group.member(member_id)
    check_epoch(member, epoch, owned)
    return member


def existing_static_member(
    group: ConsumerGroup, member_id: str, instance_id: str
) -> ConsumerMember:
    """The member with that instance id, if it still has that member id."""
    member = group.static_member(instance_id)
    if member is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise ApiError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{member.member_id}.",
        )
    return member


def joining_static_member(
    group: ConsumerGroup, member_id: str, instance_id: str, *, classic: bool, out: Outbox
) -> ConsumerMember:
    """A static member that joins or comes back; then it takes the place of its former self.

    Between members of the consumer protocol that needs the former to have gone away first.
    """
    existing = group.static_member(instance_id)
    if existing is None:
        return group.members.get(member_id) or ConsumerMember(member_id)
    if (
        not classic
        and not existing.uses_classic_protocol
        and existing.member_epoch != LEAVE_STATIC_EPOCH
    ):
        raise ApiError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group "
            f"because the instance id is owned by {existing.member_id} member.",
        )
    member = replace(
        existing, member_id=member_id, member_epoch=JOIN_EPOCH, previous_member_epoch=JOIN_EPOCH
    )
    group_id = group.group_id
    # The timers of the former id stay: they find no member, unless the write fails.
    out.records += records.member_tombstones(group_id, existing.member_id)
    out.write(records.member_record(group_id, member))
    target = group.target.get(existing.member_id, {})
    out.write(records.target_record(group_id, member_id, target))
    out.write(records.current_record(group_id, member))
    return member


def leave_for_a_while(group: ConsumerGroup, member: ConsumerMember, out: Outbox) -> None:
    """A static member restarts: what it has waits for it until its session ends."""
    gone = replace(
        member,
        member_epoch=LEAVE_STATIC_EPOCH,
        assigned=with_epoch(without_epochs(member.assigned), 0),
        pending_revocation={},
    )
    out.write(records.current_record(group.group_id, gone))


def remove_members(
    group: ConsumerGroup,
    members: Collection[ConsumerMember],
    context: ConsumerContext,
    out: Outbox,
) -> None:
    """Take members out for good; the group epoch rises, so the others get their partitions."""
    group_id = group.group_id
    after = group.subscriptions.copy()
    for member in members:
        out.records += records.member_tombstones(group_id, member.member_id)
        after.replace_member(member, None)
    for regex in dict.fromkeys(member.subscribed_topic_regex for member in members):
        if regex and regex not in after.by_regex:
            out.write(records.regex_tombstone(group_id, regex))
            after.resolve(regex, None)
    metadata_hash = context.metadata_hash(after)
    out.write(records.group_epoch_record(group_id, group.group_epoch + 1, metadata_hash))
    for member in members:
        for timer in MEMBER_TIMERS:
            out.cancel(timer(group_id, member.member_id))
