"""The high watermark of any partition, asked of its leader.

Decided here: who is asked, and how often again when no answer comes: the lag of a share group
is worth a few seconds, not more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from moldau.broker.calls.brokers import (
    NO_LEADER,
    BrokerChannels,
    PartitionLeaders,
    known_code,
)
from moldau.broker.calls.gathering import Gathering
from moldau.broker.replication.offsets import LATEST, find_offset
from moldau.broker.replication.partition import Partition
from moldau.clock import Clock, pause
from moldau.invariant import of_type
from moldau.peers.channel import ChannelError
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import ListOffsetsRequest, ListOffsetsResponse

_CONSUMER_ID = -1
_NO_EPOCH = -1
_ATTEMPT_COUNT_MAX = 5
_BACKOFF_MS_FIRST = 100

TopicPartition = tuple[str, int]
_Answer = ListOffsetsResponse.ListOffsetsPartitionResponse


class OwnReplicas(Protocol):
    def find(self, key: str, index: int) -> Partition | None: ...


class LatestOffsets:
    def __init__(
        self,
        replicas: OwnReplicas,
        leaders: PartitionLeaders,
        channels: BrokerChannels,
        clock: Clock,
        *,
        node_id: int,
        timeout_ms: Callable[[], int],
    ) -> None:
        """`timeout_ms` is for one request: request.timeout.ms."""
        self._replicas = replicas
        self._leaders = leaders
        self._channels = channels
        self._clock = clock
        self._node_id = node_id
        self._timeout_ms = timeout_ms
        self._requests: Gathering[int, TopicPartition, _Answer | None] = Gathering(
            self._send, key=lambda name: name
        )

    async def latest_offset(self, topic: str, index: int) -> int:
        """What a consumer would find at the end; raises ApiError."""
        backoff_ms = _BACKOFF_MS_FIRST
        for _ in range(_ATTEMPT_COUNT_MAX - 1):
            try:
                return await self._ask(topic, index)
            except ChannelError:
                await pause(self._clock, backoff_ms)
                backoff_ms *= 2
        try:
            return await self._ask(topic, index)
        except ChannelError as error:
            raise ApiError(ErrorCode.NETWORK_EXCEPTION, str(error)) from error

    async def _ask(self, topic: str, index: int) -> int:
        leader = self._leaders.leader(topic, index)
        if leader is None:
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {topic}-{index}"
            )
        if leader == NO_LEADER:
            raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}-{index} has no leader")
        if leader == self._node_id:
            return self._own(topic, index)
        answer = await self._requests.call(leader, (topic, index))
        if answer is None:
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"broker {leader} says nothing of {topic}-{index}",
            )
        if answer.error_code:
            raise ApiError(
                known_code(answer.error_code), f"broker {leader} on the end of {topic}-{index}"
            )
        return answer.offset

    def _own(self, topic: str, index: int) -> int:
        partition = self._replicas.find(topic, index)
        if partition is None:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{topic}-{index} is not led here")
        partition.check_online()
        return find_offset(partition, LATEST, read_committed=False, for_client=True).offset

    async def _send(self, leader: int, names: Sequence[TopicPartition]) -> list[_Answer | None]:
        topics: dict[str, ListOffsetsRequest.ListOffsetsTopic] = {}
        for topic, index in names:
            entry = topics.setdefault(topic, ListOffsetsRequest.ListOffsetsTopic(name=topic))
            entry.partitions.append(
                ListOffsetsRequest.ListOffsetsPartition(
                    partition_index=index, timestamp=LATEST, current_leader_epoch=_NO_EPOCH
                )
            )
        answer = await self._channels.call(
            leader,
            ApiKey.LIST_OFFSETS,
            ListOffsetsRequest(replica_id=_CONSUMER_ID, topics=list(topics.values())),
            timeout_ms=self._timeout_ms(),
        )
        response = of_type(answer, ListOffsetsResponse)
        told = {
            (topic.name, partition.partition_index): partition
            for topic in response.topics
            for partition in topic.partitions
        }
        return [told.get(name) for name in names]

    def close(self) -> None:
        self._requests.close()
