"""Producer ids, which brokers get in blocks. Invariant: no id is in two blocks."""

from __future__ import annotations

from moldau.broker.metadata.machine.brokers import check_broker_epoch
from moldau.broker.metadata.machine.decision import Decision
from moldau.broker.metadata.machine.view import ControllerView
from moldau.wire.constants import NO_PRODUCER_ID
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    ProducerIdsRecord,
)

PRODUCER_ID_BLOCK_SIZE = 1000
_PRODUCER_ID_MAX = 2**63 - 1


def allocate_producer_ids(
    controller: ControllerView, request: AllocateProducerIdsRequest
) -> Decision[AllocateProducerIdsResponse]:
    check_broker_epoch(controller, request.broker_id, request.broker_epoch)
    image = controller.image
    first = 0 if image.next_producer_id == NO_PRODUCER_ID else image.next_producer_id
    if first > _PRODUCER_ID_MAX - PRODUCER_ID_BLOCK_SIZE:
        raise ApiError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "Exhausted all producerIds as the next block's end producerId has exceeded the int64"
            " type limit",
        )
    record = ProducerIdsRecord(
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        next_producer_id=first + PRODUCER_ID_BLOCK_SIZE,
    )
    return Decision(
        (record,),
        AllocateProducerIdsResponse(
            producer_id_start=first, producer_id_len=PRODUCER_ID_BLOCK_SIZE
        ),
    )
