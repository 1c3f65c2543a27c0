"""Members of streams groups: joining, epochs, fencing, leaving, time limits."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.broker.coordinator.group.machine.group import ClientInfo
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import StreamsGroupHeartbeatRequest as Request


def test_the_first_member_brings_the_topology_and_gets_all_tasks(
    streams: Any, tasks_of: Any
) -> None:
    response = streams.join("a")
    assert (response.member_id, response.member_epoch) == ("a", 2)
    assert response.heartbeat_interval_ms == 5_000
    assert tasks_of(response.active_tasks) == {"0": [0, 1, 2, 3]}
    assert tasks_of(response.standby_tasks) == tasks_of(response.warmup_tasks) == {}
    assert response.status == []
    assert streams.kinds == [
        "MemberMetadata",
        "Topology",
        "Metadata",
        "TargetAssignmentMember",
        "TargetAssignmentMetadata",
        "CurrentMemberAssignment",
    ]
    assert streams.group.state_name == "Stable"


def test_a_quiet_heartbeat_writes_nothing_and_repeats_no_tasks(streams: Any) -> None:
    streams.join("a")
    response = streams.beat("a")
    assert streams.kinds == []
    assert response.member_epoch == 2
    assert response.active_tasks is None
    assert response.standby_tasks is None


def test_a_second_member_gets_tasks_only_when_the_first_has_given_them_up(
    streams: Any, tasks_of: Any
) -> None:
    streams.join("a")
    second = streams.join("b")
    assert second.member_epoch == 3
    assert tasks_of(second.active_tasks) == {}
    assert streams.group.state_name == "Reconciling"
    first = streams.beat("a", None, {"0": [0, 1, 2, 3]})
    kept = tasks_of(first.active_tasks)
    assert kept is not None
    assert len(kept["0"]) == 2
    assert first.member_epoch == 2
    # As long as the first says it has them, nothing is free.
    streams.beat("a", None, {"0": [0, 1, 2, 3]})
    assert streams.kinds == []
    assert streams.beat("b", None, {}).active_tasks is None
    assert streams.beat("a", None, kept).member_epoch == 3
    moved = tasks_of(streams.beat("b", None, {}).active_tasks)
    assert moved is not None
    assert sorted(kept["0"] + moved["0"]) == [0, 1, 2, 3]
    assert streams.group.state_name == "Stable"


def test_a_leaver_frees_its_tasks_at_once(streams: Any, tasks_of: Any) -> None:
    streams.join("a")
    streams.join("b")
    streams.settle()
    response = streams.leave("b")
    assert (response.member_id, response.member_epoch) == ("b", -1)
    assert streams.kinds == [
        "-CurrentMemberAssignment",
        "-TargetAssignmentMember",
        "-MemberMetadata",
        "Metadata",
    ]
    assert tasks_of(streams.beat("a").active_tasks) == {"0": [0, 1, 2, 3]}
    streams.leave("a")
    assert streams.group.is_empty
    assert streams.group.state_name == "Empty"


def test_epochs_fence(streams: Any) -> None:
    streams.join("a")
    streams.join("b")
    streams.settle()
    epoch = streams.group.members["a"].member_epoch
    assert streams.refused(streams.beating("a", epoch + 1)) is ErrorCode.FENCED_MEMBER_EPOCH
    assert streams.refused(streams.beating("a", epoch - 2)) is ErrorCode.FENCED_MEMBER_EPOCH
    previous = streams.group.members["a"].previous_member_epoch
    # An older epoch is taken as a lost answer only from a member that says what it has.
    assert streams.refused(streams.beating("a", previous)) is ErrorCode.FENCED_MEMBER_EPOCH
    every = {"0": [0, 1, 2, 3]}
    assert streams.refused(streams.beating("a", previous, every)) is ErrorCode.FENCED_MEMBER_EPOCH
    owned = streams.group.members["a"].assigned.active_tasks
    assert streams.beat("a", previous, owned).member_epoch == epoch


def test_who_is_not_there_is_told_so(streams: Any) -> None:
    assert streams.refused(streams.beating("a", 1)) is ErrorCode.GROUP_ID_NOT_FOUND
    assert streams.refused(streams.beating("a", -1)) is ErrorCode.GROUP_ID_NOT_FOUND
    streams.join("a")
    assert streams.refused(streams.beating("b", 1)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert streams.refused(streams.beating("b", -1)) is ErrorCode.UNKNOWN_MEMBER_ID


def test_rejoining_keeps_epoch_and_tasks(streams: Any, tasks_of: Any) -> None:
    streams.join("a")
    again = streams.join("a")
    assert streams.kinds == []
    assert again.member_epoch == 2
    assert tasks_of(again.active_tasks) == {"0": [0, 1, 2, 3]}


def test_what_a_member_says_anew_starts_a_rebalance(streams: Any) -> None:
    streams.join("a")
    assert streams.beat("a", rack_id="r1").member_epoch == 3
    assert streams.kinds[:2] == ["MemberMetadata", "Metadata"]
    response = streams.send(streams.beating("a", 3), client=ClientInfo("other", "/127.0.0.1"))
    assert response.member_epoch == 4
    assert streams.group.members["a"].rack_id == "r1"


def test_a_silent_member_is_removed(streams: Any) -> None:
    streams.join("a")
    streams.advance(44_999)
    streams.beat("a")
    streams.advance(44_999)
    assert "a" in streams.group.members
    assert "-MemberMetadata" in streams.advance(1)
    assert streams.group.is_empty


def test_a_member_that_keeps_revoked_tasks_too_long_is_removed(streams: Any) -> None:
    streams.join("a")
    streams.join("b")
    every = {"0": [0, 1, 2, 3]}
    streams.beat("a", None, every)
    for _ in range(3):
        streams.advance(19_000)
        streams.beat("a", None, every)
        streams.beat("b")
    assert "a" in streams.group.members
    streams.advance(3_000)
    assert list(streams.group.members) == ["b"]


def test_time_limits_survive_a_move(streams: Any) -> None:
    streams.join("a")
    streams.join("b")
    streams.beat("a", None, {"0": [0, 1, 2, 3]})
    streams.reload()
    assert len(streams.timers) == 3
    streams.advance(45_000)
    assert streams.group.is_empty


def test_a_full_group_takes_nobody(StreamsStage: Any) -> None:
    streams = StreamsStage(group_streams_max_size=1)
    streams.join("a")
    assert streams.refused(streams.joining("b")) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert streams.beat("a").member_epoch == 2


def test_the_first_members_wait_for_each_other(streams: Any, statuses: Any, tasks_of: Any) -> None:
    streams.settings.values["streams.initial.rebalance.delay.ms"] = 3_000
    first = streams.join("a")
    assert (first.member_epoch, statuses(first), tasks_of(first.active_tasks)) == (1, [5], {})
    streams.advance(1_000)
    second = streams.join("b")
    assert (second.member_epoch, statuses(second)) == (1, [5])
    assert streams.group.state_name == "Assigning"
    kinds = streams.advance(2_000)
    assert kinds == ["TargetAssignmentMember"] * 2 + ["TargetAssignmentMetadata"]
    for member in ("a", "b"):
        response = streams.beat(member)
        assert len(tasks_of(response.active_tasks)["0"]) == 2
        assert statuses(response) == []
    assert streams.group.state_name == "Stable"


def test_assignments_keep_their_distance(streams: Any, statuses: Any) -> None:
    streams.settings.values["streams.assignment.interval.ms"] = 1_000
    streams.join("a")
    second = streams.join("b")
    assert statuses(second) == [5]
    assert "TargetAssignmentMetadata" not in streams.kinds
    streams.advance(1_000)
    assert statuses(streams.beat("b")) == []
    assert "TargetAssignmentMetadata" in streams.kinds


def test_a_clock_that_is_set_back_does_not_hold_up_assignments(streams: Any, statuses: Any) -> None:
    streams.settings.values["streams.assignment.interval.ms"] = 1_000
    streams.join("a")
    assert statuses(streams.join("b")) == [5]
    streams.now_ms -= 600_000
    assert statuses(streams.beat("b")) == []
    assert "TargetAssignmentMetadata" in streams.kinds


def test_standbys_are_on_other_processes(streams: Any, topology: Any, subtopology: Any) -> None:
    streams.topology = topology(subtopology(sources=("in",), changelogs=("log",)))
    streams.topics.create("log", 4)
    streams.join("a")
    streams.join("b")
    streams.settle()
    streams.settings.values["streams.num.standby.replicas"] = 1
    streams.settle()
    members = streams.group.members
    assert members["a"].assigned.standby == members["b"].assigned.active_tasks
    assert members["b"].assigned.standby == members["a"].assigned.active_tasks
    assert dict(streams.group.assignment_configs) == {"num.standby.replicas": "1"}


def test_all_members_hear_of_a_shutdown(streams: Any, statuses: Any) -> None:
    streams.join("a")
    streams.join("b")
    assert statuses(streams.beat("a", shutdown_application=True)) == [4]
    response = streams.beat("b")
    assert "member a " in response.status[0].status_detail
    streams.leave("a")
    streams.leave("b")
    assert statuses(streams.join("c")) == []


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        pytest.param({"member_id": " "}, ErrorCode.INVALID_REQUEST, id="member id"),
        pytest.param({"group_id": ""}, ErrorCode.INVALID_REQUEST, id="group id"),
        pytest.param({"rack_id": ""}, ErrorCode.INVALID_REQUEST, id="rack id"),
        pytest.param({"instance_id": "i"}, ErrorCode.INVALID_REQUEST, id="static member"),
        pytest.param({"member_epoch": -2}, ErrorCode.INVALID_REQUEST, id="static leave"),
        pytest.param({"member_epoch": -3}, ErrorCode.INVALID_REQUEST, id="epoch"),
        pytest.param({"rebalance_timeout_ms": -1}, ErrorCode.INVALID_REQUEST, id="timeout"),
        pytest.param({"active_tasks": None}, ErrorCode.INVALID_REQUEST, id="no task list"),
        pytest.param(
            {"standby_tasks": [Request.TaskIds(subtopology_id="0", partitions=[0])]},
            ErrorCode.INVALID_REQUEST,
            id="joins with tasks",
        ),
        pytest.param({"topology": None}, ErrorCode.INVALID_REQUEST, id="no topology"),
        pytest.param({"member_epoch": 1}, ErrorCode.INVALID_REQUEST, id="topology later"),
        pytest.param({"task_offsets": []}, ErrorCode.INVALID_REQUEST, id="task offsets"),
        pytest.param({"task_end_offsets": []}, ErrorCode.INVALID_REQUEST, id="task end offsets"),
        pytest.param(
            {"warmup_tasks": [Request.TaskIds(subtopology_id="0", partitions=[0])]},
            ErrorCode.INVALID_REQUEST,
            id="warm-up tasks",
        ),
        pytest.param(
            {"client_tags": [Request.KeyValue(key="k", value="1")] * 2},
            ErrorCode.UNKNOWN_SERVER_ERROR,
            id="tag twice",
        ),
    ],
)
def test_requests_that_make_no_sense(streams: Any, fields: dict[str, Any], code: ErrorCode) -> None:
    request = streams.joining("a")
    for name, value in fields.items():
        setattr(request, name, value)
    assert streams.refused(request) is code
    assert streams.groups.groups == {}


def test_tasks_that_do_not_exist_are_refused(streams: Any) -> None:
    streams.join("a")
    for owned in ({"1": [0]}, {"0": [4]}, {"0": [-1]}):
        assert streams.refused(streams.beating("a", 2, owned)) is ErrorCode.INVALID_REQUEST


def test_a_group_of_another_kind(streams: Any) -> None:
    class Other:
        group_type = "classic"
        is_empty = False

        def tombstones(self) -> list[Any]:
            return []

    other = Other()
    for request in (streams.joining("a"), streams.beating("a", 1), streams.beating("a", -1)):
        assert streams.refused(request, other=other) is ErrorCode.GROUP_ID_NOT_FOUND
    other.is_empty = True
    assert streams.refused(streams.beating("a", 1), other=other) is ErrorCode.GROUP_ID_NOT_FOUND
    assert streams.send(streams.joining("a"), other=other).member_epoch == 2


def test_endpoints_are_told_when_they_change(streams: Any) -> None:
    endpoint = Request.Endpoint(host="h", port=7)
    first = streams.join("a", user_endpoint=endpoint, endpoint_information_epoch=-1)
    assert first.endpoint_information_epoch == 0
    assert first.partitions_by_user_endpoint[0].user_endpoint.host == "h"
    assert streams.beat("a").partitions_by_user_endpoint is None
    streams.join("b", user_endpoint=Request.Endpoint(host="i", port=8))
    told = streams.beat("a", None, {"0": [0, 1, 2, 3]})
    assert told.endpoint_information_epoch == 2
    by_host = {each.user_endpoint.host: each for each in told.partitions_by_user_endpoint}
    assert by_host["i"].active_partitions == []
    [held] = by_host["h"].active_partitions
    assert (held.topic, len(held.partitions)) == ("in", 2)
