"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class SaslHandshakeRequest(Message):
    """request, versions 0-1."""

    KIND = "request"
    TYPE = 17
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 1
    FLEXIBLE_FROM = 32767
    __slots__ = ("mechanism",)
    FIELDS = (
        ('mechanism', 'string', 0, 32767, None, None, '', False),
    )

    def __init__(
        self,
        *,
        mechanism: str = '',
    ) -> None:
        self.mechanism = mechanism
        self.unknown_tagged_fields = None


class SaslHandshakeResponse(Message):
    """response, versions 0-1."""

    KIND = "response"
    TYPE = 17
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 1
    FLEXIBLE_FROM = 32767
    __slots__ = ("error_code", "mechanisms",)
    FIELDS = (
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
        ('mechanisms', '[]string', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        mechanisms: list[str] = UNSET,
    ) -> None:
        self.error_code = error_code
        self.mechanisms = [] if mechanisms is UNSET else mechanisms
        self.unknown_tagged_fields = None
