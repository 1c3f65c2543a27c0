"""DeleteGroups (42), v0-2: remove empty groups with all their offsets."""

from __future__ import annotations

from moldau.broker.coordinator.group.coordinator import GroupCoordinator
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import DeleteGroupsRequest, DeleteGroupsResponse


class DeleteGroupsHandler:
    def __init__(self, coordinator: GroupCoordinator) -> None:
        self._coordinator = coordinator

    async def handle(
        self, context: RequestContext, request: DeleteGroupsRequest
    ) -> DeleteGroupsResponse:
        results = await self._coordinator.delete_groups(request.groups_names)
        return DeleteGroupsResponse(results=results)
