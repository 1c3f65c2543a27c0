"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class DescribeUserScramCredentialsRequest(Message):
    """request, versions 0."""

    KIND = "request"
    TYPE = 50
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("users",)
    FIELDS = (
        ('users', '[]UserName', 0, 32767, (0, 32767), None, (), False),
    )

    def __init__(
        self,
        *,
        users: list[DescribeUserScramCredentialsRequest.UserName] | None = UNSET,
    ) -> None:
        self.users = [] if users is UNSET else users
        self.unknown_tagged_fields = None

    class UserName(Message):
        __slots__ = ("name",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
        )

        def __init__(
            self,
            *,
            name: str = '',
        ) -> None:
            self.name = name
            self.unknown_tagged_fields = None


class DescribeUserScramCredentialsResponse(Message):
    """response, versions 0."""

    KIND = "response"
    TYPE = 50
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "results",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
        ('error_message', 'string', 0, 32767, (0, 32767), None, '', False),
        ('results', '[]DescribeUserScramCredentialsResult', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = '',
        results: list[DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.results = [] if results is UNSET else results
        self.unknown_tagged_fields = None

    class DescribeUserScramCredentialsResult(Message):
        __slots__ = ("user", "error_code", "error_message", "credential_infos",)
        FIELDS = (
            ('user', 'string', 0, 32767, None, None, '', False),
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('error_message', 'string', 0, 32767, (0, 32767), None, '', False),
            ('credential_infos', '[]CredentialInfo', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            user: str = '',
            error_code: int = 0,
            error_message: str | None = '',
            credential_infos: list[DescribeUserScramCredentialsResponse.CredentialInfo] = UNSET,
        ) -> None:
            self.user = user
            self.error_code = error_code
            self.error_message = error_message
            self.credential_infos = [] if credential_infos is UNSET else credential_infos
            self.unknown_tagged_fields = None

    class CredentialInfo(Message):
        __slots__ = ("mechanism", "iterations",)
        FIELDS = (
            ('mechanism', 'int8', 0, 32767, None, None, 0, False),
            ('iterations', 'int32', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            mechanism: int = 0,
            iterations: int = 0,
        ) -> None:
            self.mechanism = mechanism
            self.iterations = iterations
            self.unknown_tagged_fields = None
