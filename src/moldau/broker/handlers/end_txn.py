"""EndTxn (key 26), v0-5: commit or abort the transaction of a producer.

The response means that the decision is committed; the markers follow. From v5 on (transaction
version 2) it also has the producer id and epoch for the next transaction.
"""

from __future__ import annotations

from moldau.broker.coordinator.transaction.coordinator import TransactionCoordinator
from moldau.broker.coordinator.transaction.machine.values import TV_0, TV_2
from moldau.broker.handlers.support.transaction_errors import for_client
from moldau.broker.network.context import RequestContext
from moldau.wire.errors import ApiError
from moldau.wire.messages import EndTxnRequest, EndTxnResponse

_PRODUCER_FENCED_FROM = 2
_EPOCH_BUMP_FROM = 5


class EndTxnHandler:
    def __init__(self, coordinator: TransactionCoordinator) -> None:
        self._coordinator = coordinator

    async def handle(self, context: RequestContext, request: EndTxnRequest) -> EndTxnResponse:
        try:
            producer = await self._coordinator.end_transaction(
                request.transactional_id,
                request.producer_id,
                request.producer_epoch,
                committed=request.committed,
                client_transaction_version=(
                    TV_2 if context.api_version >= _EPOCH_BUMP_FROM else TV_0
                ),
            )
        except ApiError as error:
            return EndTxnResponse(error_code=for_client(error.code, context, _PRODUCER_FENCED_FROM))
        if context.api_version < _EPOCH_BUMP_FROM:
            return EndTxnResponse()
        return EndTxnResponse(
            producer_id=producer.producer_id, producer_epoch=producer.producer_epoch
        )
