"""InitializeShareGroupState (key 83), v0: initialize the state of share partitions."""

from __future__ import annotations

from moldau.broker.coordinator.share.interface import Persister
from moldau.broker.coordinator.share.machine.values import SharePartitionKey
from moldau.broker.coordinator.share.requests import Failure, each_partition, is_incomplete
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import InitializeShareGroupStateRequest, InitializeShareGroupStateResponse


class InitializeShareGroupStateHandler:
    def __init__(self, coordinator: Persister) -> None:
        """Without retries: the share coordinator itself, not a persister that looks for one."""
        self._coordinator = coordinator

    async def handle(
        self, context: RequestContext, request: InitializeShareGroupStateRequest
    ) -> InitializeShareGroupStateResponse:
        if is_incomplete(request.group_id, request.topics):
            return InitializeShareGroupStateResponse()
        results = await each_partition(request.group_id, request.topics, self._initialize)
        return InitializeShareGroupStateResponse(
            results=[
                InitializeShareGroupStateResponse.InitializeStateResult(
                    topic_id=topic_id,
                    partitions=[_result(partition, result) for partition, result in partitions],
                )
                for topic_id, partitions in results
            ]
        )

    async def _initialize(
        self, key: SharePartitionKey, data: InitializeShareGroupStateRequest.PartitionData
    ) -> None:
        await self._coordinator.initialize_state(
            key, state_epoch=data.state_epoch, start_offset=data.start_offset
        )


def _result(
    partition: int, result: Failure | None
) -> InitializeShareGroupStateResponse.PartitionResult:
    if isinstance(result, Failure):
        return InitializeShareGroupStateResponse.PartitionResult(
            partition=partition, error_code=result.code, error_message=result.message
        )
    return InitializeShareGroupStateResponse.PartitionResult(partition=partition)
