"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import Message


class SaslAuthenticateRequest(Message):
    """request, versions 0-2."""

    KIND = "request"
    TYPE = 36
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 2
    FLEXIBLE_FROM = 2
    __slots__ = ("auth_bytes",)
    FIELDS = (
        ('auth_bytes', 'bytes', 0, 32767, None, None, b'', False),
    )

    def __init__(
        self,
        *,
        auth_bytes: bytes = b'',
    ) -> None:
        self.auth_bytes = auth_bytes
        self.unknown_tagged_fields = None


class SaslAuthenticateResponse(Message):
    """response, versions 0-2."""

    KIND = "response"
    TYPE = 36
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 2
    FLEXIBLE_FROM = 2
    __slots__ = ("error_code", "error_message", "auth_bytes", "session_lifetime_ms",)
    FIELDS = (
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
        ('error_message', 'string', 0, 32767, (0, 32767), None, '', False),
        ('auth_bytes', 'bytes', 0, 32767, None, None, b'', False),
        ('session_lifetime_ms', 'int64', 1, 32767, None, None, 0, True),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = '',
        auth_bytes: bytes = b'',
        session_lifetime_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.auth_bytes = auth_bytes
        self.session_lifetime_ms = session_lifetime_ms
        self.unknown_tagged_fields = None
