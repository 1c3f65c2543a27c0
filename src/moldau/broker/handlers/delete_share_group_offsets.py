"""DeleteShareGroupOffsets (key 92), v0: delete the offsets of an empty share group."""

from __future__ import annotations

from moldau.broker.coordinator.group.share.service import ShareGroupService
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse


class DeleteShareGroupOffsetsHandler:
    def __init__(self, share_groups: ShareGroupService) -> None:
        self._share_groups = share_groups

    async def handle(
        self, context: RequestContext, request: DeleteShareGroupOffsetsRequest
    ) -> DeleteShareGroupOffsetsResponse:
        return await self._share_groups.delete_offsets(request)
