"""When a classic member joins, beats and leaves, and what errors mean to it."""

from __future__ import annotations

import pytest

from moldau.client.consumer.membership.machine.classic import (
    NO_GENERATION,
    After,
    Beat,
    ClassicMember,
    ClassicSettings,
    Generation,
    MemberState,
)
from moldau.wire.errors import ErrorCode as E

SETTINGS = ClassicSettings(
    session_timeout_ms=45_000, heartbeat_interval_ms=3_000, max_poll_interval_ms=300_000
)
FIRST = Generation(1, "m", "range")


def joined(now_ms: int = 0) -> ClassicMember:
    member = ClassicMember(SETTINGS)
    member.begin_join(now_ms)
    member.on_joined(FIRST, now_ms)
    return member


def stable(now_ms: int = 0) -> ClassicMember:
    member = joined(now_ms)
    member.needs_prepare = False
    assert member.on_synced("range") is None
    return member


def test_the_first_join_learns_its_id_and_tries_again_with_it() -> None:
    member = ClassicMember(SETTINGS)
    sent = member.begin_join(0)
    assert sent == NO_GENERATION
    member.needs_prepare = False
    assert member.on_join_failed(E.MEMBER_ID_REQUIRED, sent, "m") is After.RETRY
    # Nothing was given up in between, so nothing has to be given up again.
    assert not member.needs_prepare
    assert member.begin_join(0) == Generation(member_id="m")
    assert member.reason_to_send == "need to re-join with the given member-id: m"


def test_a_member_that_synced_needs_nothing_more() -> None:
    member = stable()
    assert member.state is MemberState.STABLE
    assert not member.rejoin_needed
    assert not member.rebalancing
    assert not member.lost


@pytest.mark.parametrize(
    ("code", "after", "member_id", "prepare"),
    [
        (E.UNKNOWN_MEMBER_ID, After.RETRY, "", True),
        (E.REBALANCE_IN_PROGRESS, After.RETRY, "m", False),
        (E.COORDINATOR_LOAD_IN_PROGRESS, After.BACK_OFF, "m", False),
        (E.NOT_COORDINATOR, After.FIND_COORDINATOR, "m", False),
        (E.COORDINATOR_NOT_AVAILABLE, After.FIND_COORDINATOR, "m", False),
        (E.FENCED_INSTANCE_ID, After.FAIL, "m", False),
        (E.INCONSISTENT_GROUP_PROTOCOL, After.FAIL, "m", False),
        (E.GROUP_AUTHORIZATION_FAILED, After.FAIL, "m", False),
        (E.GROUP_MAX_SIZE_REACHED, After.FAIL, "m", False),
        (E.INVALID_SESSION_TIMEOUT, After.FAIL, "m", False),
    ],
)
def test_errors_of_join_group(code: E, after: After, member_id: str, prepare: bool) -> None:
    member = stable()
    member.request_rejoin("test")
    sent = member.begin_join(0)
    assert member.on_join_failed(code, sent, "") is after
    assert member.rejoin_needed
    assert member.generation.member_id == member_id
    assert member.needs_prepare is prepare


@pytest.mark.parametrize(
    ("code", "after", "generation"),
    [
        (E.UNKNOWN_MEMBER_ID, After.RETRY, NO_GENERATION),
        (E.ILLEGAL_GENERATION, After.RETRY, Generation(member_id="m")),
        (E.REBALANCE_IN_PROGRESS, After.RETRY, FIRST),
        (E.NOT_COORDINATOR, After.FIND_COORDINATOR, FIRST),
        (E.FENCED_INSTANCE_ID, After.FAIL, FIRST),
        (E.GROUP_AUTHORIZATION_FAILED, After.FAIL, FIRST),
    ],
)
def test_errors_of_sync_group(code: E, after: After, generation: Generation) -> None:
    member = joined()
    assert member.on_sync_failed(code, FIRST) is after
    assert member.generation == generation
    assert member.rejoin_needed


def test_an_answer_after_leaving_is_not_taken() -> None:
    member = ClassicMember(SETTINGS)
    member.begin_join(0)
    member.leave(remain=False)
    assert not member.on_joined(FIRST, 0)
    assert member.generation == NO_GENERATION
    member = joined()
    member.leave(remain=False)
    assert member.on_synced("range") is After.RETRY


def test_another_assignor_than_the_agreed_one_is_refused() -> None:
    assert joined().on_synced("roundrobin") is After.FAIL


