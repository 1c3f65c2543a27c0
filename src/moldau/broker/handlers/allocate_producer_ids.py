"""AllocateProducerIds (key 67), v0: a broker takes the next block of producer ids."""

from __future__ import annotations

from moldau.broker.metadata.machine.producer_ids import allocate_producer_ids
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import AllocateProducerIdsRequest, AllocateProducerIdsResponse


class AllocateProducerIdsHandler:
    def __init__(self, metadata: MetadataShell) -> None:
        self._metadata = metadata

    async def handle(
        self, context: RequestContext, request: AllocateProducerIdsRequest
    ) -> AllocateProducerIdsResponse:
        return await self._metadata.run(allocate_producer_ids, request)
