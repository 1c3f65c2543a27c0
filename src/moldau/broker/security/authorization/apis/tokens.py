"""APIs of delegation tokens."""

from __future__ import annotations

from moldau.broker.security.authorization.permissions import Answer, Handle, Permissions, then
from moldau.wire.acls import AclOperation, ResourceType
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)


def create_delegation_token(
    permissions: Permissions, request: CreateDelegationTokenRequest, handle: Handle
) -> Answer:
    """For oneself nothing; for another owner CREATE_TOKENS on that user."""
    owner = f"{request.owner_principal_type}:{request.owner_principal_name}"
    principal = permissions.context.principal
    if not request.owner_principal_name or owner == principal:
        return handle(request)
    if permissions.may(AclOperation.CREATE_TOKENS, ResourceType.USER, owner):
        return handle(request)
    kind, _, name = principal.partition(":")
    return CreateDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
        principal_type=request.owner_principal_type or "",
        principal_name=request.owner_principal_name,
        token_requester_principal_type=kind,
        token_requester_principal_name=name,
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )


def describe_delegation_token(
    permissions: Permissions, request: DescribeDelegationTokenRequest, handle: Handle
) -> Answer:
    """One's own tokens; others with DESCRIBE on the token or DESCRIBE_TOKENS on their owner."""

    def keep(response: DescribeDelegationTokenResponse) -> Message:
        response.tokens = [each for each in response.tokens if _is_visible(permissions, each)]
        return response

    return then(handle(request), keep)


def _is_visible(
    permissions: Permissions, token: DescribeDelegationTokenResponse.DescribedDelegationToken
) -> bool:
    owner = f"{token.principal_type}:{token.principal_name}"
    requester = f"{token.token_requester_principal_type}:{token.token_requester_principal_name}"
    renewers = {f"{each.principal_type}:{each.principal_name}" for each in token.renewers}
    if permissions.context.principal in {owner, requester, *renewers}:
        return True
    return permissions.may(
        AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id
    ) or permissions.may(AclOperation.DESCRIBE_TOKENS, ResourceType.USER, owner)
