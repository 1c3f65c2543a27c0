"""Streams groups seen from outside: description, offsets, deletion, records."""

from __future__ import annotations

import random
import uuid
from typing import Any

import pytest

from moldau.broker.coordinator.group.machine.group import CommitCaller
from moldau.broker.coordinator.group.machine.streams.groups import StreamsGroups
from moldau.broker.coordinator.machine.decision import CoordinatorRecord
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
)
from moldau.wire.messages import StreamsGroupHeartbeatRequest as Request
from moldau.wire.record_values import decode_coordinator_record

TOPIC_ID = uuid.UUID(int=1)


def _code(call: Any, *arguments: Any) -> ErrorCode:
    try:
        call(*arguments)
    except ApiError as error:
        return error.code
    return ErrorCode.NONE


def test_description(streams: Any, topology: Any, subtopology: Any) -> None:
    streams.topology = topology(subtopology(sources=("in",), changelogs=("log",)))
    streams.join("a", client_tags=[Request.KeyValue(key="zone", value="z1")])
    waiting = streams.groups.describe("g")
    assert waiting.group_state == "NotReady"
    assert waiting.topology.subtopologies[0].state_changelog_topics[0].partitions == 0
    streams.topics.create("log", 4)
    streams.beat("a")
    group = streams.groups.describe("g")
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 3, 3)
    [described] = group.topology.subtopologies
    [changelog] = described.state_changelog_topics
    assert (changelog.name, changelog.partitions, changelog.replication_factor) == ("log", 4, 3)
    [member] = group.members
    assert (member.member_id, member.member_epoch, member.process_id) == ("a", 3, "process-a")
    assert [(tag.key, tag.value) for tag in member.client_tags] == [("zone", "z1")]
    assert member.assignment.active_tasks[0].partitions == [0, 1, 2, 3]
    assert member.assignment == member.target_assignment
    assert _code(streams.groups.describe, "other") is ErrorCode.GROUP_ID_NOT_FOUND


def _caller(member: str = "a", epoch: int = 2, **options: Any) -> CommitCaller:
    fields = {"instance_id": None, "transactional": False, "version": 9} | options
    return CommitCaller(member_id=member, epoch=epoch, **fields)


@pytest.mark.parametrize(
    ("caller", "code"),
    [
        pytest.param(_caller(), ErrorCode.NONE, id="member"),
        pytest.param(_caller("b"), ErrorCode.UNKNOWN_MEMBER_ID, id="stranger"),
        pytest.param(_caller("", -1), ErrorCode.UNKNOWN_MEMBER_ID, id="nobody"),
        pytest.param(_caller(epoch=3), ErrorCode.STALE_MEMBER_EPOCH, id="newer epoch"),
        pytest.param(_caller(version=8), ErrorCode.UNSUPPORTED_VERSION, id="old api"),
        pytest.param(_caller("", -1, transactional=True), ErrorCode.NONE, id="transaction"),
        pytest.param(_caller(version=3, transactional=True), ErrorCode.NONE, id="txn member"),
    ],
)
def test_who_may_commit(streams: Any, caller: CommitCaller, code: ErrorCode) -> None:
    streams.join("a")
    assert _code(streams.group.check_commit, caller) is code


def test_an_older_epoch_may_commit_for_tasks_it_had_all_along(streams: Any) -> None:
    streams.join("a")
    streams.join("b")
    streams.settle()
    members = streams.group.members
    [kept] = members["a"].assigned.active_tasks.values()
    [moved] = members["b"].assigned.active_tasks.values()
    check = streams.group.check_commit(_caller("a", 2))
    assert {check("in", TOPIC_ID, each) for each in kept} == {ErrorCode.NONE}
    assert {check("in", TOPIC_ID, each) for each in moved} == {ErrorCode.STALE_MEMBER_EPOCH}
    assert check("unread", TOPIC_ID, 0) is ErrorCode.STALE_MEMBER_EPOCH
    # What it got in its present epoch it cannot have worked on before.
    check = streams.group.check_commit(_caller("b", 2))
    assert {check("in", TOPIC_ID, each) for each in moved} == {ErrorCode.STALE_MEMBER_EPOCH}


