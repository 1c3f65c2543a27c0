"""ExpireDelegationToken (key 40), v1-2: let a token end."""

from __future__ import annotations

from collections.abc import Callable

from moldau.broker.config import BrokerConfig
from moldau.broker.handlers.support.forwarded import Forward
from moldau.broker.handlers.support.tokens import may_use_tokens, token_rules
from moldau.broker.metadata.machine.delegation_tokens import expire_delegation_token
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.network.context import RequestContext
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse


class ForwardedExpireDelegationTokenHandler:
    """On a broker: refuses who may not use tokens, and has the active controller decide."""

    def __init__(self, forward: Forward) -> None:
        self._forward = forward

    async def handle(
        self, context: RequestContext, request: ExpireDelegationTokenRequest
    ) -> Message:
        if not may_use_tokens(context):
            code = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
            return ExpireDelegationTokenResponse(error_code=code)
        return await self._forward(context, request)


class ExpireDelegationTokenHandler:
    """On the active controller."""

    def __init__(
        self,
        metadata: MetadataShell,
        config: Callable[[], BrokerConfig],
        *,
        now_ms: Callable[[], int],
    ) -> None:
        self._metadata = metadata
        self._config = config
        self._now_ms = now_ms

    async def handle(
        self, context: RequestContext, request: ExpireDelegationTokenRequest
    ) -> ExpireDelegationTokenResponse:
        return await self._metadata.run(
            expire_delegation_token,
            request,
            requester=context.principal,
            rules=token_rules(self._config()),
            now_ms=self._now_ms(),
        )
