"""JoinGroup: ids, protocols, delays, limits, static members."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.wire.errors import ErrorCode


def error(stage: Any, ticket: int) -> ErrorCode:
    return ErrorCode(stage.answers[ticket].error_code)


def test_a_new_dynamic_member_gets_an_id_and_comes_back_with_it(stage: Any) -> None:
    first = stage.join(client="app")
    answer = stage.answers[first]
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert answer.member_id == "app-id1"
    second = stage.join(member=answer.member_id)
    stage.advance(0)
    joined = stage.answers[second]
    assert joined.error_code == ErrorCode.NONE
    assert (joined.generation_id, joined.leader, joined.member_id) == (1, "app-id1", "app-id1")
    assert (joined.protocol_type, joined.protocol_name) == ("consumer", "range")
    assert [each.member_id for each in joined.members] == ["app-id1"]


def test_before_version_4_there_is_no_round_trip(stage: Any) -> None:
    ticket = stage.join(version=3)
    stage.advance(0)
    assert stage.answers[ticket].member_id == "client-id1"


def test_version_0_uses_the_session_timeout_for_rebalances(Stage: Any) -> None:
    stage = Stage()
    ticket = stage.join(version=0, session_ms=7_000, rebalance_ms=-1)
    stage.advance(0)
    member = stage.answers[ticket].member_id
    stage.sync(member, 1, {member: b"x"})
    assert stage.shard.stored["g"].members[0].rebalance_timeout_ms == 7_000


def test_an_id_nobody_comes_back_with_holds_a_rebalance_up_for_one_session(stage: Any) -> None:
    (leader,) = stage.stable_group()
    stage.join(session_ms=6_000)
    rejoin = stage.join(member=leader)
    assert rejoin not in stage.answers, "waits for the member that was given an id"
    stage.advance(5_999)
    assert rejoin not in stage.answers
    stage.advance(1)
    assert stage.answers[rejoin].generation_id == 2


def test_a_handed_out_id_expires(stage: Any) -> None:
    ticket = stage.join(session_ms=6_000)
    stage.advance(6_000)
    late = stage.join(member=stage.answers[ticket].member_id)
    assert error(stage, late) is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({"member": "stranger"}, ErrorCode.UNKNOWN_MEMBER_ID, id="unknown member"),
        pytest.param(
            {"member": "stranger", "group": "nowhere"},
            ErrorCode.UNKNOWN_MEMBER_ID,
            id="unknown group",
        ),
        pytest.param(
            {"protocol_type": "connect"},
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            id="another protocol type",
        ),
        pytest.param(
            {"protocols": (("sticky", b""),)},
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            id="no common protocol",
        ),
        pytest.param(
            {"protocols": (), "group": "fresh"},
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            id="no protocol at all",
        ),
        pytest.param(
            {"protocol_type": "", "group": "fresh"},
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            id="no protocol type",
        ),
        pytest.param(
            {"member": "stranger", "instance": "i"},
            ErrorCode.UNKNOWN_MEMBER_ID,
            id="unknown static member",
        ),
    ],
)
def test_refused(stage: Any, options: dict[str, Any], expected: ErrorCode) -> None:
    members = stage.stable_group(2)
    ticket = stage.join(**options)
    assert error(stage, ticket) is expected
    assert stage.state() == "Stable", "a refused member disturbs nobody"
    assert all(stage.heartbeat(each, 1) is ErrorCode.NONE for each in members)


def test_protocol_with_most_first_votes_among_common_ones_wins(stage: Any) -> None:
    a, b, c = (("a", b"1"), ("b", b"2"), ("c", b"3"))
    tickets = [
        stage.new_member(protocols=protocols)[1]
        for protocols in [(a, b), (b, a), (c, b, a), (b, a, c)]
    ]
    stage.advance(0)
    assert {stage.answers[each].protocol_name for each in tickets} == {"b"}
    leader = stage.answers[tickets[0]]
    assert [each.metadata for each in leader.members] == [b"2"] * 4
    assert stage.answers[tickets[1]].members == [], "only the leader learns of all"


class TestInitialDelay:
    def test_waits_and_is_extended_by_each_newcomer(self, Stage: Any) -> None:
        stage = Stage(group_initial_rebalance_delay_ms=3_000)
        _, first = stage.new_member(rebalance_ms=60_000)
        stage.advance(2_000)
        _, second = stage.new_member()
        stage.advance(1_500)
        assert first not in stage.answers, "extended at 3 s because of the second member"
        stage.advance(2_500)
        assert stage.answers[first].generation_id == stage.answers[second].generation_id == 1
        assert len(stage.answers[first].members) == 2

    def test_ends_in_time_without_newcomers(self, Stage: Any) -> None:
        stage = Stage(group_initial_rebalance_delay_ms=3_000)
        _, ticket = stage.new_member()
        stage.advance(2_999)
        assert ticket not in stage.answers
        stage.advance(1)
        assert stage.answers[ticket].error_code == ErrorCode.NONE

    def test_is_extended_no_further_than_the_rebalance_timeout(self, Stage: Any) -> None:
        stage = Stage(group_initial_rebalance_delay_ms=3_000)
        _, first = stage.new_member(rebalance_ms=7_000)
        for _ in range(4):
            stage.advance(2_000)
            stage.new_member(rebalance_ms=7_000)
        assert first in stage.answers
        assert len(stage.answers[first].members) == 4

    def test_does_not_apply_when_the_group_has_members(self, Stage: Any) -> None:
        stage = Stage(group_initial_rebalance_delay_ms=3_000)
        (leader,) = stage.stable_group()
        _, ticket = stage.new_member()
        stage.join(member=leader)
        assert stage.answers[ticket].generation_id == 2


class TestRejoin:
    def test_follower_with_unchanged_metadata_just_gets_the_generation(self, stage: Any) -> None:
        leader, follower = stage.stable_group(2)
        ticket = stage.join(member=follower)
        assert stage.answers[ticket].generation_id == 1
        assert stage.answers[ticket].leader == leader
        assert stage.state() == "Stable"

    @pytest.mark.parametrize("changed", [True, False])
    def test_leader_always_rebalances(self, stage: Any, changed: bool, subscription: Any) -> None:
        leader, follower = stage.stable_group(2)
        topics = ("t", "u") if changed else ("t",)
        ticket = stage.join(member=leader, protocols=(("range", subscription(*topics)),))
        assert ticket not in stage.answers
        assert stage.heartbeat(follower, 1) is ErrorCode.REBALANCE_IN_PROGRESS
        stage.join(member=follower)
        assert stage.answers[ticket].generation_id == 2

    def test_follower_with_changed_metadata_rebalances(self, stage: Any, subscription: Any) -> None:
        _, follower = stage.stable_group(2)
        stage.join(member=follower, protocols=(("range", subscription("other")),))
        assert stage.state() == "PreparingRebalance"

    def test_repeated_in_the_sync_phase_repeats_the_answer(self, stage: Any) -> None:
        member, first = stage.new_member()
        stage.advance(0)
        again = stage.join(member=member)
        assert stage.answers[again] == stage.answers[first]
        assert stage.state() == "CompletingRebalance"

    def test_second_request_of_a_waiting_member_answers_the_first(self, stage: Any) -> None:
        leader, _ = stage.stable_group(2)
        first = stage.join(member=leader)
        second = stage.join(member=leader)
        assert error(stage, first) is ErrorCode.REBALANCE_IN_PROGRESS
        assert second not in stage.answers

    def test_who_does_not_rejoin_in_time_is_removed(self, stage: Any) -> None:
        leader, _follower = stage.stable_group(2, rebalance_ms=20_000, session_ms=100_000)
        ticket = stage.join(member=leader, rebalance_ms=20_000, session_ms=100_000)
        stage.advance(19_999)
        assert ticket not in stage.answers
        stage.advance(1)
        assert [each.member_id for each in stage.answers[ticket].members] == [leader]

    def test_a_leader_that_does_not_rejoin_is_replaced(self, stage: Any) -> None:
        leader, follower = stage.stable_group(2, rebalance_ms=20_000, session_ms=100_000)
        ticket = stage.join(
            member=follower,
            protocols=(("range", b"\0\0"),),
            rebalance_ms=20_000,
            session_ms=100_000,
        )
        stage.advance(20_000)
        assert stage.answers[ticket].leader == follower
        assert stage.heartbeat(leader, 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_new_member_waits_in_join_for_a_bounded_time(stage: Any) -> None:
    leader, *_ = stage.stable_group(1, rebalance_ms=3_600_000, session_ms=1_800_000)
    newcomer, ticket = stage.new_member(rebalance_ms=3_600_000)
    stage.advance(300_000)
    assert error(stage, ticket) is ErrorCode.UNKNOWN_MEMBER_ID
    assert stage.heartbeat(newcomer, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert stage.heartbeat(leader, 1) is ErrorCode.REBALANCE_IN_PROGRESS


class TestMaxSize:
    def test_a_full_group_takes_nobody(self, Stage: Any) -> None:
        stage = Stage(group_max_size=2)
        members = stage.stable_group(2)
        ticket = stage.join()
        assert error(stage, ticket) is ErrorCode.GROUP_MAX_SIZE_REACHED
        assert stage.answers[ticket].member_id == ""
        assert stage.heartbeat(members[1], 1) is ErrorCode.NONE

    def test_lowering_the_limit_turns_the_last_to_rejoin_away(self, Stage: Any) -> None:
        stage = Stage()
        members = stage.stable_group(3)
        smaller = Stage(group_max_size=2)
        smaller.written = stage.written
        smaller.reload()
        assert smaller.state() == "PreparingRebalance", "members may commit before some must go"
        tickets = [smaller.join(member=each) for each in members]
        assert error(smaller, tickets[2]) is ErrorCode.GROUP_MAX_SIZE_REACHED
        assert len(smaller.answers[tickets[0]].members) == 2


class TestStaticMembers:
    def start(self, stage: Any, *instances: str, **options: Any) -> list[str]:
        tickets = [stage.join(instance=each, **options) for each in instances]
        stage.advance(0)
        members = [stage.answers[each].member_id for each in tickets]
        for member, instance in list(zip(members, instances, strict=True))[1:]:
            stage.sync(member, 1, instance=instance)
        stage.sync(members[0], 1, {each: each.encode() for each in members}, instance=instances[0])
        assert stage.state() == "Stable"
        return members

    def test_restart_takes_the_place_without_a_rebalance(self, stage: Any) -> None:
        leader, follower = self.start(stage, "i0", "i1")
        ticket = stage.join(instance="i1")
        answer = stage.answers[ticket]
        assert answer.error_code == ErrorCode.NONE
        assert answer.generation_id == 1
        assert answer.member_id != follower
        assert (answer.leader, answer.skip_assignment) == (leader, False)
        assert stage.state() == "Stable"
        # The assignment is the former self's.
        sync = stage.sync(answer.member_id, 1, instance="i1")
        assert stage.answers[sync].assignment == follower.encode()

    def test_the_former_self_is_fenced(self, stage: Any) -> None:
        _, follower = self.start(stage, "i0", "i1")
        stage.join(instance="i1")
        fenced = ErrorCode.FENCED_INSTANCE_ID
        assert stage.heartbeat(follower, 1, instance="i1") is fenced
        assert stage.answers[stage.sync(follower, 1, instance="i1")] is fenced
        assert error(stage, stage.join(member=follower, instance="i1")) is fenced
        assert stage.commit(member=follower, generation=1, instance="i1") is fenced
        assert stage.leave((follower, "i1")) == [fenced]
        assert stage.heartbeat(follower, 1) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_restarted_leader_is_told_to_skip_the_assignment(self, stage: Any) -> None:
        self.start(stage, "i0", "i1")
        answer = stage.answers[stage.join(instance="i0")]
        assert answer.leader == answer.member_id
        assert answer.skip_assignment
        assert len(answer.members) == 2

    def test_restarted_leader_before_version_9_is_shown_its_former_id(self, stage: Any) -> None:
        leader, _ = self.start(stage, "i0", "i1")
        answer = stage.answers[stage.join(instance="i0", version=8)]
        assert answer.leader == leader != answer.member_id
        assert answer.members == []
        assert not answer.skip_assignment

    def test_change_of_protocol_rebalances(self, stage: Any) -> None:
        both = (("range", b"\0\0"), ("sticky", b"\0\0"))
        self.start(stage, "i0", protocols=both)
        ticket = stage.join(instance="i0", protocols=both[::-1])
        assert stage.answers[ticket].generation_id == 2
        assert stage.answers[ticket].protocol_name == "sticky"

    def test_restart_in_the_sync_phase_rebalances(self, stage: Any) -> None:
        first = stage.join(instance="i0")
        second = stage.join(instance="i1")
        stage.advance(0)
        waiting = stage.sync(stage.answers[second].member_id, 1, instance="i1")
        stage.join(instance="i0")
        assert stage.answers[waiting].error_code == ErrorCode.REBALANCE_IN_PROGRESS
        assert stage.state() == "PreparingRebalance"
        assert stage.answers[first].generation_id == 1

    def test_restart_while_waiting_fences_the_first_request(self, stage: Any) -> None:
        self.start(stage, "i0", "i1")
        member = stage.answers[stage.join(instance="i0")].member_id
        waiting = stage.join(member=member, instance="i0")
        stage.join(instance="i0")
        assert error(stage, waiting) is ErrorCode.FENCED_INSTANCE_ID

    def test_silence_within_the_session_keeps_the_place_in_a_rebalance(self, stage: Any) -> None:
        leader, follower = self.start(stage, "i0", "i1", session_ms=60_000, rebalance_ms=10_000)
        ticket = stage.join(member=leader, instance="i0", session_ms=60_000, rebalance_ms=10_000)
        stage.advance(10_000)
        assert [each.member_id for each in stage.answers[ticket].members] == [follower, leader][
            ::-1
        ]

    def test_session_end_removes_it(self, stage: Any) -> None:
        leader, follower = self.start(stage, "i0", "i1", session_ms=10_000)
        stage.advance(9_000)
        stage.heartbeat(leader, 1, instance="i0")
        stage.advance(1_000)
        assert stage.heartbeat(leader, 1, instance="i0") is ErrorCode.REBALANCE_IN_PROGRESS
        assert stage.heartbeat(follower, 1, instance="i1") is ErrorCode.UNKNOWN_MEMBER_ID

    def test_an_unstored_replacement_is_an_error_and_can_be_repeated(self, stage: Any) -> None:
        self.start(stage, "i0", "i1")
        stage.write_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert error(stage, stage.join(instance="i1")) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        stage.write_error = ErrorCode.NONE
        answer = stage.answers[stage.join(instance="i1")]
        assert answer.error_code == ErrorCode.NONE
        assert answer.member_id in {m.member_id for m in stage.shard.stored["g"].members}

    def test_replacement_has_a_session_of_its_own(self, stage: Any) -> None:
        leader, _ = self.start(stage, "i0", "i1", session_ms=10_000)
        stage.advance(9_000)
        stage.heartbeat(leader, 1, instance="i0")
        stage.join(instance="i1", session_ms=10_000)
        stage.advance(9_999)
        assert stage.heartbeat(leader, 1, instance="i0") is ErrorCode.NONE
        stage.advance(1)
        assert stage.heartbeat(leader, 1, instance="i0") is ErrorCode.REBALANCE_IN_PROGRESS

    def test_replacement_with_other_topics_is_known_to_subscribe_to_them(
        self, stage: Any, subscription: Any
    ) -> None:
        self.start(stage, "i0")
        stage.join(instance="i0", protocols=(("range", subscription("new")),))
        assert stage.state() == "Stable"
        assert stage.shard.group("g").topics == {"new"}

    def test_the_new_leader_is_one_that_rejoined(self, stage: Any) -> None:
        options = {"session_ms": 60_000, "rebalance_ms": 10_000}
        *_, last = self.start(stage, "i0", "i1", "i2", **options)
        ticket = stage.join(member=last, instance="i2", protocols=(("range", b"\0\0"),), **options)
        stage.advance(10_000)
        assert stage.answers[ticket].leader == last
        assert len(stage.answers[ticket].members) == 3

    def test_nobody_rejoins_until_sessions_end(self, stage: Any) -> None:
        options = {"session_ms": 60_000, "rebalance_ms": 10_000}
        member, _ = self.start(stage, "i0", "i1", **options)
        stage.leave((member, "i0"))
        stage.advance(55_000)
        assert stage.state() == "PreparingRebalance"
        stage.advance(5_000)
        assert stage.state() == "Empty"
