"""SyncGroup (key 14), v0-5: the leader sends the assignment, each member gets its part.

v3 static members; v5 the client names the protocol it believes was chosen.
"""

from __future__ import annotations

from moldau.broker.coordinator.group.coordinator import GroupCoordinator
from moldau.broker.network.context import RequestContext
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import SyncGroupRequest, SyncGroupResponse

_PROTOCOL_FROM = 5


class SyncGroupHandler:
    def __init__(self, coordinator: GroupCoordinator) -> None:
        self._coordinator = coordinator

    async def handle(self, context: RequestContext, request: SyncGroupRequest) -> SyncGroupResponse:
        if context.api_version >= _PROTOCOL_FROM and (
            request.protocol_type is None or request.protocol_name is None
        ):
            return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        return await self._coordinator.sync_group(request)
