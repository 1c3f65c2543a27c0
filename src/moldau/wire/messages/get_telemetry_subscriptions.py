"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class GetTelemetrySubscriptionsRequest(Message):
    """request, versions 0."""

    KIND = "request"
    TYPE = 71
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("client_instance_id",)
    FIELDS = (
        ('client_instance_id', 'uuid', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        client_instance_id: UUID = ZERO_UUID,
    ) -> None:
        self.client_instance_id = client_instance_id
        self.unknown_tagged_fields = None


class GetTelemetrySubscriptionsResponse(Message):
    """response, versions 0."""

    KIND = "response"
    TYPE = 71
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "error_code", "client_instance_id", "subscription_id", "accepted_compression_types", "push_interval_ms", "telemetry_max_bytes", "delta_temporality", "requested_metrics",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
        ('client_instance_id', 'uuid', 0, 32767, None, None, (), False),
        ('subscription_id', 'int32', 0, 32767, None, None, 0, False),
        ('accepted_compression_types', '[]int8', 0, 32767, None, None, (), False),
        ('push_interval_ms', 'int32', 0, 32767, None, None, 0, False),
        ('telemetry_max_bytes', 'int32', 0, 32767, None, None, 0, False),
        ('delta_temporality', 'bool', 0, 32767, None, None, False, False),
        ('requested_metrics', '[]string', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        client_instance_id: UUID = ZERO_UUID,
        subscription_id: int = 0,
        accepted_compression_types: list[int] = UNSET,
        push_interval_ms: int = 0,
        telemetry_max_bytes: int = 0,
        delta_temporality: bool = False,
        requested_metrics: list[str] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.client_instance_id = client_instance_id
        self.subscription_id = subscription_id
        self.accepted_compression_types = [] if accepted_compression_types is UNSET else accepted_compression_types
        self.push_interval_ms = push_interval_ms
        self.telemetry_max_bytes = telemetry_max_bytes
        self.delta_temporality = delta_temporality
        self.requested_metrics = [] if requested_metrics is UNSET else requested_metrics
        self.unknown_tagged_fields = None
