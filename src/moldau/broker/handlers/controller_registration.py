"""ControllerRegistration (key 70), v0: a controller registers with the active one."""

from __future__ import annotations

from moldau.broker.metadata.machine.controllers import register_controller
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import ControllerRegistrationRequest, ControllerRegistrationResponse


class ControllerRegistrationHandler:
    def __init__(self, metadata: MetadataShell) -> None:
        self._metadata = metadata

    async def handle(
        self, context: RequestContext, request: ControllerRegistrationRequest
    ) -> ControllerRegistrationResponse:
        return await self._metadata.run(register_controller, request)
