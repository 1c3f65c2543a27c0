"""LeaveGroup (key 13), v0-5: members leave, or an administrator removes them.

Up to v2 one member and one error; from v3 many members, each with its own error.
"""

from __future__ import annotations

from moldau.broker.coordinator.group.coordinator import GroupCoordinator
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import LeaveGroupRequest, LeaveGroupResponse

_MANY_MEMBERS_FROM = 3


class LeaveGroupHandler:
    def __init__(self, coordinator: GroupCoordinator) -> None:
        self._coordinator = coordinator

    async def handle(
        self, context: RequestContext, request: LeaveGroupRequest
    ) -> LeaveGroupResponse:
        if context.api_version >= _MANY_MEMBERS_FROM:
            return await self._coordinator.leave_group(request)
        alone = LeaveGroupRequest(
            group_id=request.group_id,
            members=[LeaveGroupRequest.MemberIdentity(member_id=request.member_id)],
        )
        response = await self._coordinator.leave_group(alone)
        # The only member's error is the request's.
        error = next((each.error_code for each in response.members), response.error_code)
        return LeaveGroupResponse(error_code=error)
