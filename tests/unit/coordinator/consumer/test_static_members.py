"""Members with an instance id may go away and come back without a rebalance."""

from __future__ import annotations

from typing import Any

from moldau.wire.errors import ErrorCode


def test_a_static_member_comes_back_to_what_it_had(stage: Any) -> None:
    stage.join("a1", instance="a")
    stage.join("m2")
    kept = stage.shown(stage.heartbeat("a1", 2, owned={"t": [0, 1, 2, 3]}, instance="a"))
    stage.heartbeat("a1", 2, owned=kept, instance="a")
    epoch = stage.group().group_epoch

    left = stage.heartbeat("a1", -2, instance="a")
    assert stage.kinds() == ["CurrentMemberAssignment"]
    assert (left.member_id, left.member_epoch) == ("a1", -2)
    gone = stage.group().members["a1"]
    assert {each for topic in gone.assigned.values() for each in topic.values()} == {0}
    assert stage.shown(stage.heartbeat("m2", 3)) != {}, "the other does not get its partitions"

    back = stage.join("a2", instance="a")
    assert stage.kinds() == [
        "-CurrentMemberAssignment",
        "-TargetAssignmentMember",
        "-MemberMetadata",
        "MemberMetadata",
        "TargetAssignmentMember",
        "CurrentMemberAssignment",
        "CurrentMemberAssignment",
    ]
    assert (back.member_epoch, stage.shown(back)) == (3, kept)
    assert stage.group().group_epoch == epoch
    assert stage.group().static_members == {"a": "a2"}


def test_a_static_member_that_stays_away_is_removed(stage: Any) -> None:
    stage.join("a1", instance="a")
    stage.heartbeat("a1", -2, instance="a")
    stage.advance(45_000)
    assert stage.group().is_empty
    assert stage.group().static_members == {}


def test_a_revocation_no_longer_counts_against_one_who_has_left(stage: Any) -> None:
    stage.join("a1", instance="a", timeout_ms=10_000)
    stage.join("m2")
    stage.heartbeat("a1", 2, owned={"t": [0, 1, 2, 3]}, instance="a")
    stage.heartbeat("a1", -2, instance="a")
    given = stage.heartbeat("m2", 3)
    assert len(stage.shown(given)["t"]) == 2, "what it was to give up is free"
    stage.advance(20_000)
    assert "a1" in stage.group().members
    back = stage.join("a2", instance="a")
    assert len(stage.shown(back)["t"]) == 2


def test_coming_back_with_another_subscription_rebalances(stage: Any) -> None:
    stage.topics.create("u", 2)
    stage.join("a1", instance="a")
    stage.heartbeat("a1", -2, instance="a")
    back = stage.join("a2", ["u"], instance="a")
    assert (back.member_epoch, stage.shown(back)) == (3, {"u": [0, 1]})
    assert stage.group().target.keys() == {"a2"}


def test_an_instance_belongs_to_one_member(stage: Any) -> None:
    stage.join("a1", instance="a")
    join = {"owned": {}, "names": ["t"], "timeout_ms": 60_000, "instance": "a"}
    assert stage.refusal("a2", 0, **join) is ErrorCode.UNRELEASED_INSTANCE_ID
    assert stage.refusal("a2", 2, instance="a") is ErrorCode.FENCED_INSTANCE_ID
    assert stage.refusal("a2", -1, instance="a") is ErrorCode.FENCED_INSTANCE_ID
    assert stage.refusal("a2", -2, instance="a") is ErrorCode.FENCED_INSTANCE_ID
    assert stage.heartbeat("a1", 2, instance="a").member_epoch == 2


def test_the_former_id_is_fenced_once_replaced(stage: Any) -> None:
    stage.join("a1", instance="a")
    stage.heartbeat("a1", -2, instance="a")
    stage.join("a2", instance="a")
    assert stage.refusal("a1", 2, instance="a") is ErrorCode.FENCED_INSTANCE_ID
    assert stage.advance(44_999) == [], "the former session's end finds nobody"


def test_a_static_member_leaves_for_good(stage: Any) -> None:
    stage.join("a1", instance="a")
    stage.heartbeat("a1", -1, instance="a")
    assert stage.group().is_empty
    stage.join("a2", instance="a")
    assert stage.group().static_members == {"a": "a2"}
