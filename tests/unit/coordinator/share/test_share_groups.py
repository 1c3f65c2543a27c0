"""Membership of share groups: epochs, sessions, assignment, and what must be initialised first."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.broker.coordinator.group.machine.group import CommitCaller
from moldau.broker.coordinator.group.machine.share import admin
from moldau.broker.coordinator.group.machine.share.groups import check_heartbeat
from moldau.broker.coordinator.machine.decision import Outbox
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    AlterShareGroupOffsetsRequest,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

SECOND = 1_000


def refusal(call: Any) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        call()
    return caught.value.code


def partitions(response: ShareGroupHeartbeatResponse) -> list[int]:
    assert response.assignment is not None
    return sorted(
        index for topic in response.assignment.topic_partitions for index in topic.partitions
    )


def settled_member(stage: Any, member: str = "m", *topics: str) -> int:
    """Join, have everything initialised, and get it assigned; the member's epoch."""
    response = stage.join(member, *topics)
    stage.settle()
    stage.advance(5 * SECOND)
    return int(stage.heartbeat(member, response.member_epoch).member_epoch)


# Joining and what follows.


def test_partitions_are_assigned_once_their_state_is_initialised(stage: Any) -> None:
    first = stage.join("m")
    assert (first.member_id, first.member_epoch, first.heartbeat_interval_ms) == ("m", 2, 5_000)
    assert partitions(first) == []
    (action,) = stage.actions
    assert (action.group_id, action.state_epoch) == ("g", 2)
    assert {k: v.partitions for k, v in action.topics.items()} == {
        stage.topics.id("t"): frozenset({0, 1, 2})
    }

    waiting = stage.heartbeat("m", 2)
    assert (waiting.member_epoch, waiting.assignment) == (2, None)
    assert len(stage.actions) == 1, "it was asked for already"

    stage.settle()
    stage.advance(5 * SECOND)
    assigned = stage.heartbeat("m", 2)
    assert assigned.member_epoch == 3
    assert partitions(assigned) == [0, 1, 2]
    assert stage.heartbeat("m", 3).assignment is None


def test_all_members_share_when_there_are_more_than_partitions(stage: Any) -> None:
    stage.join("a")
    stage.settle()
    stage.advance(2 * SECOND)
    epochs = {"a": 2}
    for member in ("b", "c", "d", "e"):
        epochs[member] = stage.join(member).member_epoch
        stage.advance(2 * SECOND)
    for member, epoch in epochs.items():
        stage.heartbeat(member, epoch)
    held = [
        sum(map(len, each.assigned.values())) for each in stage.groups.groups["g"].members.values()
    ]
    assert len(held) == 5
    assert min(held) >= 1


def test_a_new_assignment_waits_for_the_interval(stage: Any) -> None:
    epoch = settled_member(stage)
    stage.join("n")
    # The group is ahead, the target of a moment ago stays for now.
    group = stage.groups.groups["g"]
    assert group.assignment_epoch < group.group_epoch
    assert stage.heartbeat("m", epoch).member_epoch == epoch
    stage.advance(SECOND)
    assert stage.heartbeat("m", epoch).member_epoch == group.group_epoch
    assert group.assignment_epoch == group.group_epoch


def test_a_clock_that_is_set_back_does_not_hold_up_assignments(stage: Any) -> None:
    epoch = settled_member(stage)
    stage.join("n")
    group = stage.groups.groups["g"]
    assert group.assignment_epoch < group.group_epoch
    stage.now_ms -= 600 * SECOND
    assert stage.heartbeat("m", epoch).member_epoch == group.group_epoch


def test_more_partitions_are_noticed_initialised_and_assigned(stage: Any) -> None:
    epoch = settled_member(stage)
    stage.topics.create("t", 5)
    stage.advance(5 * SECOND)
    response = stage.heartbeat("m", epoch)
    assert response.member_epoch == epoch + 1
    (action,) = stage.actions
    assert [sorted(each.partitions) for each in action.topics.values()] == [[3, 4]]
    stage.settle()
    stage.advance(5 * SECOND)
    assert partitions(stage.heartbeat("m", response.member_epoch)) == [0, 1, 2, 3, 4]


def test_other_topics_that_change_move_nothing(stage: Any) -> None:
    epoch = settled_member(stage)
    stage.topics.create("other", 9)
    stage.advance(5 * SECOND)
    before = len(stage.written)
    assert stage.heartbeat("m", epoch).member_epoch == epoch
    assert len(stage.written) == before


def test_a_subscription_can_be_changed(GroupStage: Any, FakeTopics: Any) -> None:
    stage = GroupStage(topics=FakeTopics(t=1, u=2))
    epoch = settled_member(stage, "m", "t")
    stage.advance(5 * SECOND)
    response = stage.heartbeat("m", epoch, ["u"])
    assert partitions(response) == [], "what is no longer wanted goes at once"
    stage.settle()
    stage.advance(5 * SECOND)
    response = stage.heartbeat("m", response.member_epoch)
    assert [topic.topic_id for topic in response.assignment.topic_partitions] == [
        stage.topics.id("u")
    ]


