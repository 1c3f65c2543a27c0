"""BrokerHeartbeat (key 63), v0-2: a broker is alive, and asks to serve or to stop."""

from __future__ import annotations

from collections.abc import Callable

from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import BrokerHeartbeatRequest, BrokerHeartbeatResponse


class BrokerHeartbeatHandler:
    def __init__(self, metadata: MetadataShell, *, now_ms: Callable[[], int]) -> None:
        """`now_ms` is the monotonic clock that sessions are measured by."""
        self._metadata = metadata
        self._now_ms = now_ms

    async def handle(
        self, context: RequestContext, request: BrokerHeartbeatRequest
    ) -> BrokerHeartbeatResponse:
        now_ms = self._now_ms()
        return await self._metadata.run(
            lambda controller: controller.process_heartbeat(request, now_ms=now_ms)
        )
