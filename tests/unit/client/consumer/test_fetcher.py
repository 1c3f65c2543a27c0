"""Whom the consumer asks for what, and how far ahead; on a loop, with a cluster made of answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast
from uuid import UUID

import pytest

from moldau.client.cluster import ClusterClient
from moldau.client.consumer.fetcher import Fetcher
from moldau.client.consumer.machine.fetch_buffer import FetchBuffer
from moldau.client.consumer.machine.positions import EARLIEST, FetchState, Position
from moldau.client.consumer.machine.subscription import SubscriptionState
from moldau.client.consumer.settings import consumer_settings
from moldau.client.deadline import Deadline
from moldau.client.errors import DisconnectError, OffsetOutOfRangeError
from moldau.client.machine.metadata import EMPTY, ClusterMetadata
from moldau.client.metrics import ConsumerMetrics, Metrics
from moldau.client.network_settings import NetworkSettings
from moldau.client.topics import TopicPartition
from moldau.clock import LoopClock
from moldau.peers.channel import RawResponse
from moldau.wire.codec import encode
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import FetchRequest, FetchResponse, MetadataResponse
from moldau.wire.records import encode_batch

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
TOPIC_ID = UUID(int=5)
VERSION = 18


def picture(*leaders: int) -> ClusterMetadata:
    topic = MetadataResponse.MetadataResponseTopic(
        name="t",
        topic_id=TOPIC_ID,
        partitions=[
            MetadataResponse.MetadataResponsePartition(
                partition_index=index, leader_id=leader, leader_epoch=4
            )
            for index, leader in enumerate(leaders)
        ],
    )
    brokers = [
        MetadataResponse.MetadataResponseBroker(node_id=node, host="h", port=node)
        for node in (1, 2)
    ]
    return EMPTY.updated(MetadataResponse(brokers=brokers, topics=[topic]), complete=True)


class Nodes:
    """Stands in for the cluster: keeps every Fetch until the test answers it."""

    def __init__(self, metadata: ClusterMetadata) -> None:
        self.clock = LoopClock()
        self.settings = NetworkSettings(bootstrap=(), retry_backoff_ms=1)
        self.metadata = metadata
        self.waiting: list[tuple[int, FetchRequest, asyncio.Future[RawResponse]]] = []
        self.refreshes = 0
        self.came = asyncio.Event()

    async def call_raw(self, node: int, request: FetchRequest, **_: Any) -> RawResponse:
        self.came.set()
        answer = asyncio.get_running_loop().create_future()
        self.waiting.append((node, request, answer))
        return cast(RawResponse, await answer)

    def request_refresh(self) -> None:
        self.refreshes += 1

    def note_throttle(self, node_id: int, throttle_time_ms: int) -> None:
        assert throttle_time_ms == 0

    def apply_leader_hints(self, metadata: ClusterMetadata) -> None:
        self.metadata = metadata


class Stage:
    def __init__(self, *leaders: int, **settings: Any) -> None:
        self.nodes = Nodes(picture(*leaders))
        self.subscription = SubscriptionState(EARLIEST)
        self.subscription.assign_by_user([A, B][: len(leaders)])
        for key in self.subscription.assignment:
            self.subscription.seek(key, Position(0))
        self.subscription.on_metadata(self.nodes.metadata)
        self.arrivals = 0
        self.buffer = FetchBuffer(self.subscription, lambda completed: None, lambda: None)
        self.fetcher = Fetcher(
            cast(ClusterClient, self.nodes),
            self.subscription,
            self.buffer,
            consumer_settings({"bootstrap.servers": "a:1"}, settings),
            ConsumerMetrics(Metrics()),
            self._arrived,
        )

    def _arrived(self) -> None:
        self.arrivals += 1

    async def asked(self) -> list[tuple[int, FetchRequest]]:
        """The requests that wait for an answer, once nothing more is sent."""
        for _ in range(5):
            await asyncio.sleep(0)
        return [(node, request) for node, request, _ in self.nodes.waiting]

    async def answer(self, *parts: FetchResponse.PartitionData, session_id: int = 9) -> None:
        """Of the request that waits for longest."""
        topic = FetchResponse.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=list(parts))
        response = FetchResponse(session_id=session_id, responses=[topic] if parts else [])
        _, _, waiting = self.nodes.waiting.pop(0)
        waiting.set_result(RawResponse(VERSION, memoryview(encode(response, VERSION))))
        await self.asked()

    def collected(self) -> list[int]:
        found, _ = self.buffer.collect(100)
        return [record.offset for records in found.values() for record in records]


def part(index: int, base_offset: int, count: int, **fields: Any) -> FetchResponse.PartitionData:
    records = encode_batch([(None, b"v", 0, ())] * count, base_offset=base_offset)
    fields = {"high_watermark": 100, "aborted_transactions": None, "records": records} | fields
    return FetchResponse.PartitionData(partition_index=index, **fields)


def failed(index: int, error: ErrorCode, **fields: Any) -> FetchResponse.PartitionData:
    return FetchResponse.PartitionData(
        partition_index=index, error_code=error, high_watermark=-1, **fields
    )


def offsets(request: FetchRequest) -> dict[int, int]:
    return {
        each.partition: each.fetch_offset for topic in request.topics for each in topic.partitions
    }


def scene(play: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def test() -> None:
        asyncio.run(play())

    test.__name__ = play.__name__
    return test


@scene
async def test_each_leader_is_asked_for_its_partitions() -> None:
    stage = Stage(1, 2)
    stage.fetcher.kick()
    stage.fetcher.kick()
    (first, one), (second, two) = await stage.asked()
    assert (first, offsets(one), second, offsets(two)) == (1, {0: 0}, 2, {1: 0})
    assert one.topics[0].topic_id == TOPIC_ID
    assert one.topics[0].partitions[0].current_leader_epoch == 4
    await stage.fetcher.close(Deadline(stage.nodes.clock, 0))


@scene
async def test_it_fetches_ahead_but_not_without_end() -> None:
    stage = Stage(1)
    stage.fetcher.kick()
    await stage.asked()
    await stage.answer(part(0, 0, 3))
    assert stage.arrivals == 1
    ((_, second),) = await stage.asked()
    assert offsets(second) == {0: 3}
    assert (second.session_id, second.session_epoch) == (9, 1)
    await stage.answer(part(0, 3, 3))
    # Two parts wait for the application: that is enough.
    assert await stage.asked() == []
    assert stage.buffer.short_of_room
    assert stage.collected() == [0, 1, 2, 3, 4, 5]
    stage.fetcher.kick()
    ((_, third),) = await stage.asked()
    assert offsets(third) == {0: 6}


@scene
async def test_full_buffers_hold_only_one_part_of_each() -> None:
    stage = Stage(1, 1, fetch_max_bytes=10)
    stage.fetcher.kick()
    await stage.asked()
    await stage.answer(part(0, 0, 3))
    ((_, second),) = await stage.asked()
    # B has nothing yet; A has to wait, and leaves the session meanwhile.
    assert offsets(second) == {}
    assert [(each.topic_id, each.partitions) for each in second.forgotten_topics_data] == [
        (TOPIC_ID, [0])
    ]


@scene
async def test_paused_partitions_are_not_asked_for() -> None:
    stage = Stage(1, 1)
    stage.subscription.set_paused([A], True)
    stage.fetcher.kick()
    ((_, request),) = await stage.asked()
    assert offsets(request) == {1: 0}


@scene
async def test_an_answer_about_a_position_that_was_left() -> None:
    stage = Stage(1)
    stage.fetcher.kick()
    await stage.asked()
    stage.subscription.seek(A, Position(7, None, 1, 4))
    await stage.answer(part(0, 0, 3))
    assert stage.collected() == []
    ((_, request),) = await stage.asked()
    assert offsets(request) == {0: 7}


@scene
async def test_a_leader_that_says_who_leads_now() -> None:
    stage = Stage(1)
    # The new leader is asked at once; the old one must not be asked in between.
    stage.nodes.settings = NetworkSettings(bootstrap=(), retry_backoff_ms=60_000)
    stage.fetcher.kick()
    await stage.asked()
    leader = FetchResponse.LeaderIdAndEpoch(leader_id=2, leader_epoch=5)
    await stage.answer(failed(0, ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=leader))
    view = stage.nodes.metadata.partition(A)
    assert view is not None
    assert (view.leader_id, view.leader_epoch) == (2, 5)
    assert stage.nodes.refreshes == 1
    stage.subscription.on_metadata(stage.nodes.metadata)
    stage.fetcher.kick()
    ((node, request),) = await stage.asked()
    assert (node, offsets(request)) == (2, {0: 0})
    assert request.topics[0].partitions[0].current_leader_epoch == 5


@scene
async def test_a_replica_that_the_leader_prefers() -> None:
    stage = Stage(1)
    stage.fetcher.kick()
    await stage.asked()
    await stage.answer(
        FetchResponse.PartitionData(partition_index=0, high_watermark=9, preferred_read_replica=2)
    )
    ((node, _),) = await stage.asked()
    assert node == 2
    # A follower may lag: the leader is asked before the position is given up.
    await stage.answer(failed(0, ErrorCode.OFFSET_OUT_OF_RANGE))
    ((node, _),) = await stage.asked()
    assert node == 1
    assert stage.subscription.assignment[A].state is FetchState.FETCHING
    await stage.answer(failed(0, ErrorCode.OFFSET_OUT_OF_RANGE))
    assert stage.collected() == []
    assert stage.subscription.assignment[A].state is FetchState.AWAIT_RESET


@scene
async def test_out_of_range_waits_for_what_is_before_it() -> None:
    stage = Stage(1)
    stage.subscription.default_reset = stage.subscription.default_reset._replace(
        kind=type(EARLIEST.kind).NONE
    )
    stage.fetcher.kick()
    await stage.asked()
    await stage.answer(part(0, 0, 2))
    await stage.answer(failed(0, ErrorCode.OFFSET_OUT_OF_RANGE))
    assert stage.collected() == [0, 1]
    with pytest.raises(OffsetOutOfRangeError, match="position 2"):
        stage.collected()


@scene
async def test_a_lost_connection() -> None:
    stage = Stage(1)
    stage.fetcher.kick()
    await stage.asked()
    await stage.answer(part(0, 0, 2))
    _, _, waiting = stage.nodes.waiting.pop(0)
    waiting.set_exception(DisconnectError("gone"))
    stage.nodes.came.clear()
    async with asyncio.timeout(60):
        await stage.nodes.came.wait()
    ((_, request),) = await stage.asked()
    # Everything is named again; the session before is closed by that.
    assert (request.session_id, request.session_epoch) == (9, 0)
    assert offsets(request) == {0: 2}
    assert stage.nodes.refreshes == 1


@scene
async def test_closing_lets_the_node_forget() -> None:
    stage = Stage(1)
    stage.fetcher.kick()
    await stage.asked()
    await stage.answer(part(0, 0, 2))
    stage.nodes.waiting.clear()
    closing = asyncio.create_task(stage.fetcher.close(Deadline(stage.nodes.clock, 1000)))
    ((_, request),) = await stage.asked()
    assert (request.session_id, request.session_epoch, request.topics) == (9, -1, [])
    await stage.answer(session_id=0)
    await closing
