"""Registers a controller: ControllerRegistration (70), sent until the metadata has it.

Invariants: one request is in flight at a time; if the registration is lost later (a snapshot from
before it, another process with this id), it is sent again.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final
from uuid import UUID

from moldau.broker.controller_channel import ControllerChannel
from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.features import (
    CONTROLLER_REGISTRATION_METADATA_VERSION,
    SUPPORTED_FEATURES,
)
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.model import Endpoint
from moldau.clock import Clock, pause
from moldau.peers.channel import ChannelError
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import ControllerRegistrationRequest

#: The timeout of one request, and the pause after one that failed.
CALL_TIMEOUT_MS: Final = 10_000
RETRY_MS: Final = 500

logger = logging.getLogger(__name__)


class ControllerRegistrationManager:
    """A listener of the metadata."""

    def __init__(
        self,
        *,
        node_id: int,
        incarnation_id: UUID,
        endpoints: tuple[Endpoint, ...],
        controller: ControllerChannel,
        clock: Clock,
    ) -> None:
        self._node_id = node_id
        self._incarnation_id = incarnation_id
        self._endpoints = endpoints
        self._controller = controller
        self._clock = clock
        self._missing = False
        self._sending: asyncio.Task[None] | None = None

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if image.metadata_version < CONTROLLER_REGISTRATION_METADATA_VERSION:
            return
        known = image.controllers.get(self._node_id)
        self._missing = known is None or known.incarnation_id != self._incarnation_id
        if self._missing and self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send())

    def close(self) -> None:
        if self._sending is not None:
            self._sending.cancel()

    async def _send(self) -> None:
        try:
            while self._missing:
                problem = await self._register()
                if problem is not None:
                    logger.warning("controller %d is not registered: %s", self._node_id, problem)
                # It is complete once the metadata has it; a lost record is sent again.
                await pause(self._clock, RETRY_MS)
        finally:
            self._sending = None

    async def _register(self) -> str | None:
        try:
            response = await self._controller.call(
                ApiKey.CONTROLLER_REGISTRATION, self._request(), timeout_ms=CALL_TIMEOUT_MS
            )
        except ChannelError as error:
            return str(error)
        code = getattr(response, "error_code", ErrorCode.UNKNOWN_SERVER_ERROR)
        if code == ErrorCode.NONE:
            return None
        return f"error code {code}: {getattr(response, 'error_message', None) or 'no reason given'}"

    def _request(self) -> ControllerRegistrationRequest:
        return ControllerRegistrationRequest(
            controller_id=self._node_id,
            incarnation_id=self._incarnation_id,
            zk_migration_ready=False,
            listeners=[
                ControllerRegistrationRequest.Listener(
                    name=end.name,
                    host=end.host,
                    port=end.port,
                    security_protocol=end.security_protocol,
                )
                for end in self._endpoints
            ],
            features=[
                ControllerRegistrationRequest.Feature(
                    name=name,
                    min_supported_version=levels.min_version,
                    max_supported_version=levels.max_version,
                )
                for name, levels in SUPPORTED_FEATURES.items()
            ],
        )
