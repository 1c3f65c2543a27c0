"""Two nodes: one leads, the other copies, over a channel that hands frames to the real handlers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from moldau.broker.handlers.delete_records import DeleteRecordsHandler
from moldau.broker.handlers.fetch import FetchHandler
from moldau.broker.handlers.list_offsets import ListOffsetsHandler
from moldau.broker.network.context import RequestContext
from moldau.broker.replication import reading
from moldau.broker.replication.deletion import delete_records, when_deleted
from moldau.broker.replication.fetchers import FetcherNode, FetcherSettings, ReplicaFetchers
from moldau.broker.replication.isr_proposals import IsrProposals
from moldau.broker.replication.machine.throttle import ReplicationThrottle
from moldau.broker.replication.manager import Replication
from moldau.broker.replication.partition import Partition
from moldau.clock import LoopClock
from moldau.peers.channel import ChannelError, RawResponse
from moldau.wire.apis import ApiKey
from moldau.wire.codec import decode, encode
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    DeleteRecordsRequest,
    FetchRequest,
    FetchResponse,
)
from moldau.wire.records import decode_batches
from support.hosting import NODE_ID, OTHER_NODE_ID, Host

FETCH_VERSION = 17
SETTINGS = FetcherSettings(replica_fetch_backoff_ms=5, replica_fetch_wait_max_ms=50)


class Node:
    """A host with fetchers, a fetch handler for others, and proposals to the cluster."""

    def __init__(self, cluster: Cluster, folder: Path, node_id: int) -> None:
        clock = LoopClock()
        self.id = node_id
        self.fetchers = ReplicaFetchers(
            FetcherNode(
                node_id=node_id,
                transport=cluster,
                clock=clock,
                listener_name="PLAINTEXT",
                settings=lambda: SETTINGS,
                broker_epoch=lambda: node_id,
            )
        )
        self.proposals = IsrProposals(
            node_id=node_id,
            broker_epoch=lambda: node_id,
            send=cluster.alter_partition,
            clock=clock,
        )
        self.host = Host(
            folder / str(node_id),
            node_id=node_id,
            replication=Replication(
                fetchers=self.fetchers,
                propose=self.proposals.propose,
                elapsed_ms=clock.elapsed_ms,
                lag_ms_max=lambda: cluster.lag_ms_max,
                inter_broker_listener="PLAINTEXT",
            ),
        )
        self.fetch = FetchHandler(
            self.host.replicas,
            loop=asyncio.get_running_loop(),
            clock=clock,
            random_id=iter(range(1, 1000)).__next__,
            lag_ms_max=lambda: cluster.lag_ms_max,
            rack_aware=True,
            throttle=ReplicationThrottle(lambda: cluster.rate_max, window_ms=50, samples_max=2),
        )
        self.list_offsets = ListOffsetsHandler(self.host.replicas)

    def partition(self) -> Partition:
        return self.host.partition("t")


class Channel:
    def __init__(self, cluster: Cluster, node_id: int) -> None:
        self._cluster = cluster
        self._node_id = node_id

    async def call_raw(self, key: ApiKey, request: Message, **_: Any) -> RawResponse:
        await asyncio.sleep(0)
        if self._cluster.cut:
            raise ChannelError("cut")
        context = RequestContext(key, FETCH_VERSION, 42)
        frame = memoryview(bytearray(b"head" + encode(request, FETCH_VERSION)))
        self._cluster.waiting += 1
        try:
            reply: Any = self._cluster.nodes[self._node_id].fetch.handle(context, frame, 4)
            if not isinstance(reply, list):
                reply = await reply
        finally:
            self._cluster.waiting -= 1
        self._cluster.fetches += 1
        return RawResponse(FETCH_VERSION, memoryview(b"".join(reply))[9:])

    async def call(self, key: ApiKey, request: Any, **_: Any) -> Message:
        await asyncio.sleep(0)
        context = RequestContext(key, 10, 42)
        return self._cluster.nodes[self._node_id].list_offsets.handle(context, request)

    def close(self) -> None:
        pass


class Cluster:
    """Two nodes and a controller that does as it is asked."""

    def __init__(self, folder: Path) -> None:
        self.lag_ms_max = 30_000
        self.rate_max = 1 << 40
        self.cut = False
        self.fetches = 0
        self.waiting = 0
        self.topic_id = UUID(int=0)
        self.nodes = {node_id: Node(self, folder, node_id) for node_id in (NODE_ID, OTHER_NODE_ID)}

    def channel(self, node_id: int, host: str, port: int, listener_name: str) -> Channel:
        assert (host, port, listener_name) == (f"host{node_id}", 9000 + node_id, "PLAINTEXT")
        return Channel(self, node_id)

    async def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        ((topic, wanted),) = (
            (topic.topic_id, each) for topic in request.topics for each in topic.partitions
        )
        isr = [each.broker_id for each in wanted.new_isr_with_epochs]
        state = self.nodes[NODE_ID].host.image.partition(topic, wanted.partition_index)
        assert state is not None
        answer = AlterPartitionResponse.PartitionData(
            partition_index=wanted.partition_index,
            leader_id=state.leader,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch + 1,
            isr=isr,
        )
        self.change(isr=isr)
        return AlterPartitionResponse(
            topics=[AlterPartitionResponse.TopicData(topic_id=topic, partitions=[answer])]
        )

    def create(self, **options: Any) -> None:
        for node in self.nodes.values():
            self.topic_id = node.host.create_topic(
                "t", replicas=(NODE_ID, OTHER_NODE_ID), **options
            )

    def change(self, **changes: Any) -> None:
        for node in self.nodes.values():
            node.host.change_partition(self.topic_id, **changes)

    def partitions(self) -> tuple[Partition, Partition]:
        return self.nodes[NODE_ID].partition(), self.nodes[OTHER_NODE_ID].partition()


@asynccontextmanager
async def cluster_in(folder: Path) -> AsyncIterator[Cluster]:
    cluster = Cluster(folder)
    try:
        yield cluster
    finally:
        for node in cluster.nodes.values():
            await node.fetchers.close()
            await node.proposals.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


def values(partition: Partition) -> list[bytes | None]:
    log = partition.log
    read = reading.read(
        partition.log, log.log_start_offset, 1 << 20, min_one_batch=True, up_to_log_end=True
    )
    return [
        record.value for _, records in decode_batches(b"".join(read.buffers)) for record in records
    ]


def test_what_is_appended_is_copied_and_then_committed(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster_in(tmp_path) as cluster:
            cluster.create()
            leader, follower = cluster.partitions()
            outcomes: list[ErrorCode] = []
            cluster.nodes[NODE_ID].host.append("t", b"a", b"b")
            assert (leader.high_watermark, leader.log.log_end_offset) == (0, 2)
            leader.when_committed(2, outcomes.append)
            await until(lambda: outcomes == [ErrorCode.NONE])
            assert values(follower) == [b"a", b"b"]
            await until(lambda: follower.high_watermark == 2)
            # And within the session, record by record.
            for number in range(20):
                cluster.nodes[NODE_ID].host.append("t", b"%d" % number)
                await until(lambda: follower.log.log_end_offset == leader.log.log_end_offset)
            await until(lambda: follower.high_watermark == 22)
            assert values(follower) == values(leader)

    asyncio.run(run())


def test_a_new_leader_has_the_follower_cut_what_it_does_not_have(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster_in(tmp_path) as cluster:
            cluster.create()
            first, second = cluster.partitions()
            cluster.nodes[NODE_ID].host.append("t", b"kept")
            await until(lambda: second.high_watermark == 1)
            cluster.cut = True
            await until(lambda: cluster.waiting == 0)
            cluster.nodes[NODE_ID].host.append("t", b"lost")
            cluster.change(leader=OTHER_NODE_ID, isr=[OTHER_NODE_ID])
            assert second.high_watermark == 1
            cluster.nodes[OTHER_NODE_ID].host.append("t", b"new")
            cluster.cut = False
            await until(lambda: second.leadership is not None and len(second.leadership.isr) == 2)
            await until(lambda: first.high_watermark == 2)
            assert values(first) == values(second) == [b"kept", b"new"]
            assert first.log.leader_epochs.entries() == second.log.leader_epochs.entries()

    asyncio.run(run())


def test_who_falls_behind_leaves_the_isr_and_comes_back(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster_in(tmp_path) as cluster:
            cluster.create(config={"min.insync.replicas": "1"})
            leader, follower = cluster.partitions()
            leadership = leader.leadership
            assert leadership is not None
            cluster.nodes[NODE_ID].host.append("t", b"x")
            await until(lambda: follower.high_watermark == 1)
            cluster.cut = True
            cluster.lag_ms_max = 20
            await until(lambda: cluster.waiting == 0)
            cluster.nodes[NODE_ID].host.append("t", b"y")

            def shrunk() -> bool:
                cluster.nodes[NODE_ID].host.replicas.check_isrs()
                return leadership.isr == {NODE_ID}

            await until(shrunk)
            assert leader.high_watermark == 2
            cluster.cut = False
            await until(lambda: leadership.isr == {NODE_ID, OTHER_NODE_ID})
            assert values(follower) == [b"x", b"y"]

    asyncio.run(run())


def test_a_follower_that_was_away_too_long_starts_where_the_leader_does(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster_in(tmp_path) as cluster:
            cluster.cut = True
            cluster.create(isr=(NODE_ID,))
            leader, follower = cluster.partitions()
            for value in (b"x", b"y", b"z"):
                cluster.nodes[NODE_ID].host.append("t", value)
            assert delete_records(leader, 2) == -1
            told: list[tuple[ErrorCode, int]] = []
            when_deleted(leader, 2, lambda error, offset: told.append((error, offset)))
            cluster.cut = False
            await until(lambda: follower.log.log_end_offset == 3)
            assert (follower.log.log_start_offset, values(follower)) == (2, [b"z"])
            await until(lambda: told == [(ErrorCode.NONE, 2)])

    asyncio.run(run())


def test_nothing_is_fetched_for_partitions_that_are_gone(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster_in(tmp_path) as cluster:
            cluster.create()
            await until(lambda: cluster.fetches > 0)
            fetchers = cluster.nodes[OTHER_NODE_ID].fetchers
            assert len(fetchers) == 1
            for node in cluster.nodes.values():
                node.host.delete_topic(cluster.topic_id)
            assert len(fetchers) == 0

    asyncio.run(run())


@pytest.mark.parametrize("idle_ms", [0, 60])
def test_an_idle_follower_stays_in_sync(tmp_path: Path, idle_ms: int) -> None:
    """Of a partition without news nothing is read, yet its leader knows that the follower lives."""

    async def run() -> None:
        async with cluster_in(tmp_path) as cluster:
            cluster.lag_ms_max = 200
            cluster.create()
            leader, _ = cluster.partitions()
            leadership = leader.leadership
            assert leadership is not None
            follower = leadership.follower(OTHER_NODE_ID)
            assert follower is not None
            await until(lambda: follower.end_offset == 0)
            before = follower.last_caught_up_ms
            await until(lambda: follower.last_caught_up_ms > before + idle_ms)
            assert leadership.isr == {NODE_ID, OTHER_NODE_ID}

    asyncio.run(run())


@pytest.mark.parametrize("follower_lives", [True, False])
def test_deleting_records_waits_for_the_followers(tmp_path: Path, follower_lives: bool) -> None:
    async def run() -> None:
        async with cluster_in(tmp_path) as cluster:
            cluster.create()
            leader, follower = cluster.partitions()
            cluster.nodes[NODE_ID].host.append("t", b"x", b"y")
            await until(lambda: follower.high_watermark == 2)
            cluster.cut = not follower_lives
            await until(lambda: follower_lives or cluster.waiting == 0)
            request = DeleteRecordsRequest(
                timeout_ms=5_000 if follower_lives else 20,
                topics=[
                    DeleteRecordsRequest.DeleteRecordsTopic(
                        name="t",
                        partitions=[
                            DeleteRecordsRequest.DeleteRecordsPartition(
                                partition_index=0, offset=-1
                            )
                        ],
                    )
                ],
            )
            handler = DeleteRecordsHandler(cluster.nodes[NODE_ID].host.replicas)
            answer = handler.handle(RequestContext(ApiKey.DELETE_RECORDS, 2), request)
            assert isinstance(answer, asyncio.Future)
            (result,) = (await answer).topics[0].partitions
            expected = (0, 2) if follower_lives else (ErrorCode.REQUEST_TIMED_OUT, 0)
            assert (result.error_code, result.low_watermark) == expected
            assert follower.log.log_start_offset == (2 if follower_lives else 0)
            assert leader.log.log_start_offset == 2

    asyncio.run(run())


def fetch_as_consumer(node: Node, offset: int, rack: str = "") -> FetchResponse.PartitionData:
    request = FetchRequest(
        max_bytes=1 << 20,
        rack_id=rack,
        topics=[
            FetchRequest.FetchTopic(
                topic="t",
                partitions=[
                    FetchRequest.FetchPartition(
                        partition=0, fetch_offset=offset, partition_max_bytes=1 << 20
                    )
                ],
            )
        ],
    )
    frame = memoryview(bytearray(b"head" + encode(request, 12)))
    reply: Any = node.fetch.handle(
        RequestContext(ApiKey.FETCH, 12, 42, listener_name="PLAINTEXT"), frame, 4
    )
    return decode(FetchResponse, 12, b"".join(reply), 9).responses[0].partitions[0]


def test_consumers_read_from_the_replica_in_their_rack(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster_in(tmp_path) as cluster:
            for node in cluster.nodes.values():
                for broker_id, broker in list(node.host.image.brokers.items()):
                    node.host.image.brokers[broker_id] = replace(broker, rack=f"rack{broker_id}")
            cluster.create()
            leader, follower = cluster.nodes[NODE_ID], cluster.nodes[OTHER_NODE_ID]
            leader.host.append("t", b"x")
            await until(lambda: follower.partition().high_watermark == 1)
            part = fetch_as_consumer(leader, 0, "rack2")
            assert part.preferred_read_replica == OTHER_NODE_ID
            assert not part.records
            # In the leader's own rack, in none, or for what the follower does not have: stay here.
            for offset, rack in ((0, "rack1"), (0, ""), (0, "rack3")):
                part = fetch_as_consumer(leader, offset, rack)
                assert (part.preferred_read_replica, bool(part.records)) == (-1, True)
            part = fetch_as_consumer(follower, 0, "rack2")
            assert (part.error_code, part.high_watermark, bool(part.records)) == (0, 1, True)
            # A follower shows what it knows to be committed, and no more.
            cluster.cut = True
            await until(lambda: cluster.waiting == 0)
            leader.host.append("t", b"y")
            assert not fetch_as_consumer(follower, 1, "rack2").records
            assert fetch_as_consumer(follower, 2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE

    asyncio.run(run())


def test_a_throttled_follower_gets_its_records_little_by_little(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster_in(tmp_path) as cluster:
            cluster.rate_max = 1
            cluster.create(
                isr=(NODE_ID,), config={"leader.replication.throttled.replicas": f"0:{NODE_ID}"}
            )
            leader, follower = cluster.partitions()
            cluster.nodes[NODE_ID].host.append("t", b"x" * 500)
            # The first records are given, then nothing until the rate is below the limit again.
            await until(lambda: follower.log.log_end_offset == 1)
            await until(lambda: leader.leadership is not None and len(leader.leadership.isr) == 2)
            # In sync now, so nothing holds it up any more.
            for _ in range(3):
                cluster.nodes[NODE_ID].host.append("t", b"y" * 500)
            await until(lambda: follower.log.log_end_offset == 4)

    asyncio.run(run())
