"""BrokerRegistration (key 62), v0-4: a broker joins the cluster, or comes back."""

from __future__ import annotations

from collections.abc import Callable

from moldau.broker.metadata.machine.brokers import register_broker
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.network.context import RequestContext
from moldau.times import ElapsedMs
from moldau.wire.messages import BrokerRegistrationRequest, BrokerRegistrationResponse


class BrokerRegistrationHandler:
    def __init__(self, metadata: MetadataShell, *, elapsed_ms: Callable[[], ElapsedMs]) -> None:
        """`elapsed_ms` is the monotonic clock that sessions are measured by."""
        self._metadata = metadata
        self._elapsed_ms = elapsed_ms

    async def handle(
        self, context: RequestContext, request: BrokerRegistrationRequest
    ) -> BrokerRegistrationResponse:
        now_ms = self._elapsed_ms()
        version = context.api_version
        return await self._metadata.run(
            register_broker, request, now_ms=now_ms, api_version=version
        )
