"""Members join, get their share, give up and take over partitions, and leave."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from moldau.broker.coordinator.group.machine.consumer.member import MemberState
from moldau.broker.coordinator.group.machine.group import ClientInfo
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import ConsumerGroupPartitionMetadataKey

JOIN_RECORDS = [
    "MemberMetadata",
    "Metadata",
    "TargetAssignmentMember",
    "TargetAssignmentMetadata",
    "CurrentMemberAssignment",
]
LEAVE_RECORDS = [
    "-CurrentMemberAssignment",
    "-TargetAssignmentMember",
    "-MemberMetadata",
    "Metadata",
]


def test_the_first_member_gets_everything_with_the_answer_to_its_join(stage: Any) -> None:
    response = stage.join("m1")

    assert stage.kinds() == JOIN_RECORDS
    assert (response.member_id, response.member_epoch) == ("m1", 2)
    assert response.heartbeat_interval_ms == 5_000
    assert stage.shown(response) == {"t": [0, 1, 2, 3]}
    assert stage.group().state_name == "Stable"
    member = stage.group().members["m1"]
    assert (member.client_id, member.client_host) == ("client", "/127.0.0.1")
    assert member.rebalance_timeout_ms == 60_000


def test_a_heartbeat_with_nothing_new_writes_and_tells_nothing(stage: Any) -> None:
    stage.join("m1")
    response = stage.heartbeat("m1", 2)

    assert stage.last == []
    assert (response.member_epoch, response.assignment) == (2, None)


def test_a_settled_group_looks_at_nothing(stage: Any, monkeypatch: Any) -> None:
    stage.join("m1")
    stage.heartbeat("m1", 2)

    def looked(*args: Any) -> None:
        raise AssertionError("a heartbeat with nothing new needs no topic")

    for name in ("topic", "topic_by_id", "names"):
        monkeypatch.setattr(stage.topics, name, looked)
    monkeypatch.setattr(stage.section.context, "metadata_hash", looked)
    stage.heartbeat("m1", 2, owned={})
    assert stage.last == []


def test_a_new_member_takes_over_what_the_other_has_given_up(stage: Any) -> None:
    stage.join("m1")
    joined = stage.join("m2")
    assert stage.shown(joined) == {}
    assert joined.member_epoch == 3
    assert stage.group().members["m2"].state is MemberState.UNRELEASED_PARTITIONS
    assert stage.group().state_name == "Reconciling"

    asked = stage.heartbeat("m1", 2, owned={"t": [0, 1, 2, 3]})
    kept = stage.shown(asked)["t"]
    assert asked.member_epoch == 2, "it keeps its epoch until it has given up the rest"
    assert len(kept) == 2
    assert stage.kinds() == ["CurrentMemberAssignment"]
    assert stage.shown(stage.heartbeat("m2", 3)) is None, "nothing is free yet"

    done = stage.heartbeat("m1", 2, owned={"t": kept})
    assert (done.member_epoch, done.assignment) == (3, None)
    given = stage.heartbeat("m2", 3)
    assert sorted(kept + stage.shown(given)["t"]) == [0, 1, 2, 3]
    assert stage.group().state_name == "Stable"


def test_a_member_that_leaves_frees_its_partitions(stage: Any) -> None:
    stage.join("m1")
    stage.join("m2")
    left = stage.heartbeat("m1", -1)

    assert stage.kinds() == LEAVE_RECORDS
    assert (left.member_id, left.member_epoch, left.heartbeat_interval_ms) == ("m1", -1, 0)
    assert stage.group().state_name == "Assigning"
    response = stage.heartbeat("m2", 3)
    assert (response.member_epoch, stage.shown(response)) == (4, {"t": [0, 1, 2, 3]})


def test_the_last_member_leaves_an_empty_group(stage: Any) -> None:
    stage.join("m1")
    stage.heartbeat("m1", -1)

    group = stage.group()
    assert group.is_empty
    assert group.state_name == "Empty"
    assert (group.group_epoch, group.metadata_hash, group.owners) == (3, 0, {})
    assert stage.advance(100_000) == [], "no timer is left"


def test_a_group_without_subscriptions_stays_in_its_first_epoch(stage: Any) -> None:
    response = stage.join("m1", [])
    assert (response.member_epoch, stage.shown(response)) == (1, {})
    assert stage.kinds() == ["MemberMetadata", "CurrentMemberAssignment"]


def test_a_session_ends_without_heartbeats(stage: Any) -> None:
    stage.join("m1")
    stage.advance(44_000)
    stage.heartbeat("m1", 2)
    assert stage.advance(44_000) == []
    stage.advance(1_000)

    assert stage.kinds() == LEAVE_RECORDS
    assert stage.refusal("m1", 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_must_give_up_partitions_in_time(stage: Any) -> None:
    stage.join("m1", timeout_ms=20_000)
    stage.join("m2")
    stage.heartbeat("m1", 2, owned={"t": [0, 1, 2, 3]})
    for _ in range(3):
        stage.advance(5_000)
        stage.heartbeat("m1", 2, owned={"t": [0, 1, 2, 3]})
    stage.advance(4_999)
    assert "m1" in stage.group().members
    stage.advance(1)

    assert stage.kinds() == LEAVE_RECORDS
    assert list(stage.group().members) == ["m2"]


def test_a_member_that_gave_up_in_time_lives_on(stage: Any) -> None:
    stage.join("m1", timeout_ms=20_000)
    stage.join("m2")
    kept = stage.shown(stage.heartbeat("m1", 2, owned={"t": [0, 1, 2, 3]}))
    stage.heartbeat("m1", 2, owned=kept)
    assert stage.advance(30_000) == []


def test_after_a_restart_sessions_and_revocations_are_timed_anew(stage: Any) -> None:
    stage.join("m1", timeout_ms=20_000)
    stage.join("m2")
    stage.heartbeat("m1", 2, owned={"t": [0, 1, 2, 3]})
    stage.advance(15_000)
    stage.reload()
    stage.advance(19_999)
    assert list(stage.group().members) == ["m1", "m2"]
    stage.advance(1)
    assert list(stage.group().members) == ["m2"]
    stage.advance(25_000)
    assert stage.group().is_empty


def test_a_full_request_is_answered_with_the_assignment(stage: Any) -> None:
    stage.join("m1")
    response = stage.heartbeat("m1", 2, owned={"t": [0, 1]}, names=["t"], timeout_ms=60_000)
    assert stage.last == []
    assert stage.shown(response) == {"t": [0, 1, 2, 3]}


def test_joining_again_keeps_epoch_and_assignment(stage: Any) -> None:
    stage.join("m1")
    response = stage.join("m1")
    assert stage.last == []
    assert (response.member_epoch, stage.shown(response)) == (2, {"t": [0, 1, 2, 3]})


def test_a_changed_host_is_written_and_changes_nothing_else(stage: Any) -> None:
    stage.join("m1")
    stage.heartbeat("m1", 2, client=ClientInfo("client", "/10.0.0.1"))
    assert stage.kinds() == ["MemberMetadata"]
    assert stage.group().group_epoch == 2


# Subscriptions.


def test_a_dropped_topic_is_taken_away_at_once(stage: Any) -> None:
    stage.topics.create("u", 2)
    stage.settings.values["consumer.assignment.interval.ms"] = 10_000
    stage.join("m1", ["t", "u"])
    owned = {"t": [0, 1, 2, 3], "u": [0, 1]}
    response = stage.heartbeat("m1", 2, names=["u"], owned=owned)

    assert stage.kinds() == ["MemberMetadata", "Metadata", "CurrentMemberAssignment"]
    assert (response.member_epoch, stage.shown(response)) == (2, {"u": [0, 1]})
    assert stage.group().members["m1"].state is MemberState.UNREVOKED_PARTITIONS
    stage.advance(10_000)
    response = stage.heartbeat("m1", 2, owned={"u": [0, 1]})
    assert (response.member_epoch, stage.shown(response)) == (3, None)
    assert stage.group().state_name == "Stable"


def test_unsubscribing_from_everything_takes_everything(stage: Any) -> None:
    stage.settings.values["consumer.assignment.interval.ms"] = 10_000
    stage.join("m1")
    response = stage.heartbeat("m1", 2, names=[], owned={})
    assert stage.shown(response) == {}
    member = stage.group().members["m1"]
    assert (member.state, member.assigned) == (MemberState.STABLE, {})


def test_new_partitions_are_noticed_and_assigned(stage: Any) -> None:
    stage.join("m1")
    stage.heartbeat("m1", 2)
    stage.topics.create("t", 6)
    response = stage.heartbeat("m1", 2)
    assert stage.kinds() == JOIN_RECORDS[1:]
    assert (response.member_epoch, stage.shown(response)) == (3, {"t": [0, 1, 2, 3, 4, 5]})


def test_what_could_not_be_written_is_decided_again(stage: Any, monkeypatch: Any) -> None:
    stage.join("m1")
    stage.heartbeat("m1", 2)
    stage.topics.create("t", 6)
    before = stage.state()
    with monkeypatch.context() as failing:
        failing.setattr(stage, "perform", lambda out: None)
        assert stage.heartbeat("m1", 2).member_epoch == 3, "an answer that nobody will hear"
    assert stage.state() == before
    stage.heartbeat("m1", 2)
    assert stage.kinds() == JOIN_RECORDS[1:]
    assert stage.group().group_epoch == 3


def test_changes_elsewhere_change_nothing(stage: Any) -> None:
    stage.join("m1")
    stage.topics.create("unrelated", 6)
    stage.heartbeat("m1", 2)
    assert stage.last == []


def test_racks_are_part_of_what_an_assignment_depends_on(stage: Any) -> None:
    stage.join("m1", rack="r1")
    stage.topics.create("t", 4, rack="r1")
    stage.heartbeat("m1", 2)
    assert stage.group().group_epoch == 3
    assert stage.group().members["m1"].rack_id == "r1"


def test_a_deleted_topic_is_taken_away(stage: Any) -> None:
    stage.join("m1")
    stage.topics.delete("t")
    asked = stage.heartbeat("m1", 2)
    assert (asked.member_epoch, stage.shown(asked)) == (2, {})
    done = stage.heartbeat("m1", 2, owned={})
    assert done.member_epoch == 3
    assert stage.group().owners == {}


def test_a_topic_may_come_later(stage: Any) -> None:
    assert stage.shown(stage.join("m1", ["later"])) == {}
    stage.topics.create("later", 2)
    assert stage.shown(stage.heartbeat("m1", 2)) == {"later": [0, 1]}


def test_a_record_of_old_releases_is_removed_once(stage: Any) -> None:
    stage.join("m1")
    from moldau.broker.coordinator.machine.decision import CoordinatorRecord
    from moldau.wire.messages import ConsumerGroupPartitionMetadataValue

    old = CoordinatorRecord(
        ConsumerGroupPartitionMetadataKey(group_id="g"), ConsumerGroupPartitionMetadataValue()
    ).encode()
    stage.written.append(old)
    stage.reload()
    stage.heartbeat("m1", 2)
    assert stage.kinds() == ["-PartitionMetadata"]
    stage.heartbeat("m1", 2)
    assert stage.last == []


# Assignors and the pace of assignments.


def test_most_votes_choose_the_assignor(stage: Any) -> None:
    described = lambda: stage.section.describe("g").assignor_name  # noqa: E731
    stage.join("m1")
    assert described() == "uniform", "the first of the configured ones"
    stage.join("m2", assignor="range")
    assert described() == "range"
    stage.join("m3", assignor="uniform")
    stage.join("m4", assignor="uniform")
    assert described() == "uniform"
    stage.heartbeat("m4", -1)
    stage.heartbeat("m3", -1)
    assert described() == "range"


def test_among_equal_votes_the_newcomers_counts_most(stage: Any) -> None:
    stage.join("m1", assignor="uniform")
    group = stage.group()
    newcomer = replace(group.members["m1"], member_id="m2", server_assignor="range")
    assert group.preferred_assignor(None, newcomer) == "range"
    stage.join("m2", assignor="range")
    group = stage.group()
    first, second = group.members["m1"], group.members["m2"]
    assert group.preferred_assignor(first, first) == "uniform"
    assert group.preferred_assignor(second, second) == "range"
    assert group.preferred_assignor(first, replace(first, server_assignor="range")) == "range"
    assert group.preferred_assignor() == "uniform"


def test_the_range_assignor_is_used_when_chosen(stage: Any) -> None:
    stage.topics.create("u", 3)
    stage.join("m1", ["t", "u"], assignor="range")
    stage.join("m2", ["t", "u"], assignor="range")
    target = {
        member: {stage.topics.topic_by_id(each).name: sorted(p) for each, p in got.items()}
        for member, got in stage.group().target.items()
    }
    assert sorted(len(each["u"]) for each in target.values()) == [1, 2]
    assert sorted(len(each["t"]) for each in target.values()) == [2, 2]


def test_assignments_are_made_once_per_interval(stage: Any) -> None:
    stage.settings.values["consumer.assignment.interval.ms"] = 1_000
    stage.join("m1")
    assert stage.kinds() == JOIN_RECORDS, "the first comes at once"
    joined = stage.join("m2")
    assert stage.kinds() == ["MemberMetadata", "Metadata", "CurrentMemberAssignment"]
    assert (joined.member_epoch, stage.group().state_name) == (2, "Assigning")
    stage.advance(999)
    stage.heartbeat("m1", 2)
    assert stage.last == []
    stage.advance(1)
    stage.heartbeat("m1", 2)
    assert stage.kinds() == [
        "TargetAssignmentMember",
        "TargetAssignmentMember",
        "TargetAssignmentMetadata",
        "CurrentMemberAssignment",
    ]
    assert stage.group().assignment_timestamp_ms == stage.now_ms


def test_a_clock_that_is_set_back_does_not_hold_up_assignments(stage: Any) -> None:
    stage.settings.values["consumer.assignment.interval.ms"] = 1_000
    stage.join("m1")
    stage.join("m2")
    stage.now_ms -= 600_000
    stage.heartbeat("m1", 2)
    assert stage.group().assignment_epoch == stage.group().group_epoch
    assert stage.group().assignment_timestamp_ms == stage.now_ms


def test_who_wants_nothing_gets_nothing_though_an_assignment_was_due(stage: Any) -> None:
    stage.join("m1")
    stage.join("m2")
    stage.heartbeat("m1", -1)
    stage.join("m0", [])
    target = stage.group().target
    assert target["m0"] == {}
    assert [len(partitions) for partitions in target["m2"].values()] == [4]


# Limits and takeovers.


def test_a_full_group_takes_no_new_member(Stage: Any) -> None:
    stage = Stage(group_consumer_max_size=1)
    stage.topics.create("t", 4)
    stage.join("m1")
    assert stage.refusal("m2", owned={}, names=[], timeout_ms=1) is (
        ErrorCode.GROUP_MAX_SIZE_REACHED
    )
    stage.heartbeat("m1", 2)


class _Other:
    """A group of another kind."""

    def __init__(self, group_type: str, is_empty: bool) -> None:
        self.group_id = "g"
        self.group_type = group_type
        self.is_empty = is_empty

    def tombstones(self) -> list[Any]:
        from moldau.broker.coordinator.machine.decision import CoordinatorRecord
        from moldau.wire.messages import GroupMetadataKey

        return [CoordinatorRecord(GroupMetadataKey(group="g"), None)]


def test_an_empty_classic_group_makes_room(stage: Any, monkeypatch: Any) -> None:
    replay = stage.section.replay
    monkeypatch.setattr(
        stage.section,
        "replay",
        lambda key, value: replay(key, value) if hasattr(key, "group_id") else None,
    )
    stage.check_reload = False
    stage.join("m1", other=_Other("classic", is_empty=True))
    assert stage.kinds() == ["-GroupMetadata", *JOIN_RECORDS]


@pytest.mark.parametrize(
    ("epoch", "other"),
    [
        pytest.param(0, _Other("share", is_empty=True), id="another kind"),
        pytest.param(0, _Other("classic", is_empty=False), id="classic with members"),
        pytest.param(1, _Other("classic", is_empty=True), id="not joining"),
        pytest.param(1, None, id="no such group"),
        pytest.param(-1, None, id="leaving no group"),
        pytest.param(-1, _Other("streams", is_empty=False), id="leaving another kind"),
    ],
)
def test_only_consumer_groups_have_members_of_this_kind(stage: Any, epoch: int, other: Any) -> None:
    refusal = stage.refusal("m1", epoch, owned={}, names=["t"], timeout_ms=60_000, other=other)
    assert refusal is ErrorCode.GROUP_ID_NOT_FOUND
    assert stage.section.groups == {}
