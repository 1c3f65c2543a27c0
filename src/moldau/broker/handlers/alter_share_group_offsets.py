"""AlterShareGroupOffsets (key 91), v0: set the start offsets of an empty share group."""

from __future__ import annotations

from moldau.broker.coordinator.group.share.service import ShareGroupService
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse


class AlterShareGroupOffsetsHandler:
    def __init__(self, share_groups: ShareGroupService) -> None:
        self._share_groups = share_groups

    async def handle(
        self, context: RequestContext, request: AlterShareGroupOffsetsRequest
    ) -> AlterShareGroupOffsetsResponse:
        return await self._share_groups.alter_offsets(request)
