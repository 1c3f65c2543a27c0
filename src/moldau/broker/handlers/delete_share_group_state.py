"""DeleteShareGroupState (key 86), v0: delete the state of share partitions."""

from __future__ import annotations

from moldau.broker.coordinator.share.interface import Persister
from moldau.broker.coordinator.share.machine.values import SharePartitionKey
from moldau.broker.coordinator.share.requests import Failure, each_partition, is_incomplete
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import DeleteShareGroupStateRequest, DeleteShareGroupStateResponse


class DeleteShareGroupStateHandler:
    def __init__(self, coordinator: Persister) -> None:
        """Without retries: the share coordinator itself, not a persister that looks for one."""
        self._coordinator = coordinator

    async def handle(
        self, context: RequestContext, request: DeleteShareGroupStateRequest
    ) -> DeleteShareGroupStateResponse:
        if is_incomplete(request.group_id, request.topics):
            return DeleteShareGroupStateResponse()
        results = await each_partition(request.group_id, request.topics, self._delete)
        return DeleteShareGroupStateResponse(
            results=[
                DeleteShareGroupStateResponse.DeleteStateResult(
                    topic_id=topic_id,
                    partitions=[_result(partition, result) for partition, result in partitions],
                )
                for topic_id, partitions in results
            ]
        )

    async def _delete(
        self, key: SharePartitionKey, data: DeleteShareGroupStateRequest.PartitionData
    ) -> None:
        await self._coordinator.delete_state(key)


def _result(
    partition: int, result: Failure | None
) -> DeleteShareGroupStateResponse.PartitionResult:
    if isinstance(result, Failure):
        return DeleteShareGroupStateResponse.PartitionResult(
            partition=partition, error_code=result.code, error_message=result.message
        )
    return DeleteShareGroupStateResponse.PartitionResult(partition=partition)
