"""How a member follows the assignment of its coordinator."""

from __future__ import annotations

from uuid import UUID

import pytest

from moldau.client.consumer.membership.machine.epoch_member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    AfterBeat,
    EpochMember,
    EpochState,
    Reconciliation,
)
from moldau.client.topics import TopicPartition
from moldau.wire.errors import ErrorCode as E

A, B = UUID(int=10), UUID(int=11)
NAMES = {A: "a"}
A0, A1, A2 = (TopicPartition("a", index) for index in range(3))


def assigned(*indexes: int) -> dict[UUID, frozenset[int]]:
    return {A: frozenset(indexes)} if indexes else {}


def joining() -> EpochMember:
    member = EpochMember("m")
    member.join()
    return member


def reconciling(*indexes: int) -> EpochMember:
    member = joining()
    member.on_beat_sent()
    member.on_beat_answered(1, assigned(*indexes))
    return member


def steps_of(member: EpochMember, *owned: TopicPartition) -> Reconciliation:
    steps = member.reconciliation(NAMES, owned)
    assert steps is not None
    return steps


def reconcile(member: EpochMember, steps: Reconciliation) -> None:
    member.take(steps)
    member.on_reconciled(steps)


def stable(*indexes: int) -> EpochMember:
    member = reconciling(*indexes)
    reconcile(member, steps_of(member))
    member.on_beat_sent()
    assert member.state is EpochState.STABLE
    return member


def test_joining_taking_and_acknowledging() -> None:
    member = EpochMember("m")
    assert member.is_silent
    member.join()
    assert member.beats_at_once
    assert member.epoch == JOIN_EPOCH
    member.on_beat_sent()
    member.on_beat_answered(1, assigned(0, 1))
    assert member.state is EpochState.RECONCILING
    assert not member.beats_at_once
    steps = steps_of(member)
    assert (steps.revoked, steps.added) == ([], [A0, A1])
    reconcile(member, steps)
    assert member.beats_at_once
    assert member.current.partitions == assigned(0, 1)
    member.on_beat_sent()
    assert member.state is EpochState.STABLE
    assert member.in_group


def test_an_empty_assignment_is_taken_too() -> None:
    member = reconciling()
    steps = steps_of(member)
    assert (steps.revoked, steps.added) == ([], [])
    reconcile(member, steps)
    member.on_beat_sent()
    assert member.state is EpochState.STABLE


def test_what_is_given_up_is_acknowledged_only_afterwards() -> None:
    member = stable(0, 1)
    member.on_beat_answered(2, assigned(1, 2))
    steps = steps_of(member, A0, A1)
    assert (steps.revoked, steps.added) == ([A0], [A2])
    member.on_beat_sent()
    assert member.current.partitions == assigned(0, 1)
    reconcile(member, steps)
    assert member.current.partitions == assigned(1, 2)
    assert member.state is EpochState.ACKNOWLEDGING


def test_a_target_that_changes_meanwhile_is_followed_next() -> None:
    member = stable(0, 1)
    member.on_beat_answered(2, assigned(1))
    steps = steps_of(member, A0, A1)
    member.on_beat_answered(3, assigned(1, 2))
    assert member.still_wanted(steps)
    reconcile(member, steps)
    member.on_beat_sent()
    assert member.state is EpochState.RECONCILING
    assert steps_of(member, A1).added == [A2]


def test_what_is_wanted_back_before_it_was_taken_is_not_taken() -> None:
    member = stable(0)
    member.on_beat_answered(2, assigned(0, 1, 2))
    steps = steps_of(member, A0)
    # While others give something up, the coordinator changes its mind.
    member.on_beat_answered(3, assigned(2))
    assert member.take(steps) == [A2]
    # What it has in hand it still names, though it is to be given up next.
    assert member.current.partitions == assigned(0, 2)
    member.on_reconciled(steps)
    member.on_beat_sent()
    assert steps_of(member, A0, A2).revoked == [A0]


def test_the_same_assignment_again_is_nothing_to_do() -> None:
    member = stable(0)
    member.on_beat_answered(2, assigned(0))
    assert member.state is EpochState.STABLE
    assert member.epoch == 2


def test_the_same_assignment_while_partitions_are_taken_does_not_skip_the_acknowledgement() -> None:
    """A heartbeat that was in flight is answered while the application's listener runs."""
    member = reconciling(0, 1)
    steps = steps_of(member)
    member.take(steps)
    member.on_beat_answered(1, assigned(0, 1))
    member.on_reconciled(steps)
    assert member.state is EpochState.ACKNOWLEDGING
    assert member.beats_at_once
    member.on_beat_sent()
    assert member.state is EpochState.STABLE


