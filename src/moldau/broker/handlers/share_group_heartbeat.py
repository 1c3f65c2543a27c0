"""ShareGroupHeartbeat (key 76), v1: join, stay in and leave a share group."""

from __future__ import annotations

from moldau.broker.coordinator.group.share.service import ShareGroupService
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse


class ShareGroupHeartbeatHandler:
    def __init__(self, share_groups: ShareGroupService) -> None:
        self._share_groups = share_groups

    async def handle(
        self, context: RequestContext, request: ShareGroupHeartbeatRequest
    ) -> ShareGroupHeartbeatResponse:
        return await self._share_groups.heartbeat(context, request)
