"""DescribeShareGroupOffsets (key 90), v0-1: start offsets of share groups, with lag from v1 on."""

from __future__ import annotations

import asyncio

from moldau.broker.coordinator.group.share.service import ShareGroupService
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)


class DescribeShareGroupOffsetsHandler:
    def __init__(self, share_groups: ShareGroupService) -> None:
        self._share_groups = share_groups

    async def handle(
        self, context: RequestContext, request: DescribeShareGroupOffsetsRequest
    ) -> DescribeShareGroupOffsetsResponse:
        groups = await asyncio.gather(
            *[self._share_groups.describe_offsets(group) for group in request.groups]
        )
        return DescribeShareGroupOffsetsResponse(groups=groups)
