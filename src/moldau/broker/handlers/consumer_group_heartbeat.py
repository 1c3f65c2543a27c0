"""ConsumerGroupHeartbeat (key 68), v0-1: a member of a consumer group joins, stays, leaves.

v1 added subscriptions by regular expression, and ids that members generate.
"""

from __future__ import annotations

from functools import partial

from moldau.broker.coordinator.group.coordinator import GroupCoordinator
from moldau.broker.network.context import RequestContext
from moldau.broker.security.authorization.authorization import Authorization
from moldau.wire.acls import AclOperation, ResourceType
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse


class ConsumerGroupHeartbeatHandler:
    def __init__(
        self,
        groups: GroupCoordinator,
        *,
        enabled: bool = True,
        authorization: Authorization | None = None,
    ) -> None:
        """`enabled`: consumer is among `group.coordinator.rebalance.protocols`."""
        self._authorization = authorization
        self._groups = groups
        self._enabled = enabled

    async def handle(
        self, context: RequestContext, request: ConsumerGroupHeartbeatRequest
    ) -> ConsumerGroupHeartbeatResponse:
        if not self._enabled:
            return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        may_describe = None
        if self._authorization is not None:
            may_describe = partial(
                self._authorization.allows,
                context,
                AclOperation.DESCRIBE,
                ResourceType.TOPIC,
                logged=False,
            )
        return await self._groups.consumer_group_heartbeat(context, request, may_describe)
