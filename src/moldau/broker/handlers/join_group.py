"""JoinGroup (key 11), v0-9: become a member of a classic group and wait for its next generation.

v1 rebalance timeout apart from the session's; v4 MEMBER_ID_REQUIRED round trip; v5 static
members; v7 protocol type, and null instead of an empty protocol name; v9 skip assignment.
"""

from __future__ import annotations

from moldau.broker.coordinator.group.coordinator import GroupCoordinator
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import JoinGroupRequest, JoinGroupResponse

_NULL_PROTOCOL_FROM = 7


class JoinGroupHandler:
    def __init__(self, coordinator: GroupCoordinator) -> None:
        self._coordinator = coordinator

    async def handle(self, context: RequestContext, request: JoinGroupRequest) -> JoinGroupResponse:
        response = await self._coordinator.join_group(context, request)
        # "No protocol" is null where the version allows it.
        if context.api_version >= _NULL_PROTOCOL_FROM:
            response.protocol_name = response.protocol_name or None
        else:
            response.protocol_name = response.protocol_name or ""
        return response
