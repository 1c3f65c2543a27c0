"""Streams groups among groups of other kinds: offsets, expiry, and ids that change hands."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.broker.coordinator.group.machine.group import ClientInfo
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import DeleteGroupsRequest, ListGroupsRequest
from moldau.wire.messages import StreamsGroupHeartbeatRequest as Request

CLIENT = ClientInfo("client", "/127.0.0.1")
DAY_MS = 86_400_000


def _beat(stage: Any, epoch: int, **fields: Any) -> Any:
    request = Request(group_id="g", member_id="a", member_epoch=epoch, **fields)
    return stage.perform(stage.shard.streams_group_heartbeat(request, CLIENT, stage.now_ms))


def _join(stage: Any, topology: Any, subtopology: Any) -> Any:
    return _beat(
        stage,
        0,
        topology=topology(subtopology(sources=("t",))),
        rebalance_timeout_ms=60_000,
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        process_id="p",
    )


def _listed(stage: Any) -> list[tuple[str, str]]:
    return [
        (each.group_type, each.group_state) for each in stage.shard.list_groups(ListGroupsRequest())
    ]


def test_offsets_of_members_outlive_them_for_the_retention(
    stage: Any, topology: Any, subtopology: Any
) -> None:
    epoch = _join(stage, topology, subtopology).member_epoch
    assert stage.commit(member="a", generation=epoch, version=9) is ErrorCode.NONE
    assert stage.commit(member="a", generation=epoch + 1, version=9) is ErrorCode.STALE_MEMBER_EPOCH
    assert stage.commit(version=9) is ErrorCode.UNKNOWN_MEMBER_ID
    stage.reload()
    assert stage.fetch() == {("t", 0): 5}
    _beat(stage, -1)
    stage.advance(6 * DAY_MS)
    assert stage.fetch() == {("t", 0): 5}
    stage.advance(2 * DAY_MS)
    assert stage.fetch() == {}
    assert _listed(stage) == []
    stage.reload()
    assert _listed(stage) == []


def test_an_empty_classic_group_leaves_its_offsets_to_a_streams_group(
    stage: Any, topology: Any, subtopology: Any
) -> None:
    stage.commit()
    assert _listed(stage) == [("classic", "Empty")]
    _join(stage, topology, subtopology)
    assert [kind for kind, _ in _listed(stage)] == ["streams"]
    assert stage.fetch() == {("t", 0): 5}
    stage.reload()
    assert [kind for kind, _ in _listed(stage)] == ["streams"]
    assert stage.fetch() == {("t", 0): 5}


@pytest.mark.parametrize("reloaded", [False, True])
def test_an_empty_streams_group_gives_its_id_to_a_classic_group(
    stage: Any, topology: Any, subtopology: Any, reloaded: bool
) -> None:
    _join(stage, topology, subtopology)
    ticket = stage.join()
    assert stage.answers[ticket].error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    _beat(stage, -1)
    if reloaded:
        stage.reload()
    stage.stable_group()
    assert _listed(stage) == [("classic", "Stable")]
    stage.reload()
    assert _listed(stage) == [("classic", "Stable")]


def test_deletion(stage: Any, topology: Any, subtopology: Any) -> None:
    epoch = _join(stage, topology, subtopology).member_epoch
    stage.commit(member="a", generation=epoch, version=9)

    def delete() -> ErrorCode:
        names = DeleteGroupsRequest(groups_names=["g"]).groups_names
        [result] = stage.perform(stage.shard.delete_groups(names, stage.now_ms))
        return ErrorCode(result.error_code)

    assert delete() is ErrorCode.NON_EMPTY_GROUP
    _beat(stage, -1)
    assert delete() is ErrorCode.NONE
    assert stage.fetch() == {}
    assert delete() is ErrorCode.GROUP_ID_NOT_FOUND
    stage.reload()
    assert _listed(stage) == []
