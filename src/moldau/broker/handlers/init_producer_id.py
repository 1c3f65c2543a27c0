"""InitProducerId (22), v0-5: an id under which a producer's batches are kept apart.

Without a transactional id every request gets a fresh id with epoch 0, whatever id the client
had before. With one it is the transaction coordinator's matter, and this broker is not that
coordinator: NOT_COORDINATOR sends the client back to FindCoordinator, which it retries until
its own timeout, and hands it no id that a later coordinator could not fence.
"""

from __future__ import annotations

from moldau.broker.coordinator.producer_ids import ProducerIds
from moldau.broker.network.context import RequestContext
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import InitProducerIdRequest, InitProducerIdResponse

_NO_PRODUCER_ID = -1
_NO_PRODUCER_EPOCH = -1


class InitProducerIdHandler:
    def __init__(self, producer_ids: ProducerIds) -> None:
        self._producer_ids = producer_ids

    async def handle(
        self, context: RequestContext, request: InitProducerIdRequest
    ) -> InitProducerIdResponse:
        has_id = request.producer_id != _NO_PRODUCER_ID
        has_epoch = request.producer_epoch != _NO_PRODUCER_EPOCH
        if has_id != has_epoch or request.transactional_id == "":
            return _refusal(ErrorCode.INVALID_REQUEST)
        if request.transactional_id is not None:
            return _refusal(ErrorCode.NOT_COORDINATOR)
        try:
            producer_id = await self._producer_ids.next_id()
        except ApiError:
            # The controller cannot be asked right now: as Kafka, have the client retry.
            return _refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _refusal(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=error, producer_id=_NO_PRODUCER_ID, producer_epoch=_NO_PRODUCER_EPOCH
    )
