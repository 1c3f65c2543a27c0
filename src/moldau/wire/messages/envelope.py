"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import Message


class EnvelopeRequest(Message):
    """request, versions 0."""

    KIND = "request"
    TYPE = 58
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("request_data", "request_principal", "client_host_address",)
    FIELDS = (
        ('request_data', 'bytes', 0, 32767, None, None, b'', False),
        ('request_principal', 'bytes', 0, 32767, (0, 32767), None, b'', False),
        ('client_host_address', 'bytes', 0, 32767, None, None, b'', False),
    )

    def __init__(
        self,
        *,
        request_data: bytes = b'',
        request_principal: bytes | None = b'',
        client_host_address: bytes = b'',
    ) -> None:
        self.request_data = request_data
        self.request_principal = request_principal
        self.client_host_address = client_host_address
        self.unknown_tagged_fields = None


class EnvelopeResponse(Message):
    """response, versions 0."""

    KIND = "response"
    TYPE = 58
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("response_data", "error_code",)
    FIELDS = (
        ('response_data', 'bytes', 0, 32767, (0, 32767), None, None, False),
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        response_data: bytes | None = None,
        error_code: int = 0,
    ) -> None:
        self.response_data = response_data
        self.error_code = error_code
        self.unknown_tagged_fields = None
