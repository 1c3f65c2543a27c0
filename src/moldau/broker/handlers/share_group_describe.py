"""ShareGroupDescribe (key 77), v1: members of share groups and their assignments."""

from __future__ import annotations

import asyncio

from moldau.broker.coordinator.group.share.service import ShareGroupService
from moldau.broker.handlers.support.authorized_operations import GROUP_OPERATIONS
from moldau.broker.network.context import RequestContext
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import ShareGroupDescribeRequest, ShareGroupDescribeResponse


class ShareGroupDescribeHandler:
    def __init__(self, share_groups: ShareGroupService) -> None:
        self._share_groups = share_groups

    async def handle(
        self, context: RequestContext, request: ShareGroupDescribeRequest
    ) -> ShareGroupDescribeResponse:
        groups = await asyncio.gather(*map(self._share_groups.describe, request.group_ids))
        if request.include_authorized_operations:
            for group in groups:
                if group.error_code == ErrorCode.NONE:
                    group.authorized_operations = GROUP_OPERATIONS
        return ShareGroupDescribeResponse(groups=groups)