def test_a_subscribed_topic_may_come_later(GroupStage: Any, FakeTopics: Any) -> None:
    stage = GroupStage(topics=FakeTopics())
    epoch = stage.join("m", "later").member_epoch
    assert stage.actions == []
    stage.topics.create("later", 1)
    stage.advance(5 * SECOND)
    epoch = stage.heartbeat("m", epoch).member_epoch
    stage.settle()
    stage.advance(5 * SECOND)
    assert partitions(stage.heartbeat("m", epoch)) == [0]


def test_what_could_not_be_initialised_is_tried_again(stage: Any) -> None:
    epoch = stage.join("m").member_epoch
    stage.settle(fail=True)
    stage.advance(5 * SECOND)
    stage.heartbeat("m", epoch)
    assert len(stage.actions) == 1


def test_an_initialisation_nobody_answers_is_asked_for_again(stage: Any) -> None:
    epoch = stage.join("m").member_epoch
    stage.actions.clear()
    for _ in range(5):
        stage.advance(5 * SECOND)
        stage.heartbeat("m", epoch)
    assert stage.actions == []
    stage.advance(5 * SECOND)
    stage.heartbeat("m", epoch)
    assert len(stage.actions) == 1


def test_a_clock_that_is_set_back_does_not_delay_an_initialisation(stage: Any) -> None:
    epoch = stage.join("m").member_epoch
    stage.actions.clear()
    stage.now_ms -= 3_600 * SECOND
    stage.heartbeat("m", epoch)
    assert len(stage.actions) == 1


def test_after_a_reload_unfinished_initialisations_are_taken_up(stage: Any) -> None:
    epoch = stage.join("m").member_epoch
    stage.actions.clear()
    stage.reload()
    stage.heartbeat("m", epoch)
    assert len(stage.actions) == 1


# Leaving.


def test_a_member_that_leaves_makes_room(stage: Any) -> None:
    settled_member(stage)
    stage.join("n")
    left = stage.heartbeat("m", -1)
    assert (left.member_id, left.member_epoch) == ("m", -1)
    group = stage.groups.groups["g"]
    assert list(group.members) == ["n"]
    assert "m" not in group.target
    stage.advance(5 * SECOND)
    assert partitions(stage.heartbeat("n", group.members["n"].member_epoch)) == [0, 1, 2]


def test_a_silent_member_is_removed_after_its_session(stage: Any) -> None:
    epoch = settled_member(stage)
    stage.advance(44 * SECOND)
    stage.heartbeat("m", epoch)
    stage.advance(44 * SECOND)
    assert "m" in stage.groups.groups["g"].members
    stage.advance(SECOND)
    group = stage.groups.groups["g"]
    assert (group.members, group.state_name) == ({}, "Empty")
    assert refusal(lambda: stage.heartbeat("m", epoch)) is ErrorCode.UNKNOWN_MEMBER_ID


def test_sessions_are_counted_anew_after_a_reload(stage: Any) -> None:
    stage.join("m")
    stage.advance(40 * SECOND)
    stage.reload()
    stage.advance(44 * SECOND)
    assert "m" in stage.groups.groups["g"].members
    stage.advance(SECOND)
    assert stage.groups.groups["g"].is_empty


def test_the_settings_of_the_group_decide(stage: Any) -> None:
    stage.settings.values["share.session.timeout.ms"] = 60_000
    stage.settings.values["share.heartbeat.interval.ms"] = 15_000
    assert stage.join("m").heartbeat_interval_ms == 15_000
    stage.advance(59 * SECOND)
    assert "m" in stage.groups.groups["g"].members
    stage.advance(SECOND)
    assert stage.groups.groups["g"].is_empty


# Refusals.


def test_epochs_other_than_the_last_two_are_fenced(stage: Any) -> None:
    epoch = settled_member(stage)
    assert epoch == 3
    assert stage.heartbeat("m", 2).member_epoch == 3, "the answer with epoch 3 may be lost"
    for wrong in (1, 4):
        assert refusal(lambda wrong=wrong: stage.heartbeat("m", wrong)) is (
            ErrorCode.FENCED_MEMBER_EPOCH
        )
    assert partitions(stage.join("m")) == [0, 1, 2], "whoever joins anew may always"


