"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class DescribeDelegationTokenRequest(Message):
    """request, versions 1-3."""

    KIND = "request"
    TYPE = 41
    LOWEST_VERSION = 1
    HIGHEST_VERSION = 3
    FLEXIBLE_FROM = 2
    __slots__ = ("owners",)
    FIELDS = (
        ('owners', '[]DescribeDelegationTokenOwner', 0, 32767, (0, 32767), None, (), False),
    )

    def __init__(
        self,
        *,
        owners: list[DescribeDelegationTokenRequest.DescribeDelegationTokenOwner] | None = UNSET,
    ) -> None:
        self.owners = [] if owners is UNSET else owners
        self.unknown_tagged_fields = None

    class DescribeDelegationTokenOwner(Message):
        __slots__ = ("principal_type", "principal_name",)
        FIELDS = (
            ('principal_type', 'string', 0, 32767, None, None, '', False),
            ('principal_name', 'string', 0, 32767, None, None, '', False),
        )

        def __init__(
            self,
            *,
            principal_type: str = '',
            principal_name: str = '',
        ) -> None:
            self.principal_type = principal_type
            self.principal_name = principal_name
            self.unknown_tagged_fields = None


class DescribeDelegationTokenResponse(Message):
    """response, versions 1-3."""

    KIND = "response"
    TYPE = 41
    LOWEST_VERSION = 1
    HIGHEST_VERSION = 3
    FLEXIBLE_FROM = 2
    __slots__ = ("error_code", "tokens", "throttle_time_ms",)
    FIELDS = (
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
        ('tokens', '[]DescribedDelegationToken', 0, 32767, None, None, (), False),
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        tokens: list[DescribeDelegationTokenResponse.DescribedDelegationToken] = UNSET,
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.tokens = [] if tokens is UNSET else tokens
        self.throttle_time_ms = throttle_time_ms
        self.unknown_tagged_fields = None

    class DescribedDelegationToken(Message):
        __slots__ = ("principal_type", "principal_name", "token_requester_principal_type", "token_requester_principal_name", "issue_timestamp", "expiry_timestamp", "max_timestamp", "token_id", "hmac", "renewers",)
        FIELDS = (
            ('principal_type', 'string', 0, 32767, None, None, '', False),
            ('principal_name', 'string', 0, 32767, None, None, '', False),
            ('token_requester_principal_type', 'string', 3, 32767, None, None, '', False),
            ('token_requester_principal_name', 'string', 3, 32767, None, None, '', False),
            ('issue_timestamp', 'int64', 0, 32767, None, None, 0, False),
            ('expiry_timestamp', 'int64', 0, 32767, None, None, 0, False),
            ('max_timestamp', 'int64', 0, 32767, None, None, 0, False),
            ('token_id', 'string', 0, 32767, None, None, '', False),
            ('hmac', 'bytes', 0, 32767, None, None, b'', False),
            ('renewers', '[]DescribedDelegationTokenRenewer', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            principal_type: str = '',
            principal_name: str = '',
            token_requester_principal_type: str = '',
            token_requester_principal_name: str = '',
            issue_timestamp: int = 0,
            expiry_timestamp: int = 0,
            max_timestamp: int = 0,
            token_id: str = '',
            hmac: bytes = b'',
            renewers: list[DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer] = UNSET,
        ) -> None:
            self.principal_type = principal_type
            self.principal_name = principal_name
            self.token_requester_principal_type = token_requester_principal_type
            self.token_requester_principal_name = token_requester_principal_name
            self.issue_timestamp = issue_timestamp
            self.expiry_timestamp = expiry_timestamp
            self.max_timestamp = max_timestamp
            self.token_id = token_id
            self.hmac = hmac
            self.renewers = [] if renewers is UNSET else renewers
            self.unknown_tagged_fields = None

    class DescribedDelegationTokenRenewer(Message):
        __slots__ = ("principal_type", "principal_name",)
        FIELDS = (
            ('principal_type', 'string', 0, 32767, None, None, '', False),
            ('principal_name', 'string', 0, 32767, None, None, '', False),
        )

        def __init__(
            self,
            *,
            principal_type: str = '',
            principal_name: str = '',
        ) -> None:
            self.principal_type = principal_type
            self.principal_name = principal_name
            self.unknown_tagged_fields = None
