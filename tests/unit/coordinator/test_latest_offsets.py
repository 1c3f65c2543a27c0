"""The end of partitions that other brokers lead."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from moldau.broker.coordinator.latest_offsets import LatestOffsets
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import ListOffsetsRequest, ListOffsetsResponse
from support.channels import HandClock
from support.hosting import Host
from support.other_brokers import ME, NEAR, OtherBrokers, settle

_TopicResponse = ListOffsetsResponse.ListOffsetsTopicResponse
_PartitionResponse = ListOffsetsResponse.ListOffsetsPartitionResponse


class World:
    def __init__(self, folder: Path) -> None:
        self.host = Host(folder)
        self.brokers = OtherBrokers()
        self.clock = HandClock()
        self.errors: dict[int, ErrorCode] = {}
        self.brokers.peers[NEAR].answer = self._answer
        self.latest = LatestOffsets(self.host.replicas, self.brokers.brokers, self.clock)

    async def _answer(self, key: ApiKey, request: Message) -> Message:
        assert key is ApiKey.LIST_OFFSETS
        assert isinstance(request, ListOffsetsRequest)
        # As a consumer: what is not committed must not count.
        assert (request.replica_id, request.isolation_level) == (-1, 0)
        return ListOffsetsResponse(
            topics=[
                _TopicResponse(
                    name=topic.name,
                    partitions=[
                        _PartitionResponse(
                            partition_index=each.partition_index,
                            error_code=self.errors.get(each.partition_index, ErrorCode.NONE),
                            offset=100 + each.partition_index,
                        )
                        for each in topic.partitions
                        if each.timestamp == -1
                    ],
                )
                for topic in request.topics
            ]
        )


def play(folder: Path, scene: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(60):
            await scene(World(folder))

    asyncio.run(run())


def test_leaders_are_asked_together(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        world.brokers.create_topic("t", ME, NEAR, NEAR)
        world.host.create_topic("t", 3)
        world.host.append("t", b"a", b"b")
        found = await asyncio.gather(*(world.latest.latest_offset("t", each) for each in range(3)))
        assert found == [2, 101, 102]
        assert len(world.brokers.peers[NEAR].asked) == 1

    play(tmp_path, scene)


def test_what_is_not_committed_does_not_count_here_either(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        world.brokers.create_topic("t", ME)
        world.host.create_topic("t", replicas=(1, 2))
        world.host.append("t", b"a")
        assert await world.latest.latest_offset("t", 0) == 0

    play(tmp_path, scene)


@pytest.mark.parametrize(
    ("index", "code"),
    [
        (0, ErrorCode.LEADER_NOT_AVAILABLE),
        (1, ErrorCode.OFFSET_NOT_AVAILABLE),
        (2, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_what_is_not_known_now(tmp_path: Path, index: int, code: ErrorCode) -> None:
    async def scene(world: World) -> None:
        world.brokers.create_topic("t", -1, NEAR, ME)
        world.errors = {1: ErrorCode.OFFSET_NOT_AVAILABLE}
        with pytest.raises(ApiError) as refused:
            await world.latest.latest_offset("t", index)
        assert refused.value.code is code

    play(tmp_path, scene)


def test_a_cut_connection_is_tried_again_and_the_new_leader_asked(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        world.brokers.create_topic("t", NEAR)
        world.host.create_topic("t")
        world.brokers.peers[NEAR].cut = True
        asking = asyncio.ensure_future(world.latest.latest_offset("t", 0))
        await settle()
        world.brokers.move("t", 0, ME)
        world.clock.advance(100)
        assert await asking == 0

    play(tmp_path, scene)


def test_asking_ends(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        world.brokers.create_topic("t", NEAR)
        world.brokers.peers[NEAR].cut = True
        asking = asyncio.ensure_future(world.latest.latest_offset("t", 0))
        for _ in range(20):
            await settle()
            world.clock.advance(100)
        with pytest.raises(ApiError) as refused:
            await asking
        assert refused.value.code is ErrorCode.NETWORK_EXCEPTION

    play(tmp_path, scene)