def test_unknown_groups_and_members(stage: Any) -> None:
    for epoch in (1, -1):
        call = lambda epoch=epoch: stage.heartbeat("m", epoch)  # noqa: E731
        assert refusal(call) is ErrorCode.GROUP_ID_NOT_FOUND
    stage.join("m")
    for epoch in (1, -1):
        call = lambda epoch=epoch: stage.heartbeat("x", epoch)  # noqa: E731
        assert refusal(call) is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_assignor_may_be_given_as_a_class_name(GroupStage: Any) -> None:
    name = "org.apache.kafka.coordinator.group.assignor.SimpleAssignor"
    stage = GroupStage(group_share_assignors=(name,))
    stage.join("a")
    assert stage.groups.describe("g").assignor_name == "simple"


def test_a_full_group_takes_nobody_in(GroupStage: Any) -> None:
    stage = GroupStage(group_share_max_size=2)
    stage.join("a")
    stage.join("b")
    assert refusal(lambda: stage.join("c")) is ErrorCode.GROUP_MAX_SIZE_REACHED
    stage.join("a")
    stage.heartbeat("b", -1)
    stage.join("c")


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"member_id": ""}, id="no member id"),
        pytest.param({"member_id": "x" * 37}, id="a long member id"),
        pytest.param({"group_id": " "}, id="no group id"),
        pytest.param({"rack_id": ""}, id="an empty rack"),
        pytest.param({"subscribed_topic_names": None}, id="joins without topics"),
        pytest.param({"subscribed_topic_names": []}, id="joins with no topics"),
        pytest.param({"member_epoch": -2}, id="no such epoch"),
    ],
)
def test_requests_that_are_not_well_formed(fields: dict[str, Any]) -> None:
    good = {"group_id": "g", "member_id": "m", "member_epoch": 0, "subscribed_topic_names": ["t"]}
    check_heartbeat(ShareGroupHeartbeatRequest(**good))  # type: ignore[arg-type]
    request = ShareGroupHeartbeatRequest(**(good | fields))  # type: ignore[arg-type]
    assert refusal(lambda: check_heartbeat(request)) is ErrorCode.INVALID_REQUEST


def test_a_share_group_has_no_committed_offsets(stage: Any) -> None:
    stage.join("m")
    group = stage.groups.groups["g"]
    caller = CommitCaller("m", None, 2, transactional=False, version=9)
    for call in (
        lambda: group.check_commit(caller),
        group.check_delete_offsets,
    ):
        assert refusal(call) is ErrorCode.GROUP_ID_NOT_FOUND
    assert refusal(group.check_delete) is ErrorCode.NON_EMPTY_GROUP
    assert group.is_subscribed_to("t")
    assert not group.is_subscribed_to("u")


# Describing, deleting.


def test_describe(stage: Any) -> None:
    epoch = settled_member(stage)
    described = stage.groups.describe("g")
    assert described.error_code == ErrorCode.NONE
    assert (described.group_state, described.assignor_name) == ("Stable", "simple")
    assert (described.group_epoch, described.assignment_epoch) == (epoch, epoch)
    (member,) = described.members
    assert (member.member_id, member.client_id, member.client_host) == ("m", "client", "/127.0.0.1")
    assert member.subscribed_topic_names == ["t"]
    (topic,) = member.assignment.topic_partitions
    assert (topic.topic_name, topic.partitions) == ("t", [0, 1, 2])
    stage.topics.delete("t")
    assert stage.groups.describe("g").members[0].assignment.topic_partitions == []
    assert stage.groups.describe("x").error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_deleted_topics_are_forgotten(stage: Any) -> None:
    epoch = settled_member(stage)
    topic_id = stage.topics.delete("t")
    out = Outbox(stage.now_ms)
    stage.groups.forget_topics({topic_id}, out)
    stage.perform(out)
    states = stage.groups.groups["g"].states
    assert (states.initialized, states.initializing, states.deleting) == ({}, {}, {})
    stage.advance(5 * SECOND)
    assert partitions(stage.heartbeat("m", epoch)) == []
    # A later topic of that name starts afresh.
    stage.topics.create("t", 1)
    stage.advance(5 * SECOND)
    stage.heartbeat("m", epoch + 1)
    assert stage.actions[-1].topics.keys() == {stage.topics.id("t")}


def test_a_deleted_topic_that_is_still_on_record_does_not_keep_the_group_busy(stage: Any) -> None:
    epoch = settled_member(stage)
    stage.topics.delete("t")
    stage.advance(5 * SECOND)
    epoch = stage.heartbeat("m", epoch).member_epoch
    stage.advance(5 * SECOND)
    assert stage.heartbeat("m", epoch).member_epoch == epoch


def test_a_group_is_gone_with_its_tombstones(stage: Any) -> None:
    settled_member(stage)
    stage.heartbeat("m", -1)
    out = Outbox(stage.now_ms)
    out.records += stage.groups.groups["g"].tombstones()
    stage.perform(out)
    assert stage.groups.groups == stage.replayed().groups == {}