def test_heartbeats_come_at_their_interval_while_joined() -> None:
    member = ClassicMember(SETTINGS)
    assert member.next_beat(0, 0) == (Beat.SLEEP, None)
    member.begin_join(0)
    assert member.next_beat(0, 0) == (Beat.SLEEP, None)
    member.on_joined(FIRST, 0)
    assert member.next_beat(1_000, 0) == (Beat.WAIT, 2_000)
    assert member.next_beat(3_000, 0) == (Beat.SEND, 0)
    member.on_beat_sent(3_000)
    assert member.next_beat(3_000, 0) == (Beat.WAIT, 3_000)


def test_a_failed_heartbeat_is_repeated_after_the_pause() -> None:
    member = stable()
    member.on_beat_sent(3_000)
    member.on_beat_failed(3_100, 200)
    assert member.beat_failures == 1
    assert member.next_beat(3_100, 0) == (Beat.WAIT, 200)
    assert member.next_beat(3_300, 0) == (Beat.SEND, 0)
    member.on_beat_answered(E.NONE, member.on_beat_sent(3_300), 3_310)
    assert member.beat_failures == 0


def test_a_session_without_an_answer_looks_for_the_coordinator() -> None:
    member = stable()
    assert member.next_beat(45_000, 0) == (Beat.FIND_COORDINATOR, 0)
    # Once; then it beats again.
    assert member.next_beat(45_000, 0) == (Beat.SEND, 0)


def test_an_application_that_stays_away_leaves() -> None:
    member = stable(298_000)
    assert member.next_beat(298_500, 298_500) == (Beat.WAIT, 1_500)
    assert member.next_beat(300_000, 300_000) == (Beat.LEAVE, 0)
    assert member.leave(remain=False) == "m"
    assert member.lost
    assert member.rejoin_needed
    assert member.needs_prepare
    assert member.next_beat(300_000, 300_000) == (Beat.SLEEP, None)


def test_a_rebalance_is_joined_by_a_stable_member_only() -> None:
    member = stable()
    assert member.on_beat_answered(E.REBALANCE_IN_PROGRESS, FIRST, 1) is None
    assert member.rejoin_needed
    assert member.reason_to_send == "group is already rebalancing"
    # What it owns is still its own.
    assert not member.lost
    member = joined()
    member.rejoin_needed = False
    member.on_beat_answered(E.REBALANCE_IN_PROGRESS, FIRST, 1)
    assert not member.rejoin_needed


@pytest.mark.parametrize(
    ("code", "after", "generation"),
    [
        (E.UNKNOWN_MEMBER_ID, None, NO_GENERATION),
        (E.ILLEGAL_GENERATION, None, Generation(member_id="m")),
        (E.FENCED_INSTANCE_ID, After.FAIL, NO_GENERATION),
    ],
)
def test_a_member_that_the_group_forgot_has_lost_all(
    code: E, after: After | None, generation: Generation
) -> None:
    member = stable()
    assert member.on_beat_answered(code, FIRST, 1) is after
    assert member.generation == generation
    assert member.lost
    assert member.needs_prepare
    assert member.rejoin_needed


@pytest.mark.parametrize("code", [E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION, E.FENCED_INSTANCE_ID])
def test_a_late_answer_to_an_older_generation_changes_nothing(code: E) -> None:
    member = stable()
    member.generation = Generation(2, "m", "range")
    assert member.on_beat_answered(code, FIRST, 1) is None
    member.on_commit_failed(code, 1, "m")
    assert member.generation == Generation(2, "m", "range")
    assert not member.rejoin_needed


@pytest.mark.parametrize(
    ("code", "after"),
    [
        (E.NOT_COORDINATOR, After.FIND_COORDINATOR),
        (E.COORDINATOR_LOAD_IN_PROGRESS, After.BACK_OFF),
        (E.GROUP_AUTHORIZATION_FAILED, After.FAIL),
    ],
)
def test_other_errors_of_heartbeats_keep_the_generation(code: E, after: After) -> None:
    member = stable()
    assert member.on_beat_answered(code, FIRST, 1) is after
    assert member.generation == FIRST
    assert not member.rejoin_needed


def test_a_refused_commit_rejoins() -> None:
    member = stable()
    member.on_commit_failed(E.REBALANCE_IN_PROGRESS, 1, "m")
    assert member.rejoin_needed
    assert not member.lost
    member.on_commit_failed(E.ILLEGAL_GENERATION, 1, "m")
    assert member.lost


def test_who_remains_sends_nothing_but_is_no_member() -> None:
    member = stable()
    assert member.leave(remain=True) is None
    assert member.state is MemberState.UNJOINED
    assert ClassicMember(SETTINGS).leave(remain=False) is None


def test_a_reason_is_cut_to_what_brokers_take() -> None:
    member = stable()
    member.request_rejoin("x" * 300)
    assert len(member.reason_to_send) == 255
