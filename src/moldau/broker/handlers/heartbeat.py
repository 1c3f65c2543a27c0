"""Heartbeat (key 12), v0-4: a member of a classic group is alive. v3 static members."""

from __future__ import annotations

from moldau.broker.coordinator.group.coordinator import GroupCoordinator
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import HeartbeatRequest, HeartbeatResponse


class HeartbeatHandler:
    def __init__(self, coordinator: GroupCoordinator) -> None:
        self._coordinator = coordinator

    async def handle(self, context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
        return await self._coordinator.heartbeat(request)
