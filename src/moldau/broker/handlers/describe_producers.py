"""DescribeProducers (key 61), v0: the active producers of partitions.

Operators use it to find hanging transactions.
"""

from __future__ import annotations

from typing import Protocol

from moldau.broker.handlers.support.partition_errors import error_of
from moldau.broker.network.context import RequestContext
from moldau.broker.replication.partition import Partition
from moldau.wire.messages import DescribeProducersRequest, DescribeProducersResponse


class DescribeProducersReplicas(Protocol):
    def get(self, key: str | bytes, index: int) -> Partition: ...


class DescribeProducersHandler:
    """Answers DescribeProducers."""

    def __init__(self, replicas: DescribeProducersReplicas) -> None:
        self._replicas = replicas

    def handle(
        self, context: RequestContext, request: DescribeProducersRequest
    ) -> DescribeProducersResponse:
        return DescribeProducersResponse(
            topics=[
                DescribeProducersResponse.TopicResponse(
                    name=topic.name,
                    partitions=[
                        self._describe(topic.name, each) for each in topic.partition_indexes
                    ],
                )
                for topic in request.topics
            ]
        )

    def _describe(self, topic: str, index: int) -> DescribeProducersResponse.PartitionResponse:
        answer = DescribeProducersResponse.PartitionResponse(partition_index=index)
        try:
            partition = self._replicas.get(topic, index)
            partition.check_online()
            answer.active_producers = [
                DescribeProducersResponse.ProducerState(
                    producer_id=entry.producer_id,
                    producer_epoch=entry.epoch,
                    last_sequence=entry.last_sequence,
                    last_timestamp=entry.last_timestamp,
                    coordinator_epoch=entry.coordinator_epoch,
                    current_txn_start_offset=entry.txn_first_offset,
                )
                for entry in partition.log.producers.entries.values()
            ]
        except Exception as error:
            answer.error_code, answer.error_message = error_of(
                error, f"DescribeProducers of {topic}-{index}"
            )
        return answer
