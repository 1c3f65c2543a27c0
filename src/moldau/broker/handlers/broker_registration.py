"""BrokerRegistration (key 62), v0-4: a broker joins the cluster, or comes back."""

from __future__ import annotations

from collections.abc import Callable

from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import BrokerRegistrationRequest, BrokerRegistrationResponse


class BrokerRegistrationHandler:
    def __init__(self, metadata: MetadataShell, *, now_ms: Callable[[], int]) -> None:
        """`now_ms` is the monotonic clock that sessions are measured by."""
        self._metadata = metadata
        self._now_ms = now_ms

    async def handle(
        self, context: RequestContext, request: BrokerRegistrationRequest
    ) -> BrokerRegistrationResponse:
        now_ms = self._now_ms()
        version = context.api_version
        return await self._metadata.run(
            lambda controller: controller.register_broker(
                request, now_ms=now_ms, api_version=version
            )
        )
