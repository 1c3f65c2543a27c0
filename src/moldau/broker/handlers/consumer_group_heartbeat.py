"""ConsumerGroupHeartbeat (key 68), v0-1: a member of a consumer group joins, stays, leaves.

v1 added subscriptions by regular expression, and ids that members generate.
"""

from __future__ import annotations

from moldau.broker.coordinator.group.coordinator import GroupCoordinator
from moldau.broker.network.context import RequestContext
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse


class ConsumerGroupHeartbeatHandler:
    def __init__(self, groups: GroupCoordinator, *, enabled: bool = True) -> None:
        """`enabled`: consumer is among `group.coordinator.rebalance.protocols`."""
        self._groups = groups
        self._enabled = enabled

    async def handle(
        self, context: RequestContext, request: ConsumerGroupHeartbeatRequest
    ) -> ConsumerGroupHeartbeatResponse:
        if not self._enabled:
            return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        return await self._groups.consumer_group_heartbeat(context, request)
