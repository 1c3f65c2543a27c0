"""SyncGroup, Heartbeat, LeaveGroup, sessions."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.wire.errors import ErrorCode


def joined(stage: Any, size: int, **options: Any) -> list[str]:
    """Members in the sync phase of generation 1, the leader first."""
    members = [stage.new_member(**options)[0] for _ in range(size)]
    stage.advance(0)
    assert stage.state() == "CompletingRebalance"
    return members


class TestSync:
    def test_followers_get_their_part_when_the_leader_brings_it(self, stage: Any) -> None:
        leader, follower = joined(stage, 2)
        waiting = stage.sync(follower, 1)
        assert waiting not in stage.answers
        own = stage.sync(leader, 1, {leader: b"L", follower: b"F", "stranger": b"S"})
        assert stage.answers[own].assignment == b"L"
        assert stage.answers[waiting].assignment == b"F"
        assert stage.answers[waiting].protocol_type == "consumer"
        assert stage.answers[waiting].protocol_name == "range"
        assert stage.state() == "Stable"

    def test_a_member_the_leader_forgot_gets_nothing(self, stage: Any) -> None:
        leader, follower = joined(stage, 2)
        waiting = stage.sync(follower, 1)
        stage.sync(leader, 1, {leader: b"L"})
        assert stage.answers[waiting].assignment == b""
        assert stage.answers[waiting].error_code == ErrorCode.NONE

    def test_late_follower_is_answered_at_once(self, stage: Any) -> None:
        leader, follower = joined(stage, 2)
        stage.sync(leader, 1, {follower: b"F"})
        late = stage.sync(follower, 1)
        assert stage.answers[late].assignment == b"F"

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({"member": "stranger", "generation": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
            ({"generation": 2}, ErrorCode.ILLEGAL_GENERATION),
            ({"generation": 1, "protocol": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
            ({"generation": 1, "group": "nowhere"}, ErrorCode.UNKNOWN_MEMBER_ID),
            ({"generation": 1, "instance": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ],
    )
    def test_refused(self, stage: Any, options: dict[str, Any], expected: ErrorCode) -> None:
        leader, _ = joined(stage, 2)
        options.setdefault("member", leader)
        assert stage.answers[stage.sync(**options)] is expected

    def test_during_a_rebalance(self, stage: Any) -> None:
        leader, follower = stage.stable_group(2)
        stage.join(member=leader)
        assert stage.answers[stage.sync(follower, 1)] is ErrorCode.REBALANCE_IN_PROGRESS

    def test_a_newcomer_sends_waiting_members_back_to_join(self, stage: Any) -> None:
        _leader, follower = joined(stage, 2)
        waiting = stage.sync(follower, 1)
        stage.new_member()
        assert stage.answers[waiting].error_code == ErrorCode.REBALANCE_IN_PROGRESS
        assert stage.answers[waiting].assignment == b""

    def test_who_does_not_sync_in_time_is_removed(self, stage: Any) -> None:
        leader, follower = joined(stage, 2, session_ms=200_000, rebalance_ms=30_000)
        stage.sync(leader, 1, {leader: b"L"})
        stage.advance(30_000)
        assert stage.heartbeat(follower, 1) is ErrorCode.UNKNOWN_MEMBER_ID
        assert stage.heartbeat(leader, 1) is ErrorCode.REBALANCE_IN_PROGRESS

    def test_a_leader_that_never_syncs_is_removed(self, stage: Any) -> None:
        leader, follower = joined(stage, 2, session_ms=200_000, rebalance_ms=30_000)
        waiting = stage.sync(follower, 1)
        stage.advance(30_000)
        assert stage.answers[waiting].error_code == ErrorCode.REBALANCE_IN_PROGRESS
        again = stage.join(member=follower)
        assert stage.answers[again].leader == follower
        assert stage.heartbeat(leader, 2) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_an_assignment_that_cannot_be_written_starts_over(self, stage: Any) -> None:
        leader, follower = joined(stage, 2)
        waiting = stage.sync(follower, 1)
        stage.write_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        own = stage.sync(leader, 1, {leader: b"L", follower: b"F"})
        for ticket in (waiting, own):
            assert stage.answers[ticket].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert stage.answers[ticket].assignment == b""
        assert stage.state() == "PreparingRebalance"

    def test_repeated_sync_answers_the_first(self, stage: Any) -> None:
        _, follower = joined(stage, 2)
        first = stage.sync(follower, 1)
        second = stage.sync(follower, 1)
        assert stage.answers[first].error_code == ErrorCode.REBALANCE_IN_PROGRESS
        assert second not in stage.answers


class TestHeartbeat:
    def test_by_phase(self, stage: Any) -> None:
        leader, follower = joined(stage, 2)
        assert stage.heartbeat(leader, 1) is ErrorCode.NONE, "in the sync phase"
        stage.sync(follower, 1)
        stage.sync(leader, 1)
        assert stage.heartbeat(leader, 1) is ErrorCode.NONE
        stage.join(member=leader)
        assert stage.heartbeat(follower, 1) is ErrorCode.REBALANCE_IN_PROGRESS

    def test_wrong_generation_and_member(self, stage: Any) -> None:
        (leader,) = stage.stable_group()
        assert stage.heartbeat(leader, 0) is ErrorCode.ILLEGAL_GENERATION
        assert stage.heartbeat("stranger", 1) is ErrorCode.UNKNOWN_MEMBER_ID
        assert stage.heartbeat(leader, 1, group="nowhere") is ErrorCode.UNKNOWN_MEMBER_ID

    @pytest.mark.parametrize("sign_of_life", ["heartbeat", "commit"])
    def test_keeps_the_session(self, stage: Any, sign_of_life: str) -> None:
        (leader,) = stage.stable_group(session_ms=10_000)
        for _ in range(5):
            stage.advance(9_999)
            if sign_of_life == "heartbeat":
                assert stage.heartbeat(leader, 1) is ErrorCode.NONE
            else:
                assert stage.commit(member=leader, generation=1) is ErrorCode.NONE
        stage.advance(10_000)
        assert stage.state() == "Empty"

    def test_members_that_wait_for_us_are_alive(self, stage: Any) -> None:
        leader, follower = joined(stage, 2, session_ms=6_000, rebalance_ms=60_000)
        waiting = stage.sync(follower, 1)
        for _ in range(4):
            stage.advance(5_000)
            assert stage.heartbeat(leader, 1) is ErrorCode.NONE
        stage.sync(leader, 1, {follower: b"F"})
        assert stage.answers[waiting].assignment == b"F"
        # From its answer on it must be heard of again.
        stage.advance(3_000)
        assert stage.heartbeat(leader, 1) is ErrorCode.NONE
        stage.advance(3_000)
        assert stage.heartbeat(leader, 1) is ErrorCode.REBALANCE_IN_PROGRESS


class TestLeave:
    def test_the_others_rebalance(self, stage: Any) -> None:
        leader, follower = stage.stable_group(2)
        assert stage.leave(leader) == [ErrorCode.NONE]
        assert stage.heartbeat(follower, 1) is ErrorCode.REBALANCE_IN_PROGRESS
        again = stage.join(member=follower)
        assert stage.answers[again].leader == follower

    def test_the_last_one_leaves_the_group_empty(self, stage: Any) -> None:
        (leader,) = stage.stable_group()
        stage.leave(leader)
        assert stage.state() == "Empty"
        stored = stage.shard.stored["g"]
        assert (stored.generation, stored.members, stored.leader) == (2, (), None)
        assert stored.protocol_type == "consumer"
        assert stored.state_timestamp_ms == stage.now_ms

    def test_batched_with_errors_of_their_own(self, stage: Any) -> None:
        stage.join(instance="i0")
        stage.join(instance="i1")
        stage.advance(0)
        pending = stage.answers[stage.join()].member_id
        assert stage.leave(
            ("", "i0"), ("wrong", "i1"), ("", "nobody"), "stranger", ("", None), pending
        ) == [
            ErrorCode.NONE,
            ErrorCode.FENCED_INSTANCE_ID,
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.NONE,
        ]

    def test_only_strangers_disturbs_nobody(self, stage: Any) -> None:
        stage.stable_group(2)
        stage.leave("stranger")
        assert stage.state() == "Stable"

    def test_a_handed_out_id_that_leaves_disturbs_nobody(self, stage: Any) -> None:
        stage.stable_group(2)
        pending = stage.answers[stage.join()].member_id
        assert stage.leave(pending) == [ErrorCode.NONE]
        assert stage.state() == "Stable"

    def test_a_member_that_waits_is_answered(self, stage: Any) -> None:
        leader, follower = joined(stage, 2)
        waiting_sync = stage.sync(follower, 1)
        stage.leave(follower)
        assert stage.answers[waiting_sync].error_code == ErrorCode.UNKNOWN_MEMBER_ID
        _, waiting_join = stage.new_member()
        newcomer = stage.shard.group("g").members
        stage.leave(next(each for each in newcomer if each != leader))
        assert stage.answers[waiting_join].error_code == ErrorCode.UNKNOWN_MEMBER_ID

    def test_the_one_everybody_waited_for(self, stage: Any) -> None:
        leader, follower = stage.stable_group(2)
        waiting = stage.join(member=leader)
        stage.leave(follower)
        assert stage.answers[waiting].generation_id == 2


def test_session_end_rebalances_the_others(stage: Any) -> None:
    leader, follower = stage.stable_group(2, session_ms=10_000)
    stage.advance(6_000)
    assert stage.heartbeat(leader, 1) is ErrorCode.NONE
    stage.advance(4_000)
    assert stage.heartbeat(leader, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    assert stage.heartbeat(follower, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_scale_up_and_down_keeps_one_leader_and_everybody_assigned(stage: Any) -> None:
    members = stage.stable_group(1)
    generation = 1
    for size in (2, 3, 4, 5):
        newcomer, ticket = stage.new_member()
        tickets = {each: stage.join(member=each) for each in members}
        tickets[newcomer] = ticket
        members.append(newcomer)
        generation += 1
        leader = stage.answers[ticket].leader
        assert leader == members[0]
        assert {stage.answers[each].generation_id for each in tickets.values()} == {generation}
        assert len(stage.answers[tickets[leader]].members) == size
        syncs = {each: stage.sync(each, generation) for each in members[1:]}
        stage.sync(leader, generation, {each: each.encode() for each in members})
        for each, sync in syncs.items():
            assert stage.answers[sync].assignment == each.encode()
    while len(members) > 1:
        assert stage.leave(members.pop()) == [ErrorCode.NONE]
        rejoins = [stage.join(member=each) for each in members]
        generation += 1
        assert stage.answers[rejoins[0]].generation_id == generation
        for each in members[1:]:
            stage.sync(each, generation)
        stage.sync(members[0], generation, dict.fromkeys(members, b"x"))
        assert stage.state() == "Stable"


class TestReload:
    def test_a_stable_group_goes_on_as_if_nothing_happened(self, stage: Any) -> None:
        leader, follower = stage.stable_group(2)
        stage.reload()
        assert stage.state() == "Stable"
        assert stage.heartbeat(follower, 1) is ErrorCode.NONE
        assert stage.answers[stage.sync(follower, 1)].assignment == follower.encode()
        assert stage.shard.group("g").leader == leader

    def test_sessions_start_anew(self, stage: Any) -> None:
        stage.stable_group(2, session_ms=10_000)
        stage.advance(9_000)
        stage.reload()
        stage.advance(9_999)
        assert stage.state() == "Stable"
        stage.advance(1)
        assert stage.state() == "Empty"

    def test_an_unfinished_rebalance_falls_back_to_the_last_generation(self, stage: Any) -> None:
        (leader,) = stage.stable_group()
        stage.new_member()
        stage.reload()
        assert stage.state() == "Stable"
        assert stage.heartbeat(leader, 1) is ErrorCode.NONE

    def test_static_members_keep_their_place(self, stage: Any) -> None:
        ticket = stage.join(instance="i0")
        stage.advance(0)
        member = stage.answers[ticket].member_id
        stage.sync(member, 1, {member: b"A"}, instance="i0")
        stage.reload()
        again = stage.answers[stage.join(instance="i0")]
        assert again.generation_id == 1
        assert stage.heartbeat(member, 1, instance="i0") is ErrorCode.FENCED_INSTANCE_ID
        stage.reload()
        assert stage.heartbeat(again.member_id, 1, instance="i0") is ErrorCode.NONE
