"""Subscriptions by regular expression: resolved for the group, right after the heartbeat."""

from __future__ import annotations

from typing import Any

from .conftest import CLIENT


def names_of(stage: Any, regex: str) -> set[str]:
    return set(stage.group().subscriptions.resolved[regex].topics)


def test_an_expression_is_resolved_after_the_answer_and_assigned_with_the_next(stage: Any) -> None:
    stage.topics.create("u", 1)
    first = stage.join("m1", regex="t.*")
    assert stage.kinds() == ["MemberMetadata", "CurrentMemberAssignment"]
    assert (first.member_epoch, stage.shown(first)) == (1, {})

    stage.advance(0)
    assert stage.kinds() == ["RegularExpression", "Metadata"]
    assert names_of(stage, "t.*") == {"t"}
    second = stage.heartbeat("m1", 1)
    assert (second.member_epoch, stage.shown(second)) == (2, {"t": [0, 1, 2, 3]})
    assert stage.section.groups["g"].is_subscribed_to("t")
    assert not stage.section.groups["g"].is_subscribed_to("u")


def test_a_second_member_with_the_same_expression_rebalances_at_once(stage: Any) -> None:
    stage.join("m1", regex="t.*")
    stage.advance(0)
    stage.heartbeat("m1", 1)
    stage.join("m2", regex="t.*")
    assert "RegularExpression" not in stage.kinds()
    assert stage.group().group_epoch == 3
    assert stage.group().subscriptions.is_homogeneous(2)


def test_new_topics_are_found_when_ten_seconds_have_passed(stage: Any) -> None:
    stage.join("m1", regex="t.*")
    stage.advance(0)
    stage.heartbeat("m1", 1)
    stage.topics.create("t2", 1)
    stage.advance(10_000)
    stage.heartbeat("m1", 2)
    assert stage.advance(0) == [], "too soon"
    stage.advance(1)
    stage.heartbeat("m1", 2)
    stage.advance(0)
    assert stage.kinds() == ["RegularExpression", "Metadata"]
    response = stage.heartbeat("m1", 2)
    assert stage.shown(response) == {"t": [0, 1, 2, 3], "t2": [0]}


def test_a_clock_that_is_set_back_does_not_delay_the_search_for_new_topics(stage: Any) -> None:
    stage.join("m1", regex="t.*")
    stage.advance(0)
    stage.heartbeat("m1", 1)
    stage.topics.create("t2", 1)
    stage.now_ms -= 3_600_000
    stage.heartbeat("m1", 2)
    stage.advance(0)
    assert stage.kinds() == ["RegularExpression", "Metadata"]


def test_without_new_topics_patterns_are_matched_again_after_the_interval(stage: Any) -> None:
    stage.join("m1", regex="t.*")
    stage.advance(0)
    stage.heartbeat("m1", 1)
    for _ in range(59):
        stage.topics.version += 1
        assert stage.advance(10_000) == []
        stage.heartbeat("m1", 2)
        assert stage.last == []
    stage.advance(10_001)
    stage.heartbeat("m1", 2)
    stage.advance(0)
    assert stage.kinds() == ["RegularExpression"], "matches the same: no new epoch"


def test_after_a_restart_patterns_are_matched_again_whatever_versions_say(stage: Any) -> None:
    stage.join("m1", regex="t.*")
    stage.advance(0)
    stage.heartbeat("m1", 1)
    stage.topics.create("t2", 1)
    stage.topics.version = 1
    stage.reload()
    stage.advance(10_001)
    stage.heartbeat("m1", 2)
    stage.advance(0)
    assert names_of(stage, "t.*") == {"t", "t2"}


def test_a_resolution_that_could_not_be_written_is_made_again(stage: Any, monkeypatch: Any) -> None:
    stage.join("m1", regex="t.*")
    with monkeypatch.context() as failing:
        failing.setattr(stage, "perform", lambda out: None)
        stage.advance(0)
    assert stage.group().subscriptions.resolved == {}
    stage.heartbeat("m1", 1)
    stage.advance(0)
    assert names_of(stage, "t.*") == {"t"}


def test_the_last_subscriber_takes_the_expression_along(stage: Any) -> None:
    stage.join("m1", regex="t.*")
    stage.advance(0)
    stage.heartbeat("m1", 1)
    stage.heartbeat("m1", -1)
    assert stage.kinds() == [
        "-CurrentMemberAssignment",
        "-TargetAssignmentMember",
        "-MemberMetadata",
        "-RegularExpression",
        "Metadata",
    ]
    assert stage.group().subscriptions.topics() == set()


def test_a_change_from_pattern_to_names(stage: Any) -> None:
    stage.topics.create("u", 1)
    stage.join("m1", regex="t.*")
    stage.advance(0)
    stage.heartbeat("m1", 1)
    response = stage.heartbeat("m1", 2, names=["u"], regex="", owned={"t": [0, 1, 2, 3]})
    assert stage.kinds()[:3] == ["MemberMetadata", "-RegularExpression", "Metadata"]
    assert stage.shown(response) == {}
    response = stage.heartbeat("m1", 2, owned={})
    assert (response.member_epoch, stage.shown(response)) == (3, {"u": [0]})


def test_a_new_pattern_takes_the_topics_of_the_old_one_at_once(stage: Any) -> None:
    stage.topics.create("u", 1)
    stage.join("m1", regex="t.*")
    stage.advance(0)
    stage.heartbeat("m1", 1)
    stage.advance(10_001)
    response = stage.heartbeat("m1", 2, regex="u", owned={"t": [0, 1, 2, 3]})
    assert stage.shown(response) == {}
    stage.advance(0)
    assert names_of(stage, "u") == {"u"}
    response = stage.heartbeat("m1", 2, owned={})
    assert stage.shown(response) == {"u": [0]}
    assert stage.group().state_name == "Stable"


def test_names_and_pattern_together(stage: Any) -> None:
    stage.topics.create("u", 1)
    stage.join("m1", ["u"], regex="t")
    stage.advance(0)
    response = stage.heartbeat("m1", 2)
    assert stage.shown(response) == {"t": [0, 1, 2, 3], "u": [0]}


def test_an_expression_matches_only_what_the_member_may_describe(stage: Any) -> None:
    stage.topics.create("t-secret", 1)
    seen = CLIENT._replace(may_describe=lambda name: name != "t-secret")
    stage.join("m1", regex="t.*", client=seen)
    stage.advance(0)
    assert names_of(stage, "t.*") == {"t"}
    response = stage.heartbeat("m1", 1, client=seen)
    assert stage.shown(response) == {"t": [0, 1, 2, 3]}


def test_topics_are_found_and_lost_with_the_permission(stage: Any) -> None:
    denied = {"t"}
    seen = CLIENT._replace(may_describe=lambda name: name not in denied)
    stage.join("m1", regex="t.*", client=seen)
    stage.advance(0)
    assert names_of(stage, "t.*") == set()
    refresh_ms = 600_001
    for changed, found in ((set(), {"t"}), ({"t"}, set())):
        denied = changed
        for _ in range(refresh_ms // 40_000 + 1):
            stage.advance(40_000)
            stage.heartbeat("m1", stage.group().members["m1"].member_epoch, client=seen)
        stage.advance(0)
        assert names_of(stage, "t.*") == found
