"""The tables of states: random events lead through all of their transitions, and no others."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from random import Random
from typing import Any
from uuid import UUID

import pytest

from moldau.client.consumer.membership.machine import classic, epoch_member
from moldau.client.consumer.membership.machine.classic import (
    ClassicMember,
    ClassicSettings,
    Generation,
    MemberState,
)
from moldau.client.consumer.membership.machine.epoch_member import (
    LEAVE_EPOCH,
    EpochMember,
    EpochState,
)
from moldau.client.topics import TopicPartition
from moldau.invariant import InvariantError
from moldau.times import ElapsedMs
from moldau.wire.errors import ErrorCode

TOPIC = UUID(int=1)
CODES = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.MEMBER_ID_REQUIRED,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
)

Walk = tuple[Any, list[Callable[[], object]]]


def classic_walk(random: Random) -> Walk:
    member = ClassicMember(ClassicSettings(10_000, 3_000, 300_000))
    now_ms = ElapsedMs(0)

    def code() -> ErrorCode:
        return random.choice(CODES)

    return member, [
        lambda: member.begin_join(now_ms),
        lambda: member.on_joined(Generation(random.randrange(9), "m", "range"), now_ms),
        lambda: member.on_join_failed(code(), member.generation, "m"),
        lambda: member.on_synced("range"),
        lambda: member.on_sync_failed(code(), member.generation),
        lambda: member.on_beat_answered(code(), member.generation, now_ms),
        lambda: member.on_commit_failed(code(), *member.generation[:2]),
        lambda: member.on_rebalance_failed("no use"),
        lambda: member.leave(remain=random.random() < 0.5),
    ]


def epoch_walk(random: Random) -> Walk:
    member = EpochMember("m")
    owned: set[TopicPartition] = set()

    def answer() -> None:
        partitions = frozenset(random.sample(range(3), random.randrange(3)))
        member.on_beat_answered(
            random.randrange(-1, 9),
            random.choice([None, {TOPIC: partitions}, member.target.partitions]),
        )

    def reconcile() -> None:
        steps = member.reconciliation({TOPIC: "t"} if random.random() < 0.9 else {}, owned)
        if steps is not None and member.still_wanted(steps):
            owned.difference_update(steps.revoked)
            owned.update(member.take(steps))
            if random.random() < 0.3:
                # A heartbeat is answered while the application takes its partitions over.
                answer()
            member.on_reconciled(steps)

    return member, [
        member.join,
        member.on_released,
        member.prepare_leaving,
        lambda: member.leave(LEAVE_EPOCH),
        lambda: member.on_late_application(LEAVE_EPOCH),
        member.on_left_unsaid,
        member.on_failed,
        *[member.on_beat_sent] * 3,
        *[answer] * 6,
        *[reconcile] * 6,
        *[lambda: member.on_beat_refused(random.choice(CODES))] * 3,
    ]


@pytest.mark.parametrize(
    ("walk", "table"),
    [
        pytest.param(classic_walk, classic.NEXT, id="classic"),
        pytest.param(epoch_walk, epoch_member.NEXT, id="consumer and share"),
    ],
)
def test_events_lead_through_the_whole_table_and_no_further(
    walk: Callable[[Random], Walk], table: dict[Enum, frozenset[Enum]]
) -> None:
    seen: set[tuple[Enum, Enum]] = set()
    for seed in range(200):
        random = Random(seed)
        member, events = walk(random)
        for _ in range(200):
            before = member.state
            random.choice(events)()
            if member.state is not before:
                seen.add((before, member.state))
    assert seen == {(before, after) for before in table for after in table[before]}


def test_every_state_has_a_line() -> None:
    assert set(classic.NEXT) == set(MemberState)
    assert set(epoch_member.NEXT) == set(EpochState)


def test_a_transition_that_is_not_in_the_table_is_a_fault() -> None:
    member = EpochMember("m")
    with pytest.raises(InvariantError, match="went from"):
        member._enter(EpochState.STABLE)
