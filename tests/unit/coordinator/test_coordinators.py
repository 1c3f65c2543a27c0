"""The coordinators of one broker of several: what the metadata tells them, and whom they ask."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from moldau.broker.config import BrokerConfig
from moldau.broker.coordinators import Coordinators, Surroundings
from moldau.broker.machine.topics import GROUP_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.peers.channel import ChannelError
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    AllocateProducerIdsResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from support.channels import HandClock, settle
from support.hosting import NODE_ID, OTHER_NODE_ID, Host

BOTH = (NODE_ID, OTHER_NODE_ID)


class Controller:
    async def call(self, key: ApiKey, request: Message, *, timeout_ms: int) -> Message:
        return AllocateProducerIdsResponse(producer_id_start=1_000, producer_id_len=1_000)


class OtherNode:
    """Takes every marker."""

    def __init__(self) -> None:
        self.markers: list[WriteTxnMarkersRequest.WritableTxnMarker] = []

    def channel(self, node_id: int, host: str, port: int, listener_name: str) -> OtherNode:
        assert (node_id, host, listener_name) == (OTHER_NODE_ID, "host2", "PLAINTEXT")
        return self

    async def call(
        self, key: ApiKey, request: Message, *, timeout_ms: int, max_version: int | None = None
    ) -> Message:
        if not isinstance(request, WriteTxnMarkersRequest):
            raise ChannelError("nobody answers that")
        self.markers += request.markers
        response = WriteTxnMarkersResponse
        return response(
            markers=[
                response.WritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=[
                        response.WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=[
                                response.WritableTxnMarkerPartitionResult(partition_index=index)
                                for index in topic.partition_indexes
                            ],
                        )
                        for topic in marker.topics
                    ],
                )
                for marker in request.markers
            ]
        )

    async def call_raw(self, *args: Any, **options: Any) -> Any:
        raise AssertionError("nobody reads bytes here")

    def close(self) -> None: ...


class Node:
    def __init__(self, folder: Path, *, unclean: bool = False) -> None:
        self.host = Host(folder)
        self.config = BrokerConfig.from_properties(
            {
                "process.roles": "broker,controller",
                "node.id": str(NODE_ID),
                "controller.quorum.voters": f"{NODE_ID}@localhost:9093",
                "controller.listener.names": "CONTROLLER",
                "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
                "log.dirs": str(folder),
            }
        )
        self.other = OtherNode()
        self.bugs: list[Exception] = []
        self.unclean = unclean
        self.coordinators: Coordinators

    async def start(self) -> None:
        clock = HandClock()
        environment: Any = SimpleNamespace(clock=clock, random_bytes=bytes, transport=self.other)
        self.host.image.features["transaction.version"] = 2
        metadata: Any = SimpleNamespace(image=self.host.image)
        creation: Any = SimpleNamespace(ensure_internal_topic=None, create_topics=None)
        self.coordinators = Coordinators(
            Surroundings(
                node_id=NODE_ID,
                config=lambda: self.config,
                environment=environment,
                metadata=metadata,
                replicas=self.host.replicas,
                creation=creation,
                report_bug=self.bugs.append,
                spawn=lambda work: asyncio.ensure_future(work),
                unclean=self.unclean,
                controller=Controller(),
                broker_epoch=lambda: 7,
                transport=self.other,
                inter_broker_listener="PLAINTEXT",
            )
        )
        self.hear()
        await self.coordinators.loaded()

    def hear(self) -> None:
        """Let the coordinators know of all that the replica manager has heard of."""
        self.coordinators.apply(MetadataDelta(from_snapshot=True), self.host.image)


def play(node: Node, scene: Callable[[Node], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(60):
            await node.start()
            await scene(node)
            node.coordinators.close()
            await settle()

    asyncio.run(run())
    assert not node.bugs


async def begun(node: Node) -> ErrorCode:
    """What a producer meets that wants to begin."""
    try:
        await node.coordinators.transactions.init_producer_id("id", 60_000)
    except ApiError as error:
        return error.code
    return ErrorCode.NONE


def test_who_is_elected_serves_and_who_is_not_says_so(tmp_path: Path) -> None:
    async def scene(node: Node) -> None:
        assert await begun(node) is ErrorCode.NOT_COORDINATOR
        topic_id = node.host.create_topic(TRANSACTION_STATE_TOPIC, replicas=BOTH, isr=(NODE_ID,))
        node.hear()
        assert await begun(node) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await node.coordinators.loaded()
        assert await begun(node) is ErrorCode.NONE
        node.host.change_partition(topic_id, leader=OTHER_NODE_ID)
        node.hear()
        assert await begun(node) is ErrorCode.NOT_COORDINATOR
        node.host.change_partition(topic_id, leader=NODE_ID)
        node.hear()
        await node.coordinators.loaded()
        assert await begun(node) is ErrorCode.NONE

    play(Node(tmp_path), scene)


def test_a_topic_made_anew_has_other_coordinators(tmp_path: Path) -> None:
    async def scene(node: Node) -> None:
        topic_id = node.host.create_topic(TRANSACTION_STATE_TOPIC)
        for _ in range(3):
            node.host.change_partition(topic_id, leader=NODE_ID)
        node.hear()
        await node.coordinators.loaded()
        assert await begun(node) is ErrorCode.NONE
        assert node.coordinators.transactions.transactions()
        node.host.delete_topic(topic_id)
        # Its leader epoch is lower than that of the former one.
        node.host.create_topic(TRANSACTION_STATE_TOPIC, topic_id=type(topic_id)(int=9))
        node.hear()
        await node.coordinators.loaded()
        assert node.coordinators.transactions.transactions() == []
        assert await begun(node) is ErrorCode.NONE

    play(Node(tmp_path), scene)


def test_markers_go_to_where_the_partitions_are(tmp_path: Path) -> None:
    async def scene(node: Node) -> None:
        node.host.create_topic(TRANSACTION_STATE_TOPIC)
        node.host.create_topic("here")
        node.host.create_topic("there", replicas=(OTHER_NODE_ID,), leader=OTHER_NODE_ID)
        node.hear()
        await node.coordinators.loaded()
        transactions = node.coordinators.transactions
        producer = await transactions.init_producer_id("id", 60_000)
        names = [("here", 0), ("there", 0)]
        await transactions.add_partitions("id", *producer, names, verify_only=False)
        await transactions.end_transaction("id", *producer, committed=True)
        await settle(50)
        (marker,) = node.other.markers
        assert (marker.producer_id, marker.producer_epoch) == (producer.producer_id, 1)
        assert [topic.name for topic in marker.topics] == ["there"]
        assert node.host.partition("here").log.log_end_offset == 1
        state = await transactions.describe_transaction("id")
        assert state.transaction_state == "CompleteCommit"

    play(Node(tmp_path), scene)


@pytest.mark.parametrize("replicas", [(NODE_ID,), BOTH], ids=["alone", "replicated"])
def test_what_others_have_copies_of_is_not_lost(tmp_path: Path, replicas: tuple[int, ...]) -> None:
    node = Node(tmp_path, unclean=True)
    node.host.create_topic(TRANSACTION_STATE_TOPIC, replicas=replicas, isr=(NODE_ID,))
    node.host.create_topic("t")
    node.host.append(
        "t", b"x", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True
    )

    async def scene(node: Node) -> None:
        open_transactions = list(node.host.partition("t").log.producers.open_transactions())
        assert bool(open_transactions) is (len(replicas) > 1)

    play(node, scene)


def test_a_log_on_a_failed_disk_is_not_loaded(tmp_path: Path) -> None:
    async def scene(node: Node) -> None:
        node.host.create_topic(GROUP_OFFSETS_TOPIC, replicas=BOTH)
        node.host.partition(GROUP_OFFSETS_TOPIC).stop(ErrorCode.KAFKA_STORAGE_ERROR)
        node.hear()
        assert node.coordinators.groups.runtime.partitions == []

    play(Node(tmp_path), scene)
