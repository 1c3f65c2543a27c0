"""InitProducerId (key 22), v0-5: the id that identifies a producer's batches.

Without a transactional id every request gets a fresh id with epoch 0, whatever id the client
had before. With one the transaction coordinator decides, and fences the previous producer with that
transactional id.
"""

from __future__ import annotations

from moldau.broker.coordinator.transaction.coordinator import (
    ProducerIdSource,
    TransactionCoordinator,
)
from moldau.broker.coordinator.transaction.machine.values import NO_PRODUCER, ProducerIdAndEpoch
from moldau.broker.handlers.support.transaction_errors import for_client
from moldau.broker.network.context import RequestContext
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import InitProducerIdRequest, InitProducerIdResponse

_PRODUCER_FENCED_FROM = 4


class InitProducerIdHandler:
    def __init__(self, producer_ids: ProducerIdSource, coordinator: TransactionCoordinator) -> None:
        self._producer_ids = producer_ids
        self._coordinator = coordinator

    async def handle(
        self, context: RequestContext, request: InitProducerIdRequest
    ) -> InitProducerIdResponse:
        try:
            producer = await self._init(request)
        except ApiError as error:
            return InitProducerIdResponse(
                error_code=for_client(error.code, context, _PRODUCER_FENCED_FROM),
                producer_id=NO_PRODUCER.producer_id,
                producer_epoch=NO_PRODUCER.producer_epoch,
            )
        return InitProducerIdResponse(
            producer_id=producer.producer_id, producer_epoch=producer.producer_epoch
        )

    async def _init(self, request: InitProducerIdRequest) -> ProducerIdAndEpoch:
        given = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
        has_id = given.producer_id != NO_PRODUCER.producer_id
        has_epoch = given.producer_epoch != NO_PRODUCER.producer_epoch
        if has_id != has_epoch:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, "producer id and epoch must be given together"
            )
        if request.transactional_id is not None:
            return await self._coordinator.init_producer_id(
                request.transactional_id,
                request.transaction_timeout_ms,
                expected=given if has_id else None,
                enable_two_phase_commit=request.enable2_pc,
                keep_prepared=request.keep_prepared_txn,
            )
        try:
            return ProducerIdAndEpoch(await self._producer_ids.next_id(), 0)
        except ApiError as error:
            # The controller cannot be asked right now: as Kafka, have the client retry.
            raise ApiError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "no producer id to be had"
            ) from error
