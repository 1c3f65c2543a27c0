"""Writes records of this node to a topic, through whichever broker leads the partition.

A node writes to one partition, so its records stay in order. Nothing is queued or tried again here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeAlias

from moldau.broker.calls.brokers import NO_LEADER, BrokerChannels, PartitionLeaders, known_code
from moldau.broker.coordinator.partition_log import PartitionLog
from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.model import Topic
from moldau.broker.replication.partition import Partition
from moldau.clock import Clock
from moldau.invariant import of_type
from moldau.peers.channel import Transport
from moldau.wire.apis import ApiKey
from moldau.wire.constants import ACKS_ALL
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import ProduceRequest, ProduceResponse
from moldau.wire.records import encode_batch

__all__ = ["KeyAndValue", "TopicWriter"]

KeyAndValue: TypeAlias = tuple[bytes | None, bytes | None]


class TopicWriter:
    def __init__(
        self,
        name: str,
        image: Callable[[], MetadataImage],
        transport: Transport,
        clock: Clock,
        *,
        node_id: int,
        inter_broker_listener: str,
        local: Callable[[str, int], Partition | None],
        timeout_ms: Callable[[], int],
    ) -> None:
        """`local` finds a partition that this node has."""
        self._name = name
        self._image = image
        self._leaders = PartitionLeaders(image, inter_broker_listener)
        self._channels = BrokerChannels(transport, self._leaders)
        self._clock = clock
        self._node_id = node_id
        self._local = local
        self._timeout_ms = timeout_ms

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self._channels.apply(delta, image)

    def close(self) -> None:
        self._channels.close()

    async def write(self, records: Sequence[KeyAndValue]) -> None:
        """Returns once they are committed; ApiError or ChannelError if that is not known."""
        topic = self._image().topic(self._name)
        if topic is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "it is being created")
        index = self._node_id % len(topic.partitions)
        leader = self._leaders.leader(self._name, index)
        if leader is None or leader == NO_LEADER:
            raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE, f"partition {index} has no leader")
        if leader == self._node_id:
            await self._append(index, records)
        else:
            await self._send(leader, topic, index, records)

    async def _append(self, index: int, records: Sequence[KeyAndValue]) -> None:
        partition = self._local(self._name, index)
        if partition is None:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this broker does not lead it yet")
        log = PartitionLog(partition, acks_all=True)
        log.append(list(records), now_ms=self._clock.now_ms())
        committed: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()

        def on_committed(error: ErrorCode) -> None:
            if not committed.done():
                committed.set_result(error)

        log.when_committed(log.end_offset, on_committed)
        try:
            error = await committed
        finally:
            log.forget_waiter(on_committed)
        if error is not ErrorCode.NONE:
            raise ApiError(error, "it was not committed")

    async def _send(
        self, leader: int, topic: Topic, index: int, records: Sequence[KeyAndValue]
    ) -> None:
        now_ms, timeout_ms = self._clock.now_ms(), self._timeout_ms()
        batch = encode_batch([(key, value, now_ms, ()) for key, value in records])
        partition = ProduceRequest.PartitionProduceData(index=index, records=batch)
        request = ProduceRequest(
            acks=ACKS_ALL,
            timeout_ms=timeout_ms,
            topic_data=[
                # By name or by id, as the leader's version wants it.
                ProduceRequest.TopicProduceData(
                    name=topic.name, topic_id=topic.id, partition_data=[partition]
                )
            ],
        )
        response = of_type(
            await self._channels.call(leader, ApiKey.PRODUCE, request, timeout_ms=timeout_ms),
            ProduceResponse,
        )
        for answered in response.responses:
            for each in answered.partition_responses:
                if each.error_code:
                    code = known_code(each.error_code)
                    raise ApiError(code, f"broker {leader} answered {code.name}")
