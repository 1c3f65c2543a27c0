"""DescribeGroups (key 15), v0-6: state, members and assignments of classic groups.

v6 returns GROUP_ID_NOT_FOUND for a group that does not exist; before, its state is Dead.
"""

from __future__ import annotations

import asyncio

from moldau.broker.coordinator.group.coordinator import GroupCoordinator
from moldau.broker.handlers.support.authorized_operations import GROUP_OPERATIONS
from moldau.broker.network.context import RequestContext
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import DescribeGroupsRequest, DescribeGroupsResponse

_AUTHORIZED_OPERATIONS_FROM = 3


class DescribeGroupsHandler:
    def __init__(self, coordinator: GroupCoordinator) -> None:
        self._coordinator = coordinator

    async def handle(
        self, context: RequestContext, request: DescribeGroupsRequest
    ) -> DescribeGroupsResponse:
        version = context.api_version
        groups = await asyncio.gather(
            *(self._coordinator.describe_group(group_id, version) for group_id in request.groups)
        )
        if version >= _AUTHORIZED_OPERATIONS_FROM and request.include_authorized_operations:
            for group in groups:
                if group.error_code == ErrorCode.NONE:
                    group.authorized_operations = GROUP_OPERATIONS
        return DescribeGroupsResponse(groups=groups)
