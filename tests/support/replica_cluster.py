"""Nodes that copy from each other over channels that hand frames to the real handlers.

The metadata is what a test says it is; a controller answers AlterPartition as it is told to.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

from moldau.broker.handlers.fetch import FetchHandler
from moldau.broker.handlers.list_offsets import ListOffsetsHandler
from moldau.broker.network.context import RequestContext
from moldau.broker.replication import reading
from moldau.broker.replication.fetchers import FetcherNode, FetcherSettings, ReplicaFetchers
from moldau.broker.replication.isr_proposals import IsrProposals
from moldau.broker.replication.manager import Replication
from moldau.broker.replication.partition import Partition
from moldau.clock import LoopClock
from moldau.peers.channel import ChannelError, RawResponse
from moldau.wire.apis import ApiKey
from moldau.wire.codec import encode
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    RegisterBrokerRecord,
)
from moldau.wire.records import decode_batches
from support.hosting import Host

FETCH_VERSION = 17
TOPIC = "t"


def registration(node_id: int, *, port: int | None = None, rack: str | None = None) -> Any:
    return RegisterBrokerRecord(
        broker_id=node_id,
        broker_epoch=node_id,
        fenced=False,
        rack=rack,
        end_points=[
            RegisterBrokerRecord.BrokerEndpoint(
                name="PLAINTEXT", host=f"host{node_id}", port=port or 9000 + node_id
            )
        ],
    )


class Node:
    """A host with fetchers, a fetch handler for others, and proposals to the controller."""

    def __init__(self, cluster: ReplicaCluster, folder: Path, node_id: int) -> None:
        clock = LoopClock()
        self.id = node_id
        self.fetchers = ReplicaFetchers(
            FetcherNode(
                node_id=node_id,
                transport=_Transport(cluster, node_id),
                clock=clock,
                listener_name="PLAINTEXT",
                settings=lambda: cluster.settings,
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
            directories=cluster.directories,
            replication=Replication(
                fetchers=self.fetchers,
                propose=self.proposals.propose,
                elapsed_ms=clock.elapsed_ms,
                lag_ms_max=lambda: cluster.lag_ms_max,
                inter_broker_listener="PLAINTEXT",
            ),
        )
        self.host.apply(*(registration(each) for each in cluster.node_ids))
        self.fetch = FetchHandler(
            self.host.replicas,
            loop=asyncio.get_running_loop(),
            clock=clock,
            random_id=iter(range(1, 1000)).__next__,
            lag_ms_max=lambda: cluster.lag_ms_max,
        )
        self.list_offsets = ListOffsetsHandler(self.host.replicas)

    def partition(self, topic: str = TOPIC, index: int = 0) -> Partition:
        return self.host.partition(topic, index)

    def append(self, *values: bytes, topic: str = TOPIC) -> int:
        return self.host.append(topic, *values)


class _Transport:
    def __init__(self, cluster: ReplicaCluster, node_id: int) -> None:
        self._cluster = cluster
        self._node_id = node_id

    def channel(self, node_id: int, host: str, port: int, listener_name: str) -> _Channel:
        assert host == f"host{node_id}"
        return _Channel(self._cluster, self._node_id, node_id, port)


class _Channel:
    def __init__(self, cluster: ReplicaCluster, source: int, target: int, port: int) -> None:
        self._cluster = cluster
        self._link = source, target
        self._port = port
        self._closed = asyncio.Event()

    async def call_raw(self, key: ApiKey, request: Message, **_: Any) -> RawResponse:
        await self._reach()
        context = RequestContext(key, FETCH_VERSION, 42)
        frame = memoryview(bytearray(b"head" + encode(request, FETCH_VERSION)))
        cluster = self._cluster
        cluster.waiting[self._link] = cluster.waiting.get(self._link, 0) + 1
        try:
            reply: Any = cluster.nodes[self._link[1]].fetch.handle(context, frame, 4)
            if not isinstance(reply, list):
                reply = await self._unless_closed(reply)
        finally:
            cluster.waiting[self._link] -= 1
        await self._reach()
        cluster.fetches[self._link] = cluster.fetches.get(self._link, 0) + 1
        return RawResponse(FETCH_VERSION, memoryview(b"".join(reply))[9:])

    async def call(self, key: ApiKey, request: Any, **_: Any) -> Message:
        await self._reach()
        context = RequestContext(key, 10, 42)
        return self._cluster.nodes[self._link[1]].list_offsets.handle(context, request)

    def close(self) -> None:
        self._closed.set()

    async def _reach(self) -> None:
        await asyncio.sleep(0)
        cluster = self._cluster
        if (
            self._closed.is_set()
            or self._link in cluster.cut
            or self._port != cluster.ports[self._link[1]]
        ):
            raise ChannelError("cut")

    async def _unless_closed(self, reply: asyncio.Future[Any]) -> Any:
        closed = asyncio.ensure_future(self._closed.wait())
        try:
            await asyncio.wait([reply, closed], return_when=asyncio.FIRST_COMPLETED)
        finally:
            closed.cancel()
        if not reply.done():
            reply.cancel()
            raise ChannelError("closed")
        return reply.result()


class ReplicaCluster:
    """Several nodes and a controller that does as it is asked, unless a test replaces `decide`."""

    def __init__(
        self, folder: Path, node_ids: tuple[int, ...], directories: tuple[str, ...], **settings: int
    ) -> None:
        self.node_ids = node_ids
        self.directories = directories
        self.settings = FetcherSettings(
            **{"replica_fetch_backoff_ms": 5, "replica_fetch_wait_max_ms": 50} | settings
        )
        self.lag_ms_max = 30_000
        # (from, to) between which nothing passes.
        self.cut: set[tuple[int, int]] = set()
        # From where the controller cannot be reached.
        self.isolated: set[int] = set()
        self.ports = {node_id: 9000 + node_id for node_id in node_ids}
        self.fetches: dict[tuple[int, int], int] = {}
        self.waiting: dict[tuple[int, int], int] = {}
        self.asked: list[AlterPartitionRequest.PartitionData] = []
        self.decide: Callable[[AlterPartitionRequest.PartitionData], Any] = self.accept
        self.topic_id = UUID(int=0)
        self.nodes = {node_id: Node(self, folder, node_id) for node_id in node_ids}

    def isolate(self, node_id: int) -> None:
        """Nothing reaches the node or leaves it."""
        self.isolated.add(node_id)
        for other in self.node_ids:
            self.cut |= {(node_id, other), (other, node_id)}

    def heal(self) -> None:
        self.cut.clear()
        self.isolated.clear()

    # The controller.

    async def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        if request.broker_id in self.isolated:
            raise ChannelError("cut")
        topics = []
        for topic in request.topics:
            answers = []
            for wanted in topic.partitions:
                self.asked.append(wanted)
                answer = self.decide(wanted)
                answers.append(answer if not asyncio.iscoroutine(answer) else await answer)
            topics.append(
                AlterPartitionResponse.TopicData(topic_id=topic.topic_id, partitions=answers)
            )
        return AlterPartitionResponse(topics=topics)

    def accept(self, wanted: Any) -> AlterPartitionResponse.PartitionData:
        """Make the change and tell everybody, unless it was asked of an older state."""
        state = self.nodes[self.node_ids[0]].host.image.partition(self.topic_id, 0)
        assert state is not None
        if (wanted.leader_epoch, wanted.partition_epoch) != (
            state.leader_epoch,
            state.partition_epoch,
        ):
            return self.refuse(wanted, ErrorCode.INVALID_UPDATE_VERSION)
        isr = [each.broker_id for each in wanted.new_isr_with_epochs]
        answer = AlterPartitionResponse.PartitionData(
            partition_index=wanted.partition_index,
            leader_id=state.leader,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch + 1,
            isr=isr,
        )
        self.change(isr=isr)
        return answer

    def refuse(self, wanted: Any, code: ErrorCode) -> AlterPartitionResponse.PartitionData:
        return AlterPartitionResponse.PartitionData(
            partition_index=wanted.partition_index, error_code=code
        )

    # The metadata.

    def create(self, topic: str = TOPIC, **options: Any) -> UUID:
        options.setdefault("replicas", self.node_ids)
        for node in self.nodes.values():
            topic_id = node.host.create_topic(topic, **options)
            if topic == TOPIC:
                self.topic_id = topic_id
        return topic_id

    def change(self, **changes: Any) -> None:
        for node in self.nodes.values():
            node.host.change_partition(self.topic_id, **changes)

    def apply(self, *records: Any) -> None:
        for node in self.nodes.values():
            node.host.apply(*records)


@asynccontextmanager
async def replica_cluster(
    folder: Path,
    *,
    nodes: tuple[int, ...] = (1, 2, 3),
    directories: tuple[str, ...] = ("logs",),
    **settings: int,
) -> AsyncIterator[ReplicaCluster]:
    cluster = ReplicaCluster(folder, nodes, directories, **settings)
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
    """All that is in the log, committed or not."""
    log = partition.log
    read = reading.read(
        partition.log, log.log_start_offset, 1 << 20, min_one_batch=True, up_to_log_end=True
    )
    return [
        record.value for _, records in decode_batches(b"".join(read.buffers)) for record in records
    ]
