"""ConsumerGroupDescribe: what people see of a group."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.wire.errors import ApiError, ErrorCode


def shown(assignment: Any) -> dict[str, list[int]]:
    return {each.topic_name: each.partitions for each in assignment.topic_partitions}


def test_a_group_in_the_middle_of_a_rebalance(stage: Any) -> None:
    stage.join("m1", rack="r", instance="i")
    stage.join("m2", regex="t", assignor="range")
    stage.advance(0)
    kept = stage.shown(stage.heartbeat("m2", stage.group().members["m2"].member_epoch))
    assert kept == {} or kept is None
    asked = stage.shown(stage.heartbeat("m1", 2, owned={"t": [0, 1, 2, 3]}, instance="i"))

    group = stage.section.describe("g")
    assert (group.error_code, group.group_state) == (ErrorCode.NONE, "Reconciling")
    assert (group.group_epoch, group.assignment_epoch) == (3, 3)
    assert group.assignor_name == "range"
    members = {member.member_id: member for member in group.members}
    first, second = members["m1"], members["m2"]
    assert (first.instance_id, first.rack_id, first.member_epoch) == ("i", "r", 2)
    assert first.subscribed_topic_names == ["t"]
    assert (second.subscribed_topic_names, second.subscribed_topic_regex) == ([], "t")
    assert (first.client_id, first.client_host) == ("client", "/127.0.0.1")
    assert (first.member_type, second.member_type) == (1, 1)
    assert shown(first.assignment) == {"t": [0, 1, 2, 3]}, "not yet given up"
    assert shown(first.target_assignment) == asked
    assert shown(second.assignment) == {}
    assert len(shown(second.target_assignment)["t"]) == 2


def test_deleted_topics_are_not_shown(stage: Any) -> None:
    stage.join("m1")
    stage.topics.delete("t")
    (member,) = stage.section.describe("g").members
    assert shown(member.assignment) == shown(member.target_assignment) == {}


@pytest.mark.parametrize(
    ("other", "message"),
    [(None, "Group g not found."), (object(), "Group g is not a consumer group.")],
)
def test_groups_that_are_not_there(stage: Any, other: Any, message: str) -> None:
    with pytest.raises(ApiError) as raised:
        stage.section.describe("g", other)
    assert raised.value.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert raised.value.message == message
