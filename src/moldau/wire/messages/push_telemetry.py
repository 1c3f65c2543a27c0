"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import Message
from moldau.wire.uuids import ZERO_UUID


class PushTelemetryRequest(Message):
    """request, versions 0."""

    KIND = "request"
    TYPE = 72
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("client_instance_id", "subscription_id", "terminating", "compression_type", "metrics",)
    FIELDS = (
        ('client_instance_id', 'uuid', 0, 32767, None, None, (), False),
        ('subscription_id', 'int32', 0, 32767, None, None, 0, False),
        ('terminating', 'bool', 0, 32767, None, None, False, False),
        ('compression_type', 'int8', 0, 32767, None, None, 0, False),
        ('metrics', 'bytes', 0, 32767, None, None, b'', False),
    )

    def __init__(
        self,
        *,
        client_instance_id: UUID = ZERO_UUID,
        subscription_id: int = 0,
        terminating: bool = False,
        compression_type: int = 0,
        metrics: bytes = b'',
    ) -> None:
        self.client_instance_id = client_instance_id
        self.subscription_id = subscription_id
        self.terminating = terminating
        self.compression_type = compression_type
        self.metrics = metrics
        self.unknown_tagged_fields = None


class PushTelemetryResponse(Message):
    """response, versions 0."""

    KIND = "response"
    TYPE = 72
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "error_code",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.unknown_tagged_fields = None
