"""What the handlers of delegation tokens share."""

from __future__ import annotations

from typing import Final

from moldau.broker.config import BrokerConfig
from moldau.broker.metadata.machine.delegation_tokens import TokenRules
from moldau.broker.network.context import ANONYMOUS, RequestContext
from moldau.wire.messages import CreateDelegationTokenResponse, DescribeDelegationTokenResponse

_SECRET_KEY: Final = "delegation.token.secret.key"
#: From this version on responses say who requested a token; earlier ones have no place for it.
_REQUESTER_VERSION_MIN: Final = 3


def may_use_tokens(context: RequestContext) -> bool:
    """Only who has proved who it is by other means than a token gets and changes tokens."""
    if context.connection.token_authenticated or context.security_protocol == "PLAINTEXT":
        return False
    return context.security_protocol != "SSL" or context.principal != ANONYMOUS


def without_requester(
    context: RequestContext,
    described: CreateDelegationTokenResponse
    | DescribeDelegationTokenResponse.DescribedDelegationToken,
) -> None:
    """Remove who requested a token from the response to an older client."""
    if context.api_version < _REQUESTER_VERSION_MIN:
        described.token_requester_principal_type = ""
        described.token_requester_principal_name = ""


def token_rules(config: BrokerConfig) -> TokenRules:
    secret_key = config[_SECRET_KEY]
    return TokenRules(
        secret_key=None if secret_key is None else secret_key.value.encode(),
        max_lifetime_ms=config["delegation.token.max.lifetime.ms"],
        expiry_time_ms=config["delegation.token.expiry.time.ms"],
    )
