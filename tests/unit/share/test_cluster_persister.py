"""The state of share partitions that another node coordinates."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

import pytest

from moldau.broker.coordinator.machine.hashing import partition_for
from moldau.broker.coordinator.share.machine.values import (
    SharePartitionKey,
    ShareState,
    ShareStateSummary,
    StateBatch,
)
from moldau.broker.handlers.delete_share_group_state import DeleteShareGroupStateHandler
from moldau.broker.handlers.initialize_share_group_state import InitializeShareGroupStateHandler
from moldau.broker.handlers.read_share_group_state import ReadShareGroupStateHandler
from moldau.broker.handlers.read_share_group_state_summary import ReadShareGroupStateSummaryHandler
from moldau.broker.handlers.write_share_group_state import WriteShareGroupStateHandler
from moldau.broker.machine.topics import SHARE_STATE_TOPIC
from moldau.broker.network.context import RequestContext
from moldau.broker.share.cluster_persister import ClusterShareCoordinator
from moldau.broker.share.persister import RetryingPersister
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import WriteShareGroupStateRequest
from support.other_brokers import FAR, ME, NEAR, OtherBroker, OtherBrokers, settle

TOPIC = UUID(int=77)


class Coordinator:
    """Keeps whole states; fails when told to."""

    def __init__(self) -> None:
        self.states: dict[SharePartitionKey, ShareState] = {}
        self.completed: dict[SharePartitionKey, int] = {}
        self.errors: list[ErrorCode] = []
        self.calls = 0

    def partition_for(self, key: SharePartitionKey | str) -> int:
        return partition_for(str(key), 3)

    def _check(self, key: SharePartitionKey) -> None:
        self.calls += 1
        if self.errors:
            raise ApiError(self.errors.pop(0), f"as told of {key}")

    async def initialize_state(
        self, key: SharePartitionKey, *, state_epoch: int, start_offset: int
    ) -> None:
        self._check(key)
        self.states[key] = ShareState(state_epoch, start_offset)

    async def read_state(self, key: SharePartitionKey, *, leader_epoch: int) -> ShareState:
        self._check(key)
        return self.states[key]

    async def write_state(
        self,
        key: SharePartitionKey,
        *,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> None:
        self._check(key)
        self.states[key] = ShareState(state_epoch, start_offset, tuple(batches))
        self.completed[key] = delivery_complete_count

    async def delete_state(self, key: SharePartitionKey) -> None:
        self._check(key)
        del self.states[key]

    async def read_summary(
        self, key: SharePartitionKey, *, leader_epoch: int = -1
    ) -> ShareStateSummary:
        self._check(key)
        state = self.states[key]
        return ShareStateSummary(state.state_epoch, 4, state.start_offset, self.completed[key])


def serve(coordinator: Coordinator, broker: OtherBroker) -> None:
    handlers: dict[ApiKey, Any] = {
        ApiKey.INITIALIZE_SHARE_GROUP_STATE: InitializeShareGroupStateHandler(coordinator),
        ApiKey.READ_SHARE_GROUP_STATE: ReadShareGroupStateHandler(coordinator),
        ApiKey.WRITE_SHARE_GROUP_STATE: WriteShareGroupStateHandler(coordinator),
        ApiKey.DELETE_SHARE_GROUP_STATE: DeleteShareGroupStateHandler(coordinator),
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: ReadShareGroupStateSummaryHandler(coordinator),
    }

    async def answer(key: ApiKey, request: Message) -> Message:
        response: Message = await handlers[key].handle(RequestContext(key, 1, 1, None), request)
        return response

    broker.answer = answer


class World:
    def __init__(self) -> None:
        self.brokers = OtherBrokers()
        self.coordinators = {each: Coordinator() for each in (ME, NEAR, FAR)}
        for broker_id, broker in self.brokers.peers.items():
            serve(self.coordinators[broker_id], broker)
        self.brokers.create_topic(SHARE_STATE_TOPIC, ME, NEAR, FAR)
        self.coordinator = ClusterShareCoordinator(self.coordinators[ME], self.brokers.brokers)
        self.slept: list[int] = []
        self.created = 0
        self.on_sleep: Callable[[], None] = lambda: None
        self.persister = RetryingPersister(self.coordinator, self._create_topic, self._wait)

    async def _wait(self, delay_ms: int) -> None:
        self.slept.append(delay_ms)
        self.on_sleep()

    async def _create_topic(self) -> None:
        self.created += 1
        if SHARE_STATE_TOPIC not in self.brokers.image.topics_by_name:
            self.brokers.create_topic(SHARE_STATE_TOPIC, ME, NEAR, FAR)

    def key(self, partition: int, number: int = 0, group: str = "g") -> SharePartitionKey:
        """A share partition whose state this partition of the topic holds."""
        keys = (SharePartitionKey(group, TOPIC, index) for index in range(100))
        return [each for each in keys if partition_for(str(each), 3) == partition][number]

    async def write(self, key: SharePartitionKey, offset: int = 9) -> None:
        await self.persister.write_state(
            key,
            state_epoch=3,
            leader_epoch=4,
            start_offset=5,
            delivery_complete_count=1,
            batches=[StateBatch(6, offset, 2, 1)],
        )


def play(scene: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(60):
            await scene(World())

    asyncio.run(run())


def code_of(error: pytest.ExceptionInfo[ApiError]) -> ErrorCode:
    return error.value.code


def test_every_call_reaches_the_coordinator_of_its_share_partition() -> None:
    async def scene(world: World) -> None:
        for partition, broker_id in enumerate((ME, NEAR, FAR)):
            key, states = world.key(partition), world.coordinators[broker_id].states
            await world.persister.initialize_state(key, state_epoch=3, start_offset=-1)
            assert states == {key: ShareState(3, -1)}
            await world.write(key)
            expected = ShareState(3, 5, (StateBatch(6, 9, 2, 1),))
            assert await world.persister.read_state(key, leader_epoch=4) == expected
            summary = await world.persister.read_summary(key)
            assert summary == ShareStateSummary(3, 4, 5, 1)
            await world.persister.delete_state(key)
            assert not states
        assert not world.slept

    play(scene)


@pytest.mark.parametrize(
    "error",
    [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH, ErrorCode.INVALID_REQUEST],
)
def test_refusals_are_passed_on_at_once(error: ErrorCode) -> None:
    async def scene(world: World) -> None:
        world.coordinators[NEAR].errors = [error]
        with pytest.raises(ApiError, match="as told") as refused:
            await world.write(world.key(1))
        assert code_of(refused) is error
        assert not world.slept

    play(scene)


def test_a_coordinator_that_moves_is_found_again() -> None:
    async def scene(world: World) -> None:
        key = world.key(1)
        world.coordinators[NEAR].errors = [ErrorCode.NOT_COORDINATOR] * 9
        world.on_sleep = lambda: world.brokers.move(SHARE_STATE_TOPIC, 1, FAR)
        await world.write(key)
        assert key in world.coordinators[FAR].states
        world.brokers.move(SHARE_STATE_TOPIC, 1, ME)
        await world.write(key)
        assert key in world.coordinators[ME].states
        assert world.coordinators[NEAR].calls == 1

    play(scene)


def test_a_lost_answer_means_a_second_delivery() -> None:
    async def scene(world: World) -> None:
        peer = world.brokers.peers[NEAR]
        peer.cut_after = True

        def mend() -> None:
            peer.cut_after = False

        world.on_sleep = mend
        await world.write(world.key(1))
        assert world.coordinators[NEAR].calls == 2
        assert len(world.slept) == 1

    play(scene)


def test_attempts_are_bounded() -> None:
    async def scene(world: World) -> None:
        world.brokers.peers[NEAR].cut = True
        with pytest.raises(ApiError) as refused:
            await world.write(world.key(1))
        assert code_of(refused) is ErrorCode.NETWORK_EXCEPTION
        world.brokers.move(SHARE_STATE_TOPIC, 1, -1)
        with pytest.raises(ApiError) as refused:
            await world.write(world.key(1))
        assert code_of(refused) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert 10_000 < sum(world.slept) / 2 < 20_000
        assert max(world.slept) <= 1_000

    play(scene)


def test_the_topic_is_created_when_it_is_first_needed() -> None:
    async def scene(world: World) -> None:
        world.brokers.delete_topic(SHARE_STATE_TOPIC)
        await world.write(world.key(2))
        assert world.created == 1
        assert world.coordinators[FAR].calls == 1

    play(scene)


def test_writes_of_one_group_share_requests() -> None:
    async def scene(world: World) -> None:
        peer = world.brokers.peers[NEAR]
        peer.gate.clear()
        keys = [world.key(1, number) for number in range(3)]
        other = world.key(1, group="h")
        writing = []
        for number, key in enumerate([*keys, keys[2], other]):
            writing.append(asyncio.ensure_future(world.write(key, 10 + number)))
            await settle()
        peer.gate.set()
        await asyncio.gather(*writing)
        requests = [each for each in peer.asked if isinstance(each, WriteShareGroupStateRequest)]
        assert [
            (request.group_id, [each.partition for each in request.topics[0].partitions])
            for request in requests
        ] == [
            ("g", [keys[0].partition]),
            # Another group's request does not wait for this one's.
            ("h", [other.partition]),
            ("g", [keys[1].partition, keys[2].partition]),
            ("g", [keys[2].partition]),
        ]
        last = world.coordinators[NEAR].states[keys[2]]
        assert last.batches == (StateBatch(6, 13, 2, 1),)

    play(scene)


def test_one_partition_that_fails_costs_the_others_nothing() -> None:
    async def scene(world: World) -> None:
        world.coordinators[NEAR].errors = [ErrorCode.FENCED_LEADER_EPOCH]
        keys = [world.key(1, number) for number in range(2)]
        outcomes = await asyncio.gather(*(world.write(key) for key in keys), return_exceptions=True)
        assert isinstance(outcomes[0], ApiError)
        assert outcomes[1] is None

    play(scene)
