"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import Message


class DefaultPrincipalData(Message):
    """data, versions 0."""

    KIND = "data"
    TYPE = None
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("type", "name", "token_authenticated",)
    FIELDS = (
        ('type', 'string', 0, 32767, None, None, '', False),
        ('name', 'string', 0, 32767, None, None, '', False),
        ('token_authenticated', 'bool', 0, 32767, None, None, False, False),
    )

    def __init__(
        self,
        *,
        type: str = '',
        name: str = '',
        token_authenticated: bool = False,
    ) -> None:
        self.type = type
        self.name = name
        self.token_authenticated = token_authenticated
        self.unknown_tagged_fields = None
