"""StreamsGroupDescribe (key 89), v0: topology, members and tasks of streams groups."""

from __future__ import annotations

import asyncio

from moldau.broker.coordinator.group.coordinator import GroupCoordinator
from moldau.broker.handlers.support.authorized_operations import GROUP_OPERATIONS
from moldau.broker.network.context import RequestContext
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse

_Group = StreamsGroupDescribeResponse.DescribedGroup


class StreamsGroupDescribeHandler:
    def __init__(self, groups: GroupCoordinator, *, enabled: bool = True) -> None:
        """`enabled`: streams is among `group.coordinator.rebalance.protocols`."""
        self._groups = groups
        self._enabled = enabled

    async def handle(
        self, context: RequestContext, request: StreamsGroupDescribeRequest
    ) -> StreamsGroupDescribeResponse:
        groups = await asyncio.gather(*map(self._describe, request.group_ids))
        if request.include_authorized_operations:
            for group in groups:
                if group.error_code == ErrorCode.NONE:
                    group.authorized_operations = GROUP_OPERATIONS
        return StreamsGroupDescribeResponse(groups=groups)

    async def _describe(self, group_id: str) -> _Group:
        if not self._enabled:
            return _Group(group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION)
        if not group_id:
            return _Group(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
        try:
            return await self._groups.describe_streams_group(group_id)
        except ApiError as error:
            return _Group(
                group_id=group_id, error_code=error.code, error_message=error.message or None
            )
