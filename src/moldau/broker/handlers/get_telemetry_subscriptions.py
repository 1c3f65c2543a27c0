"""GetTelemetrySubscriptions (key 71), v0: a client requests its metrics subscription (KIP-714)."""

from __future__ import annotations

from collections.abc import Callable

from moldau.broker.machine.telemetry import ACCEPTED_COMPRESSION_TYPES, Client, ClientTelemetry
from moldau.broker.network.context import RequestContext
from moldau.times import ElapsedMs
from moldau.wire.messages import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from moldau.wire.uuids import random_uuid


class GetTelemetrySubscriptionsHandler:
    def __init__(
        self,
        telemetry: ClientTelemetry,
        *,
        elapsed_ms: Callable[[], ElapsedMs],
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self._telemetry = telemetry
        self._elapsed_ms = elapsed_ms
        self._random_bytes = random_bytes

    def handle(
        self, context: RequestContext, request: GetTelemetrySubscriptionsRequest
    ) -> GetTelemetrySubscriptionsResponse:
        granted = self._telemetry.get(
            request.client_instance_id,
            client_of(context),
            now_ms=self._elapsed_ms(),
            fresh_id=random_uuid(self._random_bytes(16)),
        )
        return GetTelemetrySubscriptionsResponse(
            client_instance_id=granted.client_instance_id,
            subscription_id=granted.subscription_id,
            accepted_compression_types=list(ACCEPTED_COMPRESSION_TYPES),
            push_interval_ms=granted.push_interval_ms,
            telemetry_max_bytes=self._telemetry.telemetry_max_bytes,
            delta_temporality=True,
            requested_metrics=list(granted.metrics),
        )


def client_of(context: RequestContext) -> Client:
    """The client that subscriptions are matched with."""
    return Client(
        context.client_id or "",
        context.connection.client_software_name,
        context.connection.client_software_version,
        context.client_host,
        context.connection.client_port,
    )
