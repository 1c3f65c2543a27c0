"""The high watermark of any partition, from its leader.

A lost connection is retried for a few seconds: the lag of a share group is worth no more.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Protocol

from moldau.broker.calls.brokers import known_code
from moldau.broker.calls.leader_calls import BatchRequest, Brokers, LeaderCalls, TopicPartition
from moldau.broker.calls.retries import Retries, pauses_of
from moldau.broker.replication.offsets import LATEST, find_offset
from moldau.broker.replication.partition import Partition
from moldau.clock import Clock
from moldau.invariant import of_type
from moldau.wire.apis import ApiKey
from moldau.wire.constants import NO_EPOCH
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import ListOffsetsRequest, ListOffsetsResponse

_CONSUMER_ID = -1
_ATTEMPT_COUNT_MAX = 5
_BACKOFF_MS_FIRST = 100
_BACKOFF_MS_MAX = 1_000


class OwnReplicas(Protocol):
    def find(self, key: str, index: int) -> Partition | None: ...


class LatestOffsets:
    def __init__(self, replicas: OwnReplicas, brokers: Brokers, clock: Clock) -> None:
        self._replicas = replicas
        self._calls = LeaderCalls(
            brokers,
            BatchRequest(
                api=ApiKey.LIST_OFFSETS,
                encode=_request,
                decode=_results,
                key=lambda partition: partition,
            ),
            no_partition=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            no_leader=ErrorCode.LEADER_NOT_AVAILABLE,
        )
        self._retries = Retries(
            pauses_of(clock),
            retried={ErrorCode.NETWORK_EXCEPTION},
            attempt_count_max=_ATTEMPT_COUNT_MAX,
            delay_ms_first=_BACKOFF_MS_FIRST,
            delay_ms_max=_BACKOFF_MS_MAX,
        )

    async def latest_offset(self, topic: str, index: int) -> int:
        """The end of the partition as a consumer sees it; raises ApiError."""
        name = (topic, index)
        return await self._retries.run(
            lambda: self._calls.call(name, name, lambda: self._own(topic, index))
        )

    async def _own(self, topic: str, index: int) -> int:
        partition = self._replicas.find(topic, index)
        if partition is None:
            raise ApiError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this broker does not lead {topic}-{index}"
            )
        partition.check_online()
        return find_offset(partition, LATEST, read_committed=False, for_client=True).offset


def _request(partitions: Sequence[TopicPartition]) -> Message:
    topics: dict[str, ListOffsetsRequest.ListOffsetsTopic] = {}
    for topic, index in partitions:
        entry = topics.setdefault(topic, ListOffsetsRequest.ListOffsetsTopic(name=topic))
        entry.partitions.append(
            ListOffsetsRequest.ListOffsetsPartition(
                partition_index=index, timestamp=LATEST, current_leader_epoch=NO_EPOCH
            )
        )
    return ListOffsetsRequest(replica_id=_CONSUMER_ID, topics=list(topics.values()))


def _results(message: Message) -> Mapping[Hashable, int | ApiError]:
    response = of_type(message, ListOffsetsResponse)
    return {
        (topic.name, each.partition_index): ApiError(
            known_code(each.error_code), f"the latest offset of {topic.name}-{each.partition_index}"
        )
        if each.error_code
        else each.offset
        for topic in response.topics
        for each in topic.partitions
    }
