"""DeleteGroups (key 42), v0-2: remove empty groups with all their offsets."""

from __future__ import annotations

from moldau.broker.coordinator.group.coordinator import GroupCoordinator
from moldau.broker.coordinator.group.share.service import ShareGroupService
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import DeleteGroupsRequest, DeleteGroupsResponse


class DeleteGroupsHandler:
    def __init__(self, coordinator: GroupCoordinator, share_groups: ShareGroupService) -> None:
        self._coordinator = coordinator
        self._share_groups = share_groups

    async def handle(
        self, context: RequestContext, request: DeleteGroupsRequest
    ) -> DeleteGroupsResponse:
        # The state of share groups is stored elsewhere and must be deleted before them.
        refused = await self._share_groups.delete_state_of_groups(request.groups_names)
        results = await self._coordinator.delete_groups(
            [group_id for group_id in request.groups_names if group_id not in refused]
        )
        results += [
            DeleteGroupsResponse.DeletableGroupResult(group_id=group_id, error_code=error)
            for group_id, error in refused.items()
        ]
        return DeleteGroupsResponse(results=results)
