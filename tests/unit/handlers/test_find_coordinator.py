from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest

from moldau.broker.handlers.find_coordinator import FindCoordinatorHandler
from moldau.broker.metadata.machine.model import Node
from moldau.broker.network.context import RequestContext
from moldau.wire.apis import ApiKey
from moldau.wire.codec import decode, encode
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import FindCoordinatorRequest, FindCoordinatorResponse

# Lies in partition 12 of 50, as "my-group" does; the group id has a colon.
SHARE_KEY = "my:group:AAAAAAAAAAAAAAAAAAAAEQ:9"
NODES = {"INTERNAL": Node(1, "inside", 9092), "EXTERNAL": Node(1, "outside", 19092)}


class Cluster:
    """Knows the offsets topic once somebody has created it."""

    def __init__(self, *, leader: bool = True, create_error: ErrorCode | None = None) -> None:
        self.created: list[str] = []
        self.has_leader = leader
        self.create_error = create_error

    async def ensure_internal_topic(self, name: str) -> None:
        if self.create_error is not None:
            raise ApiError(self.create_error, "as told")
        self.created.append(name)

    def name_of(self, topic_id: uuid.UUID) -> str | None:
        return None

    def id_of(self, name: str) -> uuid.UUID | None:
        return None

    def has_partition(self, name: str, partition: int) -> bool:
        return name in self.created and partition < 50

    def partition_count(self, name: str) -> int | None:
        return 50 if name in self.created else None

    def leader(self, name: str, partition: int, listener_name: str) -> Node | None:
        # Only the partition of "my-group" and SHARE_KEY has a leader.
        if name not in self.created or not self.has_leader or partition != 12:
            return None
        return NODES[listener_name]


def find(
    cluster: Cluster,
    version: int,
    *keys: str,
    key_type: int = 0,
    listener: str = "INTERNAL",
) -> Any:
    handler = FindCoordinatorHandler(cluster, cluster.ensure_internal_topic)
    request = FindCoordinatorRequest(key_type=key_type)
    if version < 4:
        request.key = keys[0]
    else:
        request.coordinator_keys = list(keys)
    received = decode(FindCoordinatorRequest, version, encode(request, version))
    context = RequestContext(ApiKey.FIND_COORDINATOR, version, listener_name=listener)
    answer = asyncio.run(handler.handle(context, received))
    response = decode(FindCoordinatorResponse, version, encode(answer, version))
    return response if version < 4 else response.coordinators


@pytest.mark.parametrize("version", range(7))
@pytest.mark.parametrize("listener", ["INTERNAL", "EXTERNAL"])
def test_a_group_by_the_listener_it_was_asked_on(version: int, listener: str) -> None:
    cluster = Cluster()
    found = find(cluster, version, "my-group", listener=listener)
    if version >= 4:
        (found,) = found
        assert found.key == "my-group"
    assert found.error_code == ErrorCode.NONE
    assert Node(found.node_id, found.host, found.port) == NODES[listener]
    assert cluster.created == ["__consumer_offsets"]


def test_the_topic_is_created_once() -> None:
    cluster = Cluster()
    find(cluster, 4, "my-group", "my-group")
    assert cluster.created == ["__consumer_offsets"]


def test_each_key_has_its_own_answer() -> None:
    mine, other = find(Cluster(), 4, "my-group", "other")
    assert mine.error_code == ErrorCode.NONE
    assert other.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (other.key, other.node_id, other.host, other.port) == ("other", -1, "", -1)


@pytest.mark.parametrize("version", [0, 3, 4, 6])
@pytest.mark.parametrize(
    "cluster",
    [
        pytest.param(Cluster(leader=False), id="no leader yet"),
        pytest.param(
            Cluster(create_error=ErrorCode.INVALID_REPLICATION_FACTOR), id="cannot be created"
        ),
    ],
)
def test_not_available_is_retriable(version: int, cluster: Cluster) -> None:
    found = find(cluster, version, "my-group")
    found = found[0] if version >= 4 else found
    assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert ErrorCode(found.error_code).retriable
    assert found.node_id == -1


@pytest.mark.parametrize(
    ("key_type", "key", "topic"),
    [
        (1, "my-group", "__transaction_state"),
        (2, SHARE_KEY, "__share_group_state"),
    ],
)
def test_other_kinds_of_coordinators(key_type: int, key: str, topic: str) -> None:
    cluster = Cluster()
    (found,) = find(cluster, 6, key, key_type=key_type)
    assert found.error_code == ErrorCode.NONE
    assert cluster.created == [topic]


@pytest.mark.parametrize(
    ("key_type", "version", "key"),
    [
        (9, 6, "k"),
        (-1, 6, "k"),
        (2, 5, SHARE_KEY),
        (2, 6, "k"),
        (2, 6, "g:not-an-id:0"),
        (2, 6, " :AAAAAAAAAAAAAAAAAAAAEQ:0"),
        (2, 6, "g:AAAAAAAAAAAAAAAAAAAAEQ:x"),
        (2, 6, "g:AAAAAAAAAAAAAAAAAAAAEQ:-1"),
    ],
)
def test_keys_that_nobody_coordinates(key_type: int, version: int, key: str) -> None:
    cluster = Cluster()
    (found,) = find(cluster, version, key, key_type=key_type)
    assert found.error_code == ErrorCode.INVALID_REQUEST
    assert cluster.created == [], "nothing is created for it"