def alteration(**offsets: dict[int, int]) -> AlterShareGroupOffsetsRequest:
    request = AlterShareGroupOffsetsRequest
    return request(
        group_id="g",
        topics=[
            request.AlterShareGroupOffsetsRequestTopic(
                topic_name=name,
                partitions=[
                    request.AlterShareGroupOffsetsRequestPartition(
                        partition_index=index, start_offset=offset
                    )
                    for index, offset in each.items()
                ],
            )
            for name, each in offsets.items()
        ],
    )


def test_altering_makes_a_group_and_names_what_does_not_exist(stage: Any) -> None:
    out = Outbox(stage.now_ms)
    request = alteration(t={0: 7, 3: 1}, missing={0: 1})
    found = admin.begin_alteration(stage.groups, stage.topics, request, out)
    stage.perform(out)
    topic_id = stage.topics.id("t")
    assert (found.state_epoch, found.start_offsets) == (1, {topic_id: {0: 7}})
    assert [
        (topic.topic_name, partition.partition_index, ErrorCode(partition.error_code))
        for topic in found.response
        for partition in topic.partitions
    ] == [
        ("t", 0, ErrorCode.NONE),
        ("t", 3, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("missing", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert stage.groups.groups["g"].state_name == "Empty"


def test_offsets_of_a_group_with_members_are_left_alone(stage: Any) -> None:
    settled_member(stage)
    groups, topics, out = stage.groups, stage.topics, Outbox(stage.now_ms)
    for call in (
        lambda: admin.begin_alteration(groups, topics, alteration(t={0: 7}), out),
        lambda: admin.begin_offset_deletion(groups, topics, "g", ["t"], out),
        lambda: admin.begin_group_deletion(groups, topics, "g", out),
    ):
        assert refusal(call) is ErrorCode.NON_EMPTY_GROUP
    assert out.records == []


def test_an_unfinished_deletion_can_be_asked_for_again(stage: Any) -> None:
    settled_member(stage)
    stage.heartbeat("m", -1)
    for _ in range(2):
        out = Outbox(stage.now_ms)
        doomed = admin.begin_group_deletion(stage.groups, stage.topics, "g", out)
        stage.perform(out)
        assert {key: value.partitions for key, value in doomed.items()} == {
            stage.topics.id("t"): frozenset({0, 1, 2})
        }
    states = stage.groups.groups["g"].states
    assert (states.initialized, dict(states.deleting)) == ({}, {stage.topics.id("t"): "t"})


# Reload.

steps = st.lists(
    st.one_of(
        st.tuples(st.just("join"), st.sampled_from("abc"), st.sampled_from([("t",), ("t", "u")])),
        st.tuples(st.just("beat"), st.sampled_from("abc"), st.none()),
        st.tuples(st.just("leave"), st.sampled_from("abc"), st.none()),
        st.tuples(st.just("wait"), st.integers(0, 50_000), st.none()),
        st.tuples(st.just("grow"), st.integers(1, 6), st.none()),
        st.tuples(st.just("settle"), st.booleans(), st.none()),
    ),
    max_size=30,
)


@settings(deadline=None)
@given(steps=steps)
def test_reloaded_groups_equal_the_live_ones(
    GroupStage: Any, FakeTopics: Any, steps: list[tuple[str, Any, Any]]
) -> None:
    stage = GroupStage(topics=FakeTopics(t=2, u=1))
    size = 2
    for name, one, topics in steps:
        group = stage.groups.groups.get("g")
        member = None if group is None else group.members.get(one)
        if name == "join":
            stage.join(one, *topics)
        elif name == "beat" and member is not None:
            response = stage.heartbeat(one, member.member_epoch)
            assert response.member_epoch >= member.member_epoch
        elif name == "leave" and member is not None:
            stage.heartbeat(one, -1)
        elif name == "wait":
            stage.advance(one)
        elif name == "grow":
            size = max(size, one)
            stage.topics.create("t", size)
        elif name == "settle":
            stage.settle(fail=one)
        _check_equal(stage)
        _check_assigned_is_initialized(stage)


def _check_equal(stage: Any) -> None:
    reloaded = stage.replayed().groups
    assert reloaded.keys() == stage.groups.groups.keys()
    for group_id, group in stage.groups.groups.items():
        other = reloaded[group_id]
        for name in (
            "group_epoch", "metadata_hash", "assignment_epoch", "assignment_timestamp_ms",
            "members", "target", "states", "subscriptions",
        ):  # fmt: skip
            assert getattr(group, name) == getattr(other, name), name


def _check_assigned_is_initialized(stage: Any) -> None:
    for group in stage.groups.groups.values():
        initialized = {} if group.states is None else group.states.initialized_partitions
        for member in group.members.values():
            for topic_id, held in member.assigned.items():
                assert held <= initialized[topic_id]
