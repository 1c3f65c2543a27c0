"""ListGroups (key 16), v0-5: the groups this broker coordinates. v4 states, v5 types as filters."""

from __future__ import annotations

from moldau.broker.coordinator.group.coordinator import GroupCoordinator
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import ListGroupsRequest, ListGroupsResponse


class ListGroupsHandler:
    def __init__(self, coordinator: GroupCoordinator) -> None:
        self._coordinator = coordinator

    async def handle(
        self, context: RequestContext, request: ListGroupsRequest
    ) -> ListGroupsResponse:
        return await self._coordinator.list_groups(request)