def test_tasks_being_given_up_may_still_be_committed(streams: Any) -> None:
    streams.join("a")
    streams.join("b")
    streams.beat("a", None, {"0": [0, 1, 2, 3]})
    check = streams.group.check_commit(_caller("a", 2))
    assert [check("in", TOPIC_ID, each) for each in range(4)] == [ErrorCode.NONE] * 4


def test_who_may_fetch_offsets(streams: Any) -> None:
    streams.join("a")
    fetch = streams.group.check_fetch
    assert _code(fetch, None, -1) is ErrorCode.NONE
    assert _code(fetch, "a", 2) is ErrorCode.NONE
    assert _code(fetch, "a", 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert _code(fetch, "b", 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_only_an_empty_group_lets_go_of_what_it_has(streams: Any) -> None:
    streams.join("a")
    group = streams.group
    assert _code(group.check_delete) is ErrorCode.NON_EMPTY_GROUP
    assert group.is_subscribed_to("in")
    assert not group.is_subscribed_to("other")
    streams.leave("a")
    assert _code(group.check_delete) is ErrorCode.NONE
    assert not group.is_subscribed_to("in")
    # Offsets may be committed by hand now.
    assert _code(group.check_commit, _caller("", -1)) is ErrorCode.NONE


def test_tombstones_remove_the_group_in_any_order(streams: Any) -> None:
    streams.join("a")
    streams.join("b")
    streams.settle()
    tombstones = streams.group.tombstones()
    assert len(tombstones) == 2 * 3 + 3
    rng = random.Random(5)
    for _ in range(20):
        rng.shuffle(tombstones)
        groups = streams.replayed()
        for record in tombstones:
            groups.replay(*decode_coordinator_record("group", *record.encode()))
        assert groups.groups == {}


def test_a_member_of_an_older_record_has_its_epoch_for_all_tasks(streams: Any) -> None:
    Value = StreamsGroupCurrentMemberAssignmentValue
    key = StreamsGroupCurrentMemberAssignmentKey(group_id="g", member_id="a")
    tasks = [Value.TaskIds(subtopology_id="0", partitions=[1, 2])]
    value = Value(member_epoch=7, previous_member_epoch=6, state=99, active_tasks=tasks)
    groups: StreamsGroups = streams.groups
    groups.replay(*decode_coordinator_record("group", *CoordinatorRecord(key, value).encode()))
    member = groups.groups["g"].members["a"]
    assert member.assigned.active == {"0": {1: 7, 2: 7}}
    # A state from the future: the member has to start over.
    metadata = StreamsGroupMemberMetadataValue(
        instance_id=None, rack_id=None, rebalance_timeout_ms=1, process_id="p"
    )
    groups.replay(StreamsGroupMemberMetadataKey(group_id="g", member_id="a"), metadata)
    assert member.state.name == "UNKNOWN"


def test_random_lives_never_give_a_task_to_two(
    streams: Any, topology: Any, subtopology: Any
) -> None:
    """Members come, go, stall and obey at random; the stage compares with a reload each time."""
    streams.topology = topology(subtopology(sources=("in",), changelogs=("log",)))
    streams.topics.create("log", 4)
    streams.settings.values["streams.num.standby.replicas"] = 1
    rng = random.Random(11)
    for step in range(250):
        member = rng.choice("abcd")
        known = streams.groups.groups.get("g")
        if known is None or member not in known.members:
            streams.join(member, process=f"p{ord(member) % 3}")
        elif rng.random() < 0.15:
            streams.leave(member)
        elif rng.random() < 0.7:
            assigned = known.members[member].assigned
            streams.beat(member, None, assigned.active_tasks, assigned.standby)
        else:
            streams.beat(member)
        if step % 60 == 59:
            streams.reload()
        active = [
            (key, partition)
            for each in streams.group.members.values()
            for tasks in (each.assigned.active, each.pending_revocation.active)
            for key, partitions in tasks.items()
            for partition in partitions
        ]
        assert len(active) == len(set(active))
    streams.settle()
