"""PushTelemetry (key 72), v0: a client pushes its metrics (KIP-714)."""

from __future__ import annotations

import logging
from collections.abc import Callable

from moldau.broker.handlers.get_telemetry_subscriptions import client_of
from moldau.broker.machine.telemetry import ClientTelemetry, Payload
from moldau.broker.network.context import RequestContext
from moldau.times import ElapsedMs
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import PushTelemetryRequest, PushTelemetryResponse

logger = logging.getLogger(__name__)


class DroppedTelemetry:
    """The default receiver of metrics: counts and drops them."""

    def __init__(self) -> None:
        self.payloads = 0
        self.bytes = 0

    def __call__(self, payload: Payload) -> None:
        self.payloads += 1
        self.bytes += len(payload.metrics)


class PushTelemetryHandler:
    def __init__(
        self,
        telemetry: ClientTelemetry,
        *,
        elapsed_ms: Callable[[], ElapsedMs],
        receive: Callable[[Payload], None] | None = None,
    ) -> None:
        """`receive` is called with every payload taken; it must not block."""
        self._telemetry = telemetry
        self._elapsed_ms = elapsed_ms
        self._receive = receive if receive is not None else DroppedTelemetry()

    def handle(
        self, context: RequestContext, request: PushTelemetryRequest
    ) -> PushTelemetryResponse:
        payload = self._telemetry.push(
            request.client_instance_id,
            client_of(context),
            now_ms=self._elapsed_ms(),
            subscription_id=request.subscription_id,
            terminating=request.terminating,
            compression_type=request.compression_type,
            metrics=request.metrics,
        )
        if payload is not None:
            try:
                self._receive(payload)
            except ApiError:
                # The metrics are wrong, which is the client's affair.
                raise
            except Exception as error:
                # The receiver is not our code, and may fail because of the metrics.
                logger.exception("the receiver of client metrics failed")
                raise ApiError(
                    ErrorCode.INVALID_RECORD, "the receiver of client metrics failed"
                ) from error
        return PushTelemetryResponse()
