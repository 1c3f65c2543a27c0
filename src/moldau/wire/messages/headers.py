"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import Message


class RequestHeader(Message):
    """header, versions 1-2."""

    KIND = "header"
    TYPE = None
    LOWEST_VERSION = 1
    HIGHEST_VERSION = 2
    FLEXIBLE_FROM = 2
    __slots__ = ("request_api_key", "request_api_version", "correlation_id", "client_id",)
    FIELDS = (
        ('request_api_key', 'int16', 0, 32767, None, None, 0, False),
        ('request_api_version', 'int16', 0, 32767, None, None, 0, False),
        ('correlation_id', 'int32', 0, 32767, None, None, 0, False),
        ('client_id', 'inflexible-string', 1, 32767, (1, 32767), None, '', False),
    )

    def __init__(
        self,
        *,
        request_api_key: int = 0,
        request_api_version: int = 0,
        correlation_id: int = 0,
        client_id: str | None = '',
    ) -> None:
        self.request_api_key = request_api_key
        self.request_api_version = request_api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.unknown_tagged_fields = None


class ResponseHeader(Message):
    """header, versions 0-1."""

    KIND = "header"
    TYPE = None
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 1
    FLEXIBLE_FROM = 1
    __slots__ = ("correlation_id",)
    FIELDS = (
        ('correlation_id', 'int32', 0, 32767, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        correlation_id: int = 0,
    ) -> None:
        self.correlation_id = correlation_id
        self.unknown_tagged_fields = None
