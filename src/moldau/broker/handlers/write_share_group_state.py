"""WriteShareGroupState (key 85), v0-1: change the state of share partitions."""

from __future__ import annotations

from moldau.broker.coordinator.share.interface import Persister
from moldau.broker.coordinator.share.machine.values import SharePartitionKey, StateBatch
from moldau.broker.coordinator.share.requests import Failure, each_partition, is_incomplete
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import WriteShareGroupStateRequest, WriteShareGroupStateResponse


class WriteShareGroupStateHandler:
    def __init__(self, coordinator: Persister) -> None:
        """Without retries: the share coordinator itself, not a persister that looks for one."""
        self._coordinator = coordinator

    async def handle(
        self, context: RequestContext, request: WriteShareGroupStateRequest
    ) -> WriteShareGroupStateResponse:
        if is_incomplete(request.group_id, request.topics):
            return WriteShareGroupStateResponse()
        results = await each_partition(request.group_id, request.topics, self._write)
        return WriteShareGroupStateResponse(
            results=[
                WriteShareGroupStateResponse.WriteStateResult(
                    topic_id=topic_id,
                    partitions=[_result(partition, result) for partition, result in partitions],
                )
                for topic_id, partitions in results
            ]
        )

    async def _write(
        self, key: SharePartitionKey, data: WriteShareGroupStateRequest.PartitionData
    ) -> None:
        await self._coordinator.write_state(
            key,
            state_epoch=data.state_epoch,
            leader_epoch=data.leader_epoch,
            start_offset=data.start_offset,
            delivery_complete_count=data.delivery_complete_count,
            batches=[
                StateBatch(
                    batch.first_offset,
                    batch.last_offset,
                    batch.delivery_state,
                    batch.delivery_count,
                )
                for batch in data.state_batches
            ],
        )


def _result(partition: int, result: Failure | None) -> WriteShareGroupStateResponse.PartitionResult:
    if isinstance(result, Failure):
        return WriteShareGroupStateResponse.PartitionResult(
            partition=partition, error_code=result.code, error_message=result.message
        )
    return WriteShareGroupStateResponse.PartitionResult(partition=partition)
