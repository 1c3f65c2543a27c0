"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import Message


class RenewDelegationTokenRequest(Message):
    """request, versions 1-2."""

    KIND = "request"
    TYPE = 39
    LOWEST_VERSION = 1
    HIGHEST_VERSION = 2
    FLEXIBLE_FROM = 2
    __slots__ = ("hmac", "renew_period_ms",)
    FIELDS = (
        ('hmac', 'bytes', 0, 32767, None, None, b'', False),
        ('renew_period_ms', 'int64', 0, 32767, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        hmac: bytes = b'',
        renew_period_ms: int = 0,
    ) -> None:
        self.hmac = hmac
        self.renew_period_ms = renew_period_ms
        self.unknown_tagged_fields = None


class RenewDelegationTokenResponse(Message):
    """response, versions 1-2."""

    KIND = "response"
    TYPE = 39
    LOWEST_VERSION = 1
    HIGHEST_VERSION = 2
    FLEXIBLE_FROM = 2
    __slots__ = ("error_code", "expiry_timestamp_ms", "throttle_time_ms",)
    FIELDS = (
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
        ('expiry_timestamp_ms', 'int64', 0, 32767, None, None, 0, False),
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        expiry_timestamp_ms: int = 0,
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.expiry_timestamp_ms = expiry_timestamp_ms
        self.throttle_time_ms = throttle_time_ms
        self.unknown_tagged_fields = None
