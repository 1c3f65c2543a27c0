"""DescribeDelegationToken (key 41), v1-3: the tokens that one may see, answered by any broker."""

from __future__ import annotations

from collections.abc import Callable

from moldau.broker.config import BrokerConfig
from moldau.broker.handlers.support.tokens import may_use_tokens, token_rules, without_requester
from moldau.broker.metadata.machine.delegation_tokens import describe_delegation_tokens
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.network.context import RequestContext
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    DelegationTokenRecord,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)


class DescribeDelegationTokenHandler:
    def __init__(
        self,
        image: Callable[[], MetadataImage],
        config: Callable[[], BrokerConfig],
        *,
        may_describe: Callable[[RequestContext, DelegationTokenRecord], bool] = (
            lambda context, token: True
        ),
    ) -> None:
        """`may_describe` is for tokens that are not the requester's own."""
        self._image = image
        self._config = config
        self._may_describe = may_describe

    def handle(
        self, context: RequestContext, request: DescribeDelegationTokenRequest
    ) -> DescribeDelegationTokenResponse:
        if not may_use_tokens(context):
            code = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
            return DescribeDelegationTokenResponse(error_code=code)
        response = describe_delegation_tokens(
            self._image(),
            request,
            requester=context.principal,
            rules=token_rules(self._config()),
            may_describe=lambda token: self._may_describe(context, token),
        )
        for token in response.tokens:
            without_requester(context, token)
        return response
