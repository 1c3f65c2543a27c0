"""OffsetForLeaderEpoch (key 23), v2-4: where a leader epoch ends; replicas and clients truncate."""

from __future__ import annotations

from typing import Protocol

from moldau.broker.handlers.support.partition_errors import error_of
from moldau.broker.network.context import RequestContext
from moldau.broker.replication.partition import Partition
from moldau.wire.messages import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse


class OffsetForLeaderEpochReplicas(Protocol):
    def get(self, key: str | bytes, index: int) -> Partition: ...


class OffsetForLeaderEpochHandler:
    """Answers OffsetForLeaderEpoch."""

    def __init__(self, replicas: OffsetForLeaderEpochReplicas) -> None:
        self._replicas = replicas

    def handle(
        self, context: RequestContext, request: OffsetForLeaderEpochRequest
    ) -> OffsetForLeaderEpochResponse:
        return OffsetForLeaderEpochResponse(
            topics=[
                OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(
                    topic=topic.topic,
                    partitions=[self._find(topic.topic, wanted) for wanted in topic.partitions],
                )
                for topic in request.topics
            ]
        )

    def _find(
        self, topic: str, wanted: OffsetForLeaderEpochRequest.OffsetForLeaderPartition
    ) -> OffsetForLeaderEpochResponse.EpochEndOffset:
        answer = OffsetForLeaderEpochResponse.EpochEndOffset(partition=wanted.partition)
        try:
            partition = self._replicas.get(topic, wanted.partition)
            partition.role.check_leader_epoch(wanted.current_leader_epoch)
            answer.leader_epoch, answer.end_offset = partition.log.end_offset_for_epoch(
                wanted.leader_epoch
            )
        except Exception as error:
            answer.error_code, _ = error_of(
                error, f"OffsetForLeaderEpoch of {topic}-{wanted.partition}"
            )
        return answer
