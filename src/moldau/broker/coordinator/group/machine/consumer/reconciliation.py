"""One step of a member from the assignment it has to the one it is meant to have.

A member first revokes what is no longer in its target and keeps its epoch meanwhile. When it has
confirmed that, by the partitions it reports as owned, it moves to the epoch of the target and gets
what no other member has; for the rest it waits, in the new epoch.

STABLE -> UNREVOKED_PARTITIONS: the target takes partitions away. UNREVOKED_PARTITIONS -> STABLE or
UNRELEASED_PARTITIONS: the member has revoked them. UNRELEASED_PARTITIONS -> STABLE: the other
members have. A newer target may arrive in any state (`member.TRANSITIONS`).
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from uuid import UUID

from moldau.broker.coordinator.group.machine.consumer.member import (
    Assignment,
    ConsumerMember,
    EpochAssignment,
    MemberState,
)
from moldau.wire.errors import ApiError, ErrorCode

Owners = Mapping[UUID, Mapping[int, str]]


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """What a member is reconciled with."""

    target_epoch: int
    target: Assignment
    owned: Assignment | None
    """What the member says it has; None if it did not say."""
    owners: Owners
    subscribed: Set[UUID]
    """The topics of the member that exist."""
    subscribes_to_nothing: bool
    subscription_changed: bool
    """Topics which the member no longer wants are taken away at once."""


def reconcile(member: ConsumerMember, with_: Reconciliation) -> ConsumerMember:
    """The member after as much of the way as it can go now; itself if that is none."""
    match member.state:
        case MemberState.STABLE:
            if member.member_epoch != with_.target_epoch:
                return _next(member, with_)
            return _drop_unsubscribed(member, with_) if with_.subscription_changed else member
        case MemberState.UNREVOKED_PARTITIONS:
            if not _owns_any(with_.owned, member.pending_revocation):
                return _next(member, with_)
            return _drop_unsubscribed(member, with_) if with_.subscription_changed else member
        case MemberState.UNRELEASED_PARTITIONS:
            return _next(member, with_)
        case MemberState.UNKNOWN:
            # A later release was here before. Only a member without partitions can go on.
            if with_.owned is None or with_.owned:
                raise ApiError(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "The consumer group member is in a unknown state. The member must abandon "
                    "all its partitions and rejoin.",
                )
            return _next(member, with_)


def _owns_any(owned: Assignment | None, partitions: EpochAssignment) -> bool:
    """Whether the member still has any of these; it has, if it does not say."""
    if owned is None:
        return True
    return any(
        not partitions[topic_id].keys().isdisjoint(indexes)
        for topic_id, indexes in owned.items()
        if topic_id in partitions
    )


def _drop_unsubscribed(member: ConsumerMember, with_: Reconciliation) -> ConsumerMember:
    """Take away the topics the member is no longer subscribed to, and nothing else."""
    dropped = {
        topic_id: partitions
        for topic_id, partitions in member.assigned.items()
        if topic_id not in with_.subscribed
    }
    if not dropped and not (with_.subscribes_to_nothing and not member.pending_revocation):
        return member
    kept = {each: member.assigned[each] for each in member.assigned if each not in dropped}
    pending = dict(member.pending_revocation)
    for topic_id, partitions in dropped.items():
        pending[topic_id] = {**pending.get(topic_id, {}), **partitions}
    if pending and _owns_any(with_.owned, pending):
        return member.reconciled(
            MemberState.UNREVOKED_PARTITIONS, member.member_epoch, kept, pending
        )
    # It has given them up already.
    return member.reconciled(member.state, member.member_epoch, kept, member.pending_revocation)


def _next(member: ConsumerMember, with_: Reconciliation) -> ConsumerMember:
    kept: dict[UUID, dict[int, int]] = {}
    revoked: dict[UUID, dict[int, int]] = {}
    added: dict[UUID, list[int]] = {}
    unreleased = False
    for topic_id in dict.fromkeys((*with_.target, *member.assigned)):
        target = with_.target.get(topic_id, frozenset())
        if topic_id not in with_.subscribed:
            target = frozenset()
        current = member.assigned.get(topic_id, {})
        keep = {each: epoch for each, epoch in current.items() if each in target}
        if keep:
            kept[topic_id] = keep
        if len(keep) < len(current):
            revoked[topic_id] = {
                each: epoch for each, epoch in current.items() if each not in target
            }
        if len(keep) < len(target):
            free = _free(member, topic_id, target.difference(keep), with_.owners)
            unreleased = unreleased or len(free) < len(target) - len(keep)
            if free:
                added[topic_id] = free
    if revoked and _owns_any(with_.owned, revoked):
        return member.reconciled(
            MemberState.UNREVOKED_PARTITIONS, member.member_epoch, kept, revoked
        )
    for topic_id, partitions in added.items():
        kept.setdefault(topic_id, {}).update(dict.fromkeys(partitions, with_.target_epoch))
    state = MemberState.UNRELEASED_PARTITIONS if unreleased else MemberState.STABLE
    return member.reconciled(state, with_.target_epoch, kept, {})


def _free(
    member: ConsumerMember, topic_id: UUID, wanted: frozenset[int], owners: Owners
) -> list[int]:
    """Those which no member has, or which the member itself was about to revoke."""
    owned = owners.get(topic_id)
    if not owned:
        return list(wanted)
    own = member.pending_revocation.get(topic_id, {})
    return [each for each in wanted if each not in owned or each in own]
