"""Which StreamsGroupHeartbeat requests make sense at all, whatever the group looks like.

Checks are in Kafka's order, so a request with several faults gets the same answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sized

from moldau.broker.coordinator.group.machine.streams.members import StreamsMember
from moldau.broker.coordinator.group.machine.streams.tasks import Tasks, owns_only, task_map
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import StreamsGroupHeartbeatRequest

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2

_TaskIds = StreamsGroupHeartbeatRequest.TaskIds


def check_request(request: StreamsGroupHeartbeatRequest) -> None:
    _check_supported(request)
    for name, value in (
        ("MemberId", request.member_id),
        ("GroupId", request.group_id),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack_id),
    ):
        _require(value is None or value.strip() != "", f"{name} must not be empty")
    if request.member_epoch == JOIN_EPOCH:
        _check_joining(request)
    elif request.member_epoch == LEAVE_STATIC_EPOCH:
        _require(
            request.instance_id is not None,
            "MemberEpoch -2 is for static members: give the InstanceId",
        )
    else:
        _require(
            request.member_epoch > LEAVE_STATIC_EPOCH,
            f"MemberEpoch {request.member_epoch} is below -2, the lowest with a meaning",
        )
    kinds = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    _require(
        len({kind is None for kind in kinds}) == 1,
        "active, standby and warm-up tasks are given all three or not at all",
    )
    _require(
        request.member_epoch == JOIN_EPOCH or request.topology is None,
        "a topology is given with MemberEpoch 0 only, when joining",
    )


def _check_supported(request: StreamsGroupHeartbeatRequest) -> None:
    """What the protocol has room for, and Kafka 4.3 refuses."""
    _require(
        request.instance_id is None,
        "streams groups have no static members yet: leave InstanceId out",
    )
    _require(request.task_offsets is None, "TaskOffsets cannot be used yet: leave them out")
    _require(request.task_end_offsets is None, "TaskEndOffsets cannot be used yet: leave them out")
    _require(not request.warmup_tasks, "there are no warm-up tasks yet: give an empty list")
    if request.topology is not None:
        for subtopology in request.topology.subtopologies or ():
            _require(
                not subtopology.source_topic_regex,
                "source topics cannot be given as patterns yet: list their names",
            )


def _check_joining(request: StreamsGroupHeartbeatRequest) -> None:
    _require(request.rebalance_timeout_ms != -1, "a member joins with its RebalanceTimeoutMs")
    for name, tasks in (
        ("ActiveTasks", request.active_tasks),
        ("StandbyTasks", request.standby_tasks),
        ("WarmupTasks", request.warmup_tasks),
    ):
        _require(_is_empty_list(tasks), f"a member joins with an empty list of {name}")
    _require(request.topology is not None, "a member joins with its topology")
    if request.topology is None:
        return
    for subtopology in request.topology.subtopologies or ():
        for info in subtopology.state_changelog_topics:
            if info.partitions != 0:
                raise ApiError(
                    ErrorCode.STREAMS_INVALID_TOPOLOGY,
                    f"changelog topic {info.name} is given {info.partitions} partitions; give 0: "
                    "it gets as many as its subtopology has tasks",
                )


def _is_empty_list(value: Sized | None) -> bool:
    return value is not None and len(value) == 0


def check_epoch(member: StreamsMember, request: StreamsGroupHeartbeatRequest) -> None:
    """Fence a member whose epoch is not the coordinator's, unless only an answer was lost."""
    received, known = request.member_epoch, member.member_epoch
    if received in (JOIN_EPOCH, known):
        return
    if received < known:
        assigned = member.assigned
        if (
            received == member.previous_member_epoch
            and owns_only(request.active_tasks, assigned.active)
            and owns_only(request.standby_tasks, assigned.standby)
            and owns_only(request.warmup_tasks, assigned.warmup)
        ):
            return
    relation = "greater" if received > known else "smaller"
    raise ApiError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"member epoch {received} of {member.member_id} is {relation} than the coordinator's "
        f"{known}: give up all tasks and join again",
    )


def owned_tasks(request: StreamsGroupHeartbeatRequest) -> Tasks | None:
    """What the member says that it has; None if it says nothing."""
    if (
        request.active_tasks is None
        or request.standby_tasks is None
        or request.warmup_tasks is None
    ):
        return None
    for kind in (request.active_tasks, request.standby_tasks, request.warmup_tasks):
        if len({ids.subtopology_id for ids in kind}) < len(kind):
            raise ApiError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                "each subtopology may be listed once for each kind of task, unlike "
                f"{[ids.subtopology_id for ids in kind]}",
            )
    return Tasks(
        task_map(request.active_tasks),
        task_map(request.standby_tasks),
        task_map(request.warmup_tasks),
    )


def check_tasks_exist(tasks: Iterable[_TaskIds] | None, task_counts: dict[str, int]) -> None:
    for ids in tasks or ():
        count = task_counts.get(ids.subtopology_id)
        if count is None:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"the topology has no subtopology {ids.subtopology_id}",
            )
        for partition in ids.partitions:
            _require(
                0 <= partition < count,
                f"subtopology {ids.subtopology_id} has {count} tasks, none with number {partition}",
            )


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ApiError(ErrorCode.INVALID_REQUEST, message)
