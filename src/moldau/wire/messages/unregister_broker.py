"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import Message


class UnregisterBrokerRequest(Message):
    """request, versions 0."""

    KIND = "request"
    TYPE = 64
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("broker_id",)
    FIELDS = (
        ('broker_id', 'int32', 0, 32767, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
    ) -> None:
        self.broker_id = broker_id
        self.unknown_tagged_fields = None


class UnregisterBrokerResponse(Message):
    """response, versions 0."""

    KIND = "response"
    TYPE = 64
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "error_code", "error_message",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
        ('error_message', 'string', 0, 32767, (0, 32767), None, '', False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = '',
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tagged_fields = None
