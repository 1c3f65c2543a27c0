"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class AlterUserScramCredentialsRequest(Message):
    """request, versions 0."""

    KIND = "request"
    TYPE = 51
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("deletions", "upsertions",)
    FIELDS = (
        ('deletions', '[]ScramCredentialDeletion', 0, 32767, None, None, (), False),
        ('upsertions', '[]ScramCredentialUpsertion', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        deletions: list[AlterUserScramCredentialsRequest.ScramCredentialDeletion] = UNSET,
        upsertions: list[AlterUserScramCredentialsRequest.ScramCredentialUpsertion] = UNSET,
    ) -> None:
        self.deletions = [] if deletions is UNSET else deletions
        self.upsertions = [] if upsertions is UNSET else upsertions
        self.unknown_tagged_fields = None

    class ScramCredentialDeletion(Message):
        __slots__ = ("name", "mechanism",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('mechanism', 'int8', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            mechanism: int = 0,
        ) -> None:
            self.name = name
            self.mechanism = mechanism
            self.unknown_tagged_fields = None

    class ScramCredentialUpsertion(Message):
        __slots__ = ("name", "mechanism", "iterations", "salt", "salted_password",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('mechanism', 'int8', 0, 32767, None, None, 0, False),
            ('iterations', 'int32', 0, 32767, None, None, 0, False),
            ('salt', 'bytes', 0, 32767, None, None, b'', False),
            ('salted_password', 'bytes', 0, 32767, None, None, b'', False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            mechanism: int = 0,
            iterations: int = 0,
            salt: bytes = b'',
            salted_password: bytes = b'',
        ) -> None:
            self.name = name
            self.mechanism = mechanism
            self.iterations = iterations
            self.salt = salt
            self.salted_password = salted_password
            self.unknown_tagged_fields = None


class AlterUserScramCredentialsResponse(Message):
    """response, versions 0."""

    KIND = "response"
    TYPE = 51
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "results",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('results', '[]AlterUserScramCredentialsResult', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is UNSET else results
        self.unknown_tagged_fields = None

    class AlterUserScramCredentialsResult(Message):
        __slots__ = ("user", "error_code", "error_message",)
        FIELDS = (
            ('user', 'string', 0, 32767, None, None, '', False),
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('error_message', 'string', 0, 32767, (0, 32767), None, '', False),
        )

        def __init__(
            self,
            *,
            user: str = '',
            error_code: int = 0,
            error_message: str | None = '',
        ) -> None:
            self.user = user
            self.error_code = error_code
            self.error_message = error_message
            self.unknown_tagged_fields = None
