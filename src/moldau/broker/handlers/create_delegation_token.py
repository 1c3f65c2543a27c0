"""CreateDelegationToken (key 38), v1-3: a token to log in with."""

from __future__ import annotations

from collections.abc import Callable

from moldau.broker.config import BrokerConfig
from moldau.broker.handlers.support.forwarded import Forward
from moldau.broker.handlers.support.tokens import may_use_tokens, token_rules, without_requester
from moldau.broker.metadata.machine.delegation_tokens import create_delegation_token
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.network.context import RequestContext
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from moldau.wire.uuids import random_uuid, uuid_to_text


class ForwardedCreateDelegationTokenHandler:
    """On a broker: refuses who may not use tokens, and has the active controller decide."""

    def __init__(self, forward: Forward) -> None:
        self._forward = forward

    async def handle(
        self, context: RequestContext, request: CreateDelegationTokenRequest
    ) -> Message:
        if not may_use_tokens(context):
            code = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
            return refused_creation(context, request, code)
        if any(each.principal_type != "User" for each in request.renewers):
            return refused_creation(context, request, ErrorCode.INVALID_PRINCIPAL_TYPE)
        response = await self._forward(context, request)
        if isinstance(response, CreateDelegationTokenResponse):
            without_requester(context, response)
        return response


class CreateDelegationTokenHandler:
    """On the active controller."""

    def __init__(
        self,
        metadata: MetadataShell,
        config: Callable[[], BrokerConfig],
        *,
        now_ms: Callable[[], int],
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self._metadata = metadata
        self._config = config
        self._now_ms = now_ms
        self._random_bytes = random_bytes

    async def handle(
        self, context: RequestContext, request: CreateDelegationTokenRequest
    ) -> CreateDelegationTokenResponse:
        response = await self._metadata.run(
            create_delegation_token,
            request,
            requester=context.principal,
            token_id=uuid_to_text(random_uuid(self._random_bytes(16))),
            rules=token_rules(self._config()),
            now_ms=self._now_ms(),
        )
        without_requester(context, response)
        return response


def refused_creation(
    context: RequestContext, request: CreateDelegationTokenRequest, code: ErrorCode
) -> CreateDelegationTokenResponse:
    """As Kafka answers: with the principals, and without a token."""
    kind, _, name = context.principal.partition(":")
    response = CreateDelegationTokenResponse(
        error_code=code,
        principal_type=(request.owner_principal_name and request.owner_principal_type) or kind,
        principal_name=request.owner_principal_name or name,
        token_requester_principal_type=kind,
        token_requester_principal_name=name,
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )
    without_requester(context, response)
    return response
