"""BrokerHeartbeat (key 63), v0-2: a broker is alive, and asks to serve or to stop."""

from __future__ import annotations

from collections.abc import Callable

from moldau.broker.metadata.machine.broker_lifecycle import process_heartbeat
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.network.context import ConnectionInfo, RequestContext
from moldau.times import ElapsedMs
from moldau.wire.messages import BrokerHeartbeatRequest, BrokerHeartbeatResponse


class BrokerHeartbeatHandler:
    def __init__(
        self,
        metadata: MetadataShell,
        *,
        elapsed_ms: Callable[[], ElapsedMs],
        on_heartbeat: Callable[[int, int, ConnectionInfo], None],
    ) -> None:
        """`elapsed_ms` is the monotonic clock that sessions are measured by; `on_heartbeat` is
        called with the broker's id and epoch and the connection of each accepted heartbeat."""
        self._metadata = metadata
        self._on_heartbeat = on_heartbeat
        self._elapsed_ms = elapsed_ms

    async def handle(
        self, context: RequestContext, request: BrokerHeartbeatRequest
    ) -> BrokerHeartbeatResponse:
        now_ms = self._elapsed_ms()
        response = await self._metadata.run(process_heartbeat, request, now_ms=now_ms)
        self._on_heartbeat(request.broker_id, request.broker_epoch, context.connection)
        return response
