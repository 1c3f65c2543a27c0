"""ReadShareGroupState (key 84), v0: the state of share partitions, for their leaders."""

from __future__ import annotations

from moldau.broker.coordinator.share.interface import Persister
from moldau.broker.coordinator.share.machine.values import SharePartitionKey, ShareState
from moldau.broker.coordinator.share.requests import Failure, each_partition, is_incomplete
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import ReadShareGroupStateRequest, ReadShareGroupStateResponse


class ReadShareGroupStateHandler:
    def __init__(self, coordinator: Persister) -> None:
        """Without retries: the share coordinator itself, not a persister that looks for one."""
        self._coordinator = coordinator

    async def handle(
        self, context: RequestContext, request: ReadShareGroupStateRequest
    ) -> ReadShareGroupStateResponse:
        if is_incomplete(request.group_id, request.topics):
            return ReadShareGroupStateResponse()
        results = await each_partition(request.group_id, request.topics, self._read)
        return ReadShareGroupStateResponse(
            results=[
                ReadShareGroupStateResponse.ReadStateResult(
                    topic_id=topic_id,
                    partitions=[_result(partition, result) for partition, result in partitions],
                )
                for topic_id, partitions in results
            ]
        )

    async def _read(
        self, key: SharePartitionKey, data: ReadShareGroupStateRequest.PartitionData
    ) -> ShareState:
        return await self._coordinator.read_state(key, leader_epoch=data.leader_epoch)


def _result(
    partition: int, result: ShareState | Failure
) -> ReadShareGroupStateResponse.PartitionResult:
    if isinstance(result, Failure):
        return ReadShareGroupStateResponse.PartitionResult(
            partition=partition, error_code=result.code, error_message=result.message
        )
    return ReadShareGroupStateResponse.PartitionResult(
        partition=partition,
        state_epoch=result.state_epoch,
        start_offset=result.start_offset,
        state_batches=[
            ReadShareGroupStateResponse.StateBatch(
                first_offset=batch.first_offset,
                last_offset=batch.last_offset,
                delivery_state=batch.delivery_state,
                delivery_count=batch.delivery_count,
            )
            for batch in result.batches
        ],
    )
