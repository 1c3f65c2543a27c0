"""Delegation tokens (KIP-48): created, renewed, expired and described.

Decided here: who may do what with a token, and how long it lives, with Kafka's errors. A token's
HMAC, which is its password, is not stored: it follows from its id and delegation.token.secret.key.

Invariants: a token never lives beyond its maximum; only its owner, its requester and its renewers
renew or expire it.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import Any, NamedTuple

from moldau.broker.metadata.machine.decision import Decision
from moldau.broker.metadata.machine.features import DELEGATION_TOKEN_METADATA_VERSION
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.view import ControllerView
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DelegationTokenRecord,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RemoveDelegationTokenRecord,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

__all__ = [
    "TokenRules",
    "create_delegation_token",
    "describe_delegation_tokens",
    "expire_delegation_token",
    "remove_expired_tokens",
    "renew_delegation_token",
    "token_hmac",
]


class TokenRules(NamedTuple):
    """The settings `delegation.token.*`; without a key there are no tokens."""

    secret_key: bytes | None
    max_lifetime_ms: int
    expiry_time_ms: int

    def __repr__(self) -> str:
        return f"TokenRules(enabled={self.secret_key is not None})"


def token_hmac(secret_key: bytes, token_id: str) -> bytes:
    return hmac.digest(secret_key, token_id.encode(), "sha512")


def create_delegation_token(
    controller: ControllerView,
    request: CreateDelegationTokenRequest,
    *,
    requester: str,
    token_id: str,
    rules: TokenRules,
    now_ms: int,
) -> Decision[CreateDelegationTokenResponse]:
    owner = requester
    if request.owner_principal_name:
        owner = f"{request.owner_principal_type}:{request.owner_principal_name}"
    owner_kind, _, owner_name = owner.partition(":")
    requester_kind, _, requester_name = requester.partition(":")
    response = CreateDelegationTokenResponse(
        principal_type=owner_kind,
        principal_name=owner_name,
        token_requester_principal_type=requester_kind,
        token_requester_principal_name=requester_name,
    )
    problem = _unavailable(controller.image, rules)
    if problem is None and any(each.principal_type != "User" for each in request.renewers):
        problem = ErrorCode.INVALID_PRINCIPAL_TYPE
    if problem is not None or rules.secret_key is None:
        response.error_code = problem or ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
        return Decision((), response)
    lifetime_ms = rules.max_lifetime_ms
    if request.max_lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, request.max_lifetime_ms)
    record = DelegationTokenRecord(
        owner=owner,
        requester=requester,
        renewers=[f"{each.principal_type}:{each.principal_name}" for each in request.renewers],
        issue_timestamp=now_ms,
        max_timestamp=now_ms + lifetime_ms,
        expiration_timestamp=now_ms + min(lifetime_ms, rules.expiry_time_ms),
        token_id=token_id,
    )
    response.issue_timestamp_ms = record.issue_timestamp
    response.max_timestamp_ms = record.max_timestamp
    response.expiry_timestamp_ms = record.expiration_timestamp
    response.token_id = token_id
    response.hmac = token_hmac(rules.secret_key, token_id)
    return Decision((record,), response)


def renew_delegation_token(
    controller: ControllerView,
    request: RenewDelegationTokenRequest,
    *,
    requester: str,
    rules: TokenRules,
    now_ms: int,
) -> Decision[RenewDelegationTokenResponse]:
    token, problem = _find(controller.image, bytes(request.hmac), requester, rules)
    if problem is None and token is not None and _is_expired(token, now_ms):
        problem = ErrorCode.DELEGATION_TOKEN_EXPIRED
    if token is None or problem is not None:
        return Decision((), RenewDelegationTokenResponse(error_code=problem or 0))
    period_ms = rules.expiry_time_ms if request.renew_period_ms < 0 else request.renew_period_ms
    return _with_expiry(token, now_ms + period_ms, RenewDelegationTokenResponse)


def expire_delegation_token(
    controller: ControllerView,
    request: ExpireDelegationTokenRequest,
    *,
    requester: str,
    rules: TokenRules,
    now_ms: int,
) -> Decision[ExpireDelegationTokenResponse]:
    token, problem = _find(controller.image, bytes(request.hmac), requester, rules)
    if token is None or problem is not None:
        return Decision((), ExpireDelegationTokenResponse(error_code=problem or 0))
    if request.expiry_time_period_ms < 0:
        removal = RemoveDelegationTokenRecord(token_id=token.token_id)
        return Decision((removal,), ExpireDelegationTokenResponse(expiry_timestamp_ms=now_ms))
    if _is_expired(token, now_ms):
        code = ErrorCode.DELEGATION_TOKEN_EXPIRED
        return Decision((), ExpireDelegationTokenResponse(error_code=code))
    expiry_ms = now_ms + request.expiry_time_period_ms
    return _with_expiry(token, expiry_ms, ExpireDelegationTokenResponse)


def remove_expired_tokens(controller: ControllerView, *, now_ms: int) -> Decision[None]:
    records = [
        RemoveDelegationTokenRecord(token_id=token.token_id)
        for token in controller.image.tokens.values()
        if _is_expired(token, now_ms)
    ]
    return Decision(tuple(records), None, atomic=False)


def describe_delegation_tokens(
    image: MetadataImage,
    request: DescribeDelegationTokenRequest,
    *,
    requester: str,
    rules: TokenRules,
    may_describe: Callable[[DelegationTokenRecord], bool],
) -> DescribeDelegationTokenResponse:
    """Those of the owners in the request, or all, that the requester may see; `may_describe` is
    for tokens that are not its own."""
    if rules.secret_key is None:
        return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    owners = None
    if request.owners is not None:
        owners = [f"{each.principal_type}:{each.principal_name}" for each in request.owners]
    secret_key = rules.secret_key
    return DescribeDelegationTokenResponse(
        tokens=[
            _described(token, secret_key)
            for token in image.tokens.values()
            if (owners is None or any(_concerns(token, each) for each in owners))
            and (_concerns(token, requester) or may_describe(token))
        ]
    )


def _described(
    token: DelegationTokenRecord, secret_key: bytes
) -> DescribeDelegationTokenResponse.DescribedDelegationToken:
    response = DescribeDelegationTokenResponse
    owner_kind, _, owner = token.owner.partition(":")
    requester_kind, _, requester = token.requester.partition(":")
    renewers = (each.partition(":") for each in token.renewers)
    return response.DescribedDelegationToken(
        principal_type=owner_kind,
        principal_name=owner,
        token_requester_principal_type=requester_kind,
        token_requester_principal_name=requester,
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token.token_id,
        hmac=token_hmac(secret_key, token.token_id),
        renewers=[
            response.DescribedDelegationTokenRenewer(principal_type=kind, principal_name=name)
            for kind, _, name in renewers
        ],
    )


def _unavailable(image: MetadataImage, rules: TokenRules) -> ErrorCode | None:
    if rules.secret_key is None:
        return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    if image.metadata_version < DELEGATION_TOKEN_METADATA_VERSION:
        return ErrorCode.UNSUPPORTED_VERSION
    return None


def _find(
    image: MetadataImage, token_mac: bytes, requester: str, rules: TokenRules
) -> tuple[DelegationTokenRecord | None, ErrorCode | None]:
    problem = _unavailable(image, rules)
    if problem is not None or rules.secret_key is None:
        return None, problem
    secret_key = rules.secret_key
    for token in image.tokens.values():
        if hmac.compare_digest(token_hmac(secret_key, token.token_id), token_mac):
            if _concerns(token, requester):
                return token, None
            return token, ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    return None, ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def _concerns(token: DelegationTokenRecord, principal: str) -> bool:
    """Whether it is the owner, the requester or a renewer."""
    return principal in (token.owner, token.requester, *token.renewers)


def _is_expired(token: DelegationTokenRecord, now_ms: int) -> bool:
    return token.max_timestamp < now_ms or token.expiration_timestamp < now_ms


def _with_expiry(token: DelegationTokenRecord, expiry_ms: int, response: Any) -> Decision[Any]:
    expiry_ms = min(token.max_timestamp, expiry_ms)
    record = DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=list(token.renewers),
        issue_timestamp=token.issue_timestamp,
        max_timestamp=token.max_timestamp,
        expiration_timestamp=expiry_ms,
        token_id=token.token_id,
    )
    return Decision((record,), response(expiry_timestamp_ms=expiry_ms))
