"""SASL/OAUTHBEARER on the server: a bearer token, checked by a validator.

A token that is not accepted is answered with RFC 7628's error, and the login fails with the
client's next message; the reason is logged, and not part of the answer.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from moldau.security.machine.oauth import (
    INVALID_TOKEN,
    KVSEP,
    InvalidToken,
    OAuthToken,
    parse_oauth,
)
from moldau.security.machine.outcomes import AuthenticationFailed

__all__ = ["OAuthServer", "Validate"]

#: Raises InvalidToken.
Validate: TypeAlias = Callable[[str], OAuthToken | Awaitable[OAuthToken]]

logger = logging.getLogger(__name__)


class OAuthServer:
    """Implements `ServerMechanism`."""

    token_authenticated = False

    def __init__(self, validate: Validate) -> None:
        self._validate = validate
        self._refused = False
        self.authorization_id = ""
        self.expires_at_ms: int | None = None
        self.complete = False

    def evaluate(self, token: bytes) -> bytes | Awaitable[bytes]:
        if self._refused and token == KVSEP:
            raise AuthenticationFailed(INVALID_TOKEN)
        self._refused = False
        return self._decide(token)

    async def _decide(self, token: bytes) -> bytes:
        message = parse_oauth(token)
        try:
            verdict = self._validate(message.token)
            accepted = await verdict if inspect.isawaitable(verdict) else verdict
        except InvalidToken as error:
            logger.info("an OAUTHBEARER token is not accepted: %s", error)
            self._refused = True
            return INVALID_TOKEN.encode()
        asked = message.authorization_id
        if asked and asked != accepted.principal_name:
            raise AuthenticationFailed(
                f"Authentication failed: Client requested an authorization id ({asked}) that is "
                f"different from the token's principal name ({accepted.principal_name})"
            )
        self.authorization_id = accepted.principal_name
        self.expires_at_ms = accepted.expires_at_ms
        self.complete = True
        return b""
