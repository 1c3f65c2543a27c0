"""UnregisterBroker (key 64), v0: remove the registration of a broker that will not come back."""

from __future__ import annotations

from moldau.broker.metadata.machine.brokers import unregister_broker
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import UnregisterBrokerRequest, UnregisterBrokerResponse


class UnregisterBrokerHandler:
    def __init__(self, metadata: MetadataShell) -> None:
        self._metadata = metadata

    async def handle(
        self, context: RequestContext, request: UnregisterBrokerRequest
    ) -> UnregisterBrokerResponse:
        broker_id = request.broker_id
        await self._metadata.run(unregister_broker, broker_id=broker_id)
        return UnregisterBrokerResponse(error_message=None)
