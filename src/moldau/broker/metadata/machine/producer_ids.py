"""Producer ids are handed to brokers in blocks; no id is ever given out twice."""

from __future__ import annotations

from moldau.broker.metadata.machine.decision import Decision
from moldau.broker.metadata.machine.image import NO_PRODUCER_ID, MetadataImage
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import AllocateProducerIdsResponse, ProducerIdsRecord

PRODUCER_ID_BLOCK_SIZE = 1000
_PRODUCER_ID_MAX = 2**63 - 1


def allocate_producer_ids(
    image: MetadataImage, *, broker_id: int, broker_epoch: int
) -> Decision[AllocateProducerIdsResponse]:
    first = 0 if image.next_producer_id == NO_PRODUCER_ID else image.next_producer_id
    if first > _PRODUCER_ID_MAX - PRODUCER_ID_BLOCK_SIZE:
        raise ApiError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "Exhausted all producerIds as the next block's end producerId has exceeded the int64"
            " type limit",
        )
    record = ProducerIdsRecord(
        broker_id=broker_id,
        broker_epoch=broker_epoch,
        next_producer_id=first + PRODUCER_ID_BLOCK_SIZE,
    )
    return Decision(
        (record,),
        AllocateProducerIdsResponse(
            producer_id_start=first, producer_id_len=PRODUCER_ID_BLOCK_SIZE
        ),
    )