def test_topics_without_a_name_are_waited_for() -> None:
    member = stable(0)
    member.on_beat_answered(2, {A: frozenset({0}), B: frozenset({5})})
    assert member.unresolved(NAMES) == {B}
    # What the member has is the known part already: that is said at once.
    assert member.reconciliation(NAMES, [A0]) is None
    assert member.beats_at_once
    member.on_beat_sent()
    assert member.state is EpochState.RECONCILING
    assert member.reconciliation(NAMES, [A0]) is None
    assert not member.beats_at_once
    steps = member.reconciliation({**NAMES, B: "b"}, [A0])
    assert steps is not None
    assert steps.added == [TopicPartition("b", 5)]


def test_a_first_assignment_waits_for_its_names() -> None:
    member = reconciling(0)
    assert member.reconciliation({}, []) is None
    assert member.state is EpochState.RECONCILING


def test_the_name_of_a_deleted_topic_is_remembered_until_it_is_given_up() -> None:
    member = stable(0, 1)
    member.on_beat_answered(2, assigned(0))
    steps = member.reconciliation({}, [A0, A1])
    assert steps is not None
    assert steps.revoked == [A1]


@pytest.mark.parametrize("code", [E.FENCED_MEMBER_EPOCH, E.UNKNOWN_MEMBER_ID])
def test_a_fenced_member_gives_all_up_and_joins_again(code: E) -> None:
    member = stable(0)
    assert member.on_beat_refused(code) is AfterBeat.REJOIN
    assert member.must_release
    assert member.is_silent
    assert not member.in_group
    member.on_released()
    assert member.state is EpochState.JOINING
    assert member.current.partitions == {}


def test_steps_of_an_older_membership_are_dropped() -> None:
    member = reconciling(0)
    steps = steps_of(member)
    member.on_beat_refused(E.FENCED_MEMBER_EPOCH)
    member.on_released()
    member.on_beat_sent()
    member.on_beat_answered(5, assigned(1))
    assert member.state is EpochState.RECONCILING
    assert not member.still_wanted(steps)
    member.on_reconciled(steps)
    assert member.current.partitions == {}


def test_leaving() -> None:
    member = stable(0)
    assert member.prepare_leaving()
    # An assignment that comes now is not taken.
    member.on_beat_answered(2, assigned(0, 1))
    member.leave(LEAVE_EPOCH)
    assert member.beats_at_once
    assert member.epoch == LEAVE_EPOCH
    member.on_beat_sent()
    assert member.state is EpochState.UNSUBSCRIBED
    member.on_beat_answered(3, assigned(0))
    assert member.state is EpochState.UNSUBSCRIBED
    assert not member.prepare_leaving()


def test_who_is_fenced_while_leaving_has_left() -> None:
    member = stable(0)
    member.prepare_leaving()
    assert member.on_beat_refused(E.FENCED_MEMBER_EPOCH) is AfterBeat.IGNORE
    member.leave(LEAVE_EPOCH)
    assert member.state is EpochState.UNSUBSCRIBED


def test_a_late_application_leaves_and_joins_again_at_the_next_poll() -> None:
    member = stable(0)
    member.on_late_application(LEAVE_EPOCH)
    assert member.beats_at_once
    member.on_beat_sent()
    assert member.state is EpochState.STALE
    assert member.must_release
    # The answer to the heartbeat that left.
    member.on_beat_answered(LEAVE_EPOCH, None)
    assert member.on_beat_refused(E.GROUP_ID_NOT_FOUND) is AfterBeat.IGNORE
    member.on_released()
    assert member.state is EpochState.JOINING


@pytest.mark.parametrize(
    ("code", "after", "state"),
    [
        (E.NOT_COORDINATOR, AfterBeat.FIND_COORDINATOR, EpochState.STABLE),
        (E.COORDINATOR_NOT_AVAILABLE, AfterBeat.FIND_COORDINATOR, EpochState.STABLE),
        (E.COORDINATOR_LOAD_IN_PROGRESS, AfterBeat.BACK_OFF, EpochState.STABLE),
        (E.TOPIC_AUTHORIZATION_FAILED, AfterBeat.REPORT, EpochState.STABLE),
        (E.GROUP_AUTHORIZATION_FAILED, AfterBeat.FAIL, EpochState.FATAL),
        (E.UNRELEASED_INSTANCE_ID, AfterBeat.FAIL, EpochState.FATAL),
        (E.FENCED_INSTANCE_ID, AfterBeat.FAIL, EpochState.FATAL),
        (E.UNSUPPORTED_ASSIGNOR, AfterBeat.FAIL, EpochState.FATAL),
        (E.INVALID_REGULAR_EXPRESSION, AfterBeat.FAIL, EpochState.FATAL),
        (E.GROUP_MAX_SIZE_REACHED, AfterBeat.FAIL, EpochState.FATAL),
    ],
)
def test_errors_of_heartbeats(code: E, after: AfterBeat, state: EpochState) -> None:
    member = stable(0)
    assert member.on_beat_refused(code) is after
    assert member.state is state
