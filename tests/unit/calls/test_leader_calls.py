"""Calls to the leader of a partition: which broker is called, and how each call ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence

import pytest

from moldau.broker.calls.leader_calls import BatchRequest, LeaderCalls
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import ListOffsetsRequest, ListOffsetsResponse
from support.other_brokers import FAR, ME, NEAR, OtherBroker, OtherBrokers, settle

WHOLE_RESPONSE, LEFT_OUT, REJECTED = 90, 91, 92

_TopicRequest = ListOffsetsRequest.ListOffsetsTopic
_PartitionRequest = ListOffsetsRequest.ListOffsetsPartition
_TopicResponse = ListOffsetsResponse.ListOffsetsTopicResponse
_PartitionResponse = ListOffsetsResponse.ListOffsetsPartitionResponse


def encode(items: Sequence[int]) -> Message:
    partitions = [_PartitionRequest(partition_index=item, timestamp=-1) for item in items]
    return ListOffsetsRequest(topics=[_TopicRequest(name="t", partitions=partitions)])


def decode(response: Message) -> Mapping[Hashable, str | ApiError]:
    assert isinstance(response, ListOffsetsResponse)
    results: dict[Hashable, str | ApiError] = {}
    for each in response.topics[0].partitions:
        if each.partition_index == WHOLE_RESPONSE:
            raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "all of it")
        failed = each.partition_index == REJECTED
        results[each.partition_index] = (
            ApiError(ErrorCode.OFFSET_NOT_AVAILABLE) if failed else f"broker {each.offset}"
        )
    return results


def serve(broker_id: int, broker: OtherBroker) -> None:
    """Have each result name the broker that it is from."""

    async def answer(key: ApiKey, request: Message) -> Message:
        assert isinstance(request, ListOffsetsRequest)
        partitions = [
            _PartitionResponse(partition_index=each.partition_index, offset=broker_id)
            for each in request.topics[0].partitions
            if each.partition_index != LEFT_OUT
        ]
        return ListOffsetsResponse(topics=[_TopicResponse(name="t", partitions=partitions)])

    broker.answer = answer


class World:
    def __init__(self) -> None:
        self.brokers = OtherBrokers()
        for broker_id, broker in self.brokers.peers.items():
            serve(broker_id, broker)
        self.brokers.create_topic("t", ME, NEAR, FAR, -1)
        self.calls: LeaderCalls[int, str] = LeaderCalls(
            self.brokers.brokers,
            BatchRequest(
                api=ApiKey.LIST_OFFSETS,
                encode=encode,
                decode=decode,
                key=lambda item: item,
                group=lambda item: item >= 50,
            ),
            no_partition=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            no_leader=ErrorCode.LEADER_NOT_AVAILABLE,
        )

    def call(self, partition: int, item: int = 0) -> asyncio.Task[str]:
        async def here() -> str:
            return "this broker"

        return asyncio.ensure_future(self.calls.call(("t", partition), item, here))

    def requests(self, broker_id: int) -> list[list[int]]:
        return [
            [each.partition_index for each in request.topics[0].partitions]
            for request in self.brokers.peers[broker_id].asked
            if isinstance(request, ListOffsetsRequest)
        ]


def play(scene: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(60):
            await scene(World())

    asyncio.run(run())


async def code_of(call: asyncio.Task[str]) -> ErrorCode:
    with pytest.raises(ApiError) as raised:
        await call
    return raised.value.code


def test_the_leader_is_called_and_this_broker_without_a_request() -> None:
    async def scene(world: World) -> None:
        assert await world.call(0) == "this broker"
        assert not world.brokers.channels
        assert await world.call(1) == "broker 2"
        assert await world.call(2) == "broker 3"

    play(scene)


def test_partitions_without_a_leader_and_unknown_partitions() -> None:
    async def scene(world: World) -> None:
        assert await code_of(world.call(3)) is ErrorCode.LEADER_NOT_AVAILABLE
        assert await code_of(world.call(9)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert world.calls.by_leader([("t", index) for index in (0, 1, 3, 1, 9)]) == (
            {ME: [("t", 0)], NEAR: [("t", 1), ("t", 1)]},
            {
                ("t", 3): ErrorCode.LEADER_NOT_AVAILABLE,
                ("t", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            },
        )

    play(scene)


def test_a_leader_that_moves_is_found_again() -> None:
    async def scene(world: World) -> None:
        for leader, result in ((NEAR, "broker 2"), (FAR, "broker 3"), (ME, "this broker")):
            world.brokers.move("t", 1, leader)
            assert await world.call(1) == result

    play(scene)


def test_calls_accumulate_while_a_request_is_in_flight() -> None:
    async def scene(world: World) -> None:
        world.brokers.peers[NEAR].gate.clear()
        calls = []
        for item in (1, 2, 3, 3, 51):
            calls.append(world.call(1, item))
            await settle()
        world.brokers.peers[NEAR].gate.set()
        assert await asyncio.gather(*calls) == ["broker 2"] * 5
        # Another group does not wait, and an item of the same key is not in the same request.
        assert world.requests(NEAR) == [[1], [51], [2, 3], [3]]

    play(scene)


def test_each_call_has_its_own_result() -> None:
    async def scene(world: World) -> None:
        good, rejected, left_out = (world.call(1, item) for item in (49, REJECTED, LEFT_OUT))
        assert await good == "broker 2"
        assert await code_of(rejected) is ErrorCode.OFFSET_NOT_AVAILABLE
        with pytest.raises(ApiError, match="ListOffsets response of broker 2 has no result for 91"):
            await left_out

    play(scene)


def test_a_response_with_an_error_fails_all_calls_of_its_request() -> None:
    async def scene(world: World) -> None:
        calls = [world.call(1, item) for item in (60, WHOLE_RESPONSE)]
        for call in calls:
            assert await code_of(call) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert await world.call(1, 60) == "broker 2"

    play(scene)


@pytest.mark.parametrize("how", ["cut", "cut_after", "fenced", "stopped"])
def test_a_call_without_a_response_fails_and_only_that(how: str) -> None:
    async def scene(world: World) -> None:
        peer = world.brokers.peers[NEAR]
        if how.startswith("cut"):
            setattr(peer, how, True)
        else:
            peer.gate.clear()
        lost = world.call(1)
        await settle()
        waiting = world.call(1, 1)
        await settle()
        if how == "fenced":
            world.brokers.fence(NEAR)
        elif how == "stopped":
            world.brokers.out.close()
        assert await code_of(lost) is ErrorCode.NETWORK_EXCEPTION
        assert await code_of(waiting) is ErrorCode.NETWORK_EXCEPTION
        if how != "stopped":
            assert await world.call(2) == "broker 3"

    play(scene)
