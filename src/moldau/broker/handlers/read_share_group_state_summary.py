"""ReadShareGroupStateSummary (key 87), v0-1: the start offsets of share partitions."""

from __future__ import annotations

from moldau.broker.coordinator.share.interface import Persister
from moldau.broker.coordinator.share.machine.values import SharePartitionKey, ShareStateSummary
from moldau.broker.coordinator.share.requests import Failure, each_partition, is_incomplete
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)


class ReadShareGroupStateSummaryHandler:
    def __init__(self, coordinator: Persister) -> None:
        """Without retries: the share coordinator itself, not a persister that looks for one."""
        self._coordinator = coordinator

    async def handle(
        self, context: RequestContext, request: ReadShareGroupStateSummaryRequest
    ) -> ReadShareGroupStateSummaryResponse:
        if is_incomplete(request.group_id, request.topics):
            return ReadShareGroupStateSummaryResponse()
        results = await each_partition(request.group_id, request.topics, self._read)
        return ReadShareGroupStateSummaryResponse(
            results=[
                ReadShareGroupStateSummaryResponse.ReadStateSummaryResult(
                    topic_id=topic_id,
                    partitions=[_result(partition, result) for partition, result in partitions],
                )
                for topic_id, partitions in results
            ]
        )

    async def _read(
        self, key: SharePartitionKey, data: ReadShareGroupStateSummaryRequest.PartitionData
    ) -> ShareStateSummary:
        return await self._coordinator.read_summary(key, leader_epoch=data.leader_epoch)


def _result(
    partition: int, result: ShareStateSummary | Failure
) -> ReadShareGroupStateSummaryResponse.PartitionResult:
    if isinstance(result, Failure):
        return ReadShareGroupStateSummaryResponse.PartitionResult(
            partition=partition, error_code=result.code, error_message=result.message
        )
    return ReadShareGroupStateSummaryResponse.PartitionResult(
        partition=partition,
        state_epoch=result.state_epoch,
        leader_epoch=result.leader_epoch,
        start_offset=result.start_offset,
        delivery_complete_count=result.delivery_complete_count,
    )
