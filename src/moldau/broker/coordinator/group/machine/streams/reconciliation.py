"""Moves one member towards its target assignment, one safe step at a time.

First a member revokes what is not in its target, and stays in its epoch until it reports that. Then
it gets what is free. Invariants: a member gets an active task only when no process has it, and no
process gets a second copy of a task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from moldau.broker.coordinator.group.machine.streams.group import TaskOwners
from moldau.broker.coordinator.group.machine.streams.members import MemberState, StreamsMember
from moldau.broker.coordinator.group.machine.streams.tasks import (
    NOTHING_ASSIGNED,
    AssignedTasks,
    TaskMap,
    Tasks,
    normal,
)
from moldau.wire.errors import ApiError, ErrorCode


class Target(NamedTuple):
    epoch: int
    tasks: Tasks


def reconcile(
    member: StreamsMember, target: Target, owned: Tasks | None, owners: TaskOwners
) -> StreamsMember:
    """The member after this heartbeat; `owned` is None if it did not say what it has."""
    match member.state:
        case MemberState.STABLE:
            if member.member_epoch == target.epoch:
                return member
            return _next(member, member.member_epoch, target, owned, owners)
        case MemberState.UNREVOKED_TASKS:
            if owned is None or owned.has_any_of(member.pending_revocation):
                return member
            return _next(member, member.member_epoch + 1, target, owned, owners)
        case MemberState.UNRELEASED_TASKS:
            return _next(member, member.member_epoch, target, owned, owners)
        case MemberState.UNKNOWN:
            # Written by a newer coordinator: start over with a member that has nothing.
            if owned is None or not owned.is_empty:
                raise ApiError(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    f"the state of member {member.member_id} is not known here: give up all tasks "
                    "and join again",
                )
            return _next(member, target.epoch, target, owned, owners)


class _Difference(NamedTuple):
    kept: TaskMap
    to_revoke: TaskMap
    to_assign: TaskMap
    unreleased: bool


def _difference(
    current: Mapping[str, frozenset[int]],
    target: TaskMap,
    is_unreleased: Callable[[tuple[str, int]], bool],
) -> _Difference:
    kept, to_revoke, to_assign = {}, {}, {}
    unreleased = False
    for subtopology in {*current, *target}:
        have = current.get(subtopology, frozenset())
        want = target.get(subtopology, frozenset())
        kept[subtopology] = have & want
        to_revoke[subtopology] = have - want
        missing = want - have
        free = frozenset(each for each in missing if not is_unreleased((subtopology, each)))
        to_assign[subtopology] = free
        unreleased |= free != missing
    return _Difference(normal(kept), normal(to_revoke), normal(to_assign), unreleased)


def _next(
    member: StreamsMember,
    epoch: int,
    target: Target,
    owned: Tasks | None,
    owners: TaskOwners,
) -> StreamsMember:
    def copied(task: tuple[str, int]) -> bool:
        return member.process_id in owners.standby.get(
            task, ()
        ) or member.process_id in owners.warmup.get(task, ())

    def here(task: tuple[str, int]) -> bool:
        return owners.active.get(task) == member.process_id or copied(task)

    def anywhere(task: tuple[str, int]) -> bool:
        return task in owners.active or copied(task)

    current = member.assigned
    active = _difference(current.active_tasks, target.tasks.active, anywhere)
    standby = _difference(current.standby, target.tasks.standby, here)
    warmup = _difference(current.warmup, target.tasks.warmup, here)

    def epochs(tasks: TaskMap) -> dict[str, dict[int, int]]:
        return {
            subtopology: {
                partition: current.active.get(subtopology, {}).get(partition, target.epoch)
                for partition in partitions
            }
            for subtopology, partitions in tasks.items()
        }

    kept = AssignedTasks(epochs(active.kept), standby.kept, warmup.kept)
    to_revoke = AssignedTasks(epochs(active.to_revoke), standby.to_revoke, warmup.to_revoke)
    to_assign = AssignedTasks(epochs(active.to_assign), standby.to_assign, warmup.to_assign)
    unreleased = active.unreleased or standby.unreleased or warmup.unreleased
    if not to_revoke.is_empty and (owned is None or owned.has_any_of(to_revoke)):
        return member.reconciled(MemberState.UNREVOKED_TASKS, epoch, kept, to_revoke)
    state = MemberState.UNRELEASED_TASKS if unreleased else MemberState.STABLE
    return member.reconciled(state, target.epoch, kept.merge(to_assign), NOTHING_ASSIGNED)
