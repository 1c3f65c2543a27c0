"""Markers to partitions that other brokers lead: who is told, and what becomes of the answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from moldau.broker.coordinator.transaction.machine.metadata import (
    PREPARE_COMMIT,
    TransactionMetadata,
)
from moldau.broker.coordinator.transaction.machine.values import (
    Marker,
    MarkerResult,
    TopicPartition,
)
from moldau.broker.coordinator.transaction.sending import MarkerSending
from moldau.broker.handlers.write_txn_markers import WriteTxnMarkersHandler
from moldau.broker.network.context import RequestContext
from moldau.broker.transactions.cluster_markers import ClusterMarkers
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from support.channels import HandClock
from support.other_brokers import FAR, ME, NEAR, OtherBroker, OtherBrokers, settle

NONE = ErrorCode.NONE


class Partitions:
    """The partitions of one broker: they take every marker, or answer as told."""

    def __init__(self) -> None:
        self.written: list[Marker] = []
        self.errors: dict[TopicPartition, list[ErrorCode]] = {}

    async def write(self, markers: Sequence[Marker]) -> list[MarkerResult]:
        self.written += markers
        return [{name: self._outcome(name) for name in each.partitions} for each in markers]

    def _outcome(self, name: TopicPartition) -> ErrorCode:
        errors = self.errors.get(name)
        return errors.pop(0) if errors else NONE

    def serve(self, broker: OtherBroker) -> None:
        handler = WriteTxnMarkersHandler(self)

        async def answer(key: ApiKey, request: Message) -> Message:
            assert key is ApiKey.WRITE_TXN_MARKERS
            assert isinstance(request, WriteTxnMarkersRequest)
            return await handler.handle(RequestContext(key, 2, 1, None), request)

        broker.answer = answer


class World:
    def __init__(self) -> None:
        self.brokers = OtherBrokers()
        self.partitions = {each: Partitions() for each in (ME, NEAR, FAR)}
        for broker_id, broker in self.brokers.peers.items():
            self.partitions[broker_id].serve(broker)
        self.markers = ClusterMarkers(self.partitions[ME], self.brokers.brokers)

    def told(self, broker_id: int) -> list[tuple[TopicPartition, ...]]:
        return [marker.partitions for marker in self.partitions[broker_id].written]


def play(scene: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(60):
            await scene(World())

    asyncio.run(run())


def marker(*indexes: int, producer_id: int = 7, topic: str = "t") -> Marker:
    return Marker(
        producer_id=producer_id,
        producer_epoch=3,
        coordinator_epoch=5,
        committed=True,
        transaction_version=2,
        partitions=tuple((topic, index) for index in indexes),
    )


def test_each_broker_is_told_of_its_own_partitions() -> None:
    async def scene(world: World) -> None:
        world.brokers.create_topic("t", ME, NEAR, FAR, NEAR)
        world.partitions[FAR].errors["t", 2] = [ErrorCode.NOT_ENOUGH_REPLICAS]
        (result,) = await world.markers.write([marker(0, 1, 2, 3)])
        assert result == {
            ("t", 0): NONE,
            ("t", 1): NONE,
            ("t", 2): ErrorCode.NOT_ENOUGH_REPLICAS,
            ("t", 3): NONE,
        }
        assert world.partitions[ME].written == [marker(0)]
        assert world.partitions[NEAR].written == [marker(1, 3)]
        assert world.partitions[FAR].written == [marker(2)]

    play(scene)


def test_what_is_led_here_goes_no_further() -> None:
    async def scene(world: World) -> None:
        world.brokers.create_topic("t", ME, ME)
        whole = marker(0, 1)
        await world.markers.write([whole])
        assert world.partitions[ME].written[0] is whole
        assert not world.brokers.channels

    play(scene)


def test_partitions_without_a_leader_and_partitions_that_are_gone() -> None:
    async def scene(world: World) -> None:
        world.brokers.create_topic("t", -1)
        (result,) = await world.markers.write([marker(0, 9)])
        assert result == {
            ("t", 0): ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ("t", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }

    play(scene)


def test_markers_gather_while_a_request_is_under_way() -> None:
    async def scene(world: World) -> None:
        world.brokers.create_topic("t", NEAR, NEAR)
        peer = world.brokers.peers[NEAR]
        peer.gate.clear()
        writes = []
        # Two of one producer are told apart by time only.
        for producer_id in (1, 2, 3, 3):
            writes.append(
                asyncio.ensure_future(world.markers.write([marker(0, producer_id=producer_id)]))
            )
            await settle()
        peer.gate.set()
        assert await asyncio.gather(*writes) == [[{("t", 0): NONE}]] * 4
        assert [
            [each.producer_id for each in request.markers]
            for request in peer.asked
            if isinstance(request, WriteTxnMarkersRequest)
        ] == [[1], [2, 3], [3]]

    play(scene)


def test_a_response_that_leaves_partitions_out_ends_nothing() -> None:
    async def scene(world: World) -> None:
        world.brokers.create_topic("t", NEAR)

        async def answer(key: ApiKey, request: Message) -> Message:
            return WriteTxnMarkersResponse()

        world.brokers.peers[NEAR].answer = answer
        (result,) = await world.markers.write([marker(0)])
        assert result == {("t", 0): ErrorCode.UNKNOWN_SERVER_ERROR}

    play(scene)


@pytest.mark.parametrize("answer_lost", [False, True])
def test_a_cut_connection_costs_only_its_broker(answer_lost: bool) -> None:
    async def scene(world: World) -> None:
        world.brokers.create_topic("t", ME, NEAR, FAR)
        world.brokers.peers[NEAR].cut = not answer_lost
        world.brokers.peers[NEAR].cut_after = answer_lost
        (result,) = await world.markers.write([marker(0, 1, 2)])
        assert result == {
            ("t", 0): NONE,
            ("t", 1): ErrorCode.NETWORK_EXCEPTION,
            ("t", 2): NONE,
        }

    play(scene)


# With the sender, which does not give up.


def prepared(*indexes: int) -> TransactionMetadata:
    created = TransactionMetadata.created("id", 7, 60_000, 1_000)
    begun = created.with_partitions({("t", index) for index in indexes}, 2, 1_000)
    return begun.prepared_v2(PREPARE_COMMIT, -1, 1_000)


class Directory:
    def __init__(self, brokers: OtherBrokers) -> None:
        self._brokers = brokers

    def has_partition(self, name: str, partition: int) -> bool:
        return self._brokers.leaders.leader(name, partition) is not None


class Sending:
    def __init__(self, world: World, *indexes: int) -> None:
        self.clock = HandClock()
        self.bugs: list[Exception] = []
        self.current = True
        sending = MarkerSending(
            world.markers, Directory(world.brokers), self.clock, self.bugs.append
        )
        self.task = asyncio.ensure_future(sending.send(prepared(*indexes), 5, lambda: self.current))

    async def advance(self, delay_ms: int) -> None:
        for _ in range(max(delay_ms // 20, 1)):
            await settle()
            self.clock.advance(20)
        await settle()


def test_a_leader_that_moves_is_followed() -> None:
    async def scene(world: World) -> None:
        world.brokers.create_topic("t", NEAR, ME)
        world.partitions[NEAR].errors["t", 0] = [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 50
        sending = Sending(world, 0, 1)
        await sending.advance(100)
        world.brokers.move("t", 0, FAR)
        await sending.advance(1_000)
        assert await sending.task
        assert world.told(FAR) == [(("t", 0),)]
        assert world.told(ME) == [(("t", 1),)], "who has its marker needs no other"

    play(scene)


def test_a_leader_that_answers_no_more_is_left_when_it_is_fenced() -> None:
    async def scene(world: World) -> None:
        world.brokers.create_topic("t", NEAR)
        world.brokers.peers[NEAR].gate.clear()
        sending = Sending(world, 0)
        await sending.advance(100)
        world.brokers.fence(NEAR)
        world.brokers.move("t", 0, FAR)
        # Far sooner than the request's own timeout.
        await sending.advance(100)
        assert await sending.task
        assert world.told(FAR) == [(("t", 0),)]

    play(scene)


def test_a_lost_answer_means_a_second_delivery_and_one_end() -> None:
    async def scene(world: World) -> None:
        world.brokers.create_topic("t", NEAR)
        world.brokers.peers[NEAR].cut_after = True
        sending = Sending(world, 0)
        await sending.advance(20)
        world.brokers.peers[NEAR].cut_after = False
        await sending.advance(200)
        assert await sending.task
        first, *others = world.partitions[NEAR].written
        assert others
        assert all(each == first for each in others)

    play(scene)


def test_a_deleted_topic_needs_no_marker() -> None:
    async def scene(world: World) -> None:
        world.brokers.create_topic("t", NEAR)
        world.partitions[NEAR].errors["t", 0] = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 50
        sending = Sending(world, 0)
        await sending.advance(100)
        assert not sending.task.done()
        world.brokers.delete_topic("t")
        await sending.advance(1_000)
        assert await sending.task

    play(scene)


def test_a_coordinator_that_has_a_successor_sends_no_more() -> None:
    async def scene(world: World) -> None:
        world.brokers.create_topic("t", NEAR, FAR)
        world.partitions[NEAR].errors["t", 0] = [ErrorCode.TRANSACTION_COORDINATOR_FENCED]
        world.partitions[FAR].errors["t", 1] = [ErrorCode.NOT_LEADER_OR_FOLLOWER]
        sending = Sending(world, 0, 1)
        await sending.advance(1_000)
        assert not await sending.task
        assert len(world.told(FAR)) == 1

    play(scene)
