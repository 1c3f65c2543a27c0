"""SASL/PLAIN on the server: users of the JAAS line, or a class of the user's own.

Invariant: an unknown user and a wrong password take the same path and get the same answer.
"""

from __future__ import annotations

import hmac
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

from moldau.security.machine.outcomes import AuthenticationFailed
from moldau.security.machine.plain import INVALID, PlainMessage, parse_plain

__all__ = ["PlainServer", "PlainUsers", "Verify"]

#: Whether a password is that of a user.
Verify: TypeAlias = Callable[[str, str], bool | Awaitable[bool]]

USER_PREFIX: Final = "user_"
_UNVERIFIED: Final = "Authentication failed: credentials for user could not be verified"

logger = logging.getLogger(__name__)


class PlainUsers:
    """The options `user_<name>="<password>"` of a JAAS line."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._passwords = {
            name.removeprefix(USER_PREFIX): value.encode()
            for name, value in options.items()
            if name.startswith(USER_PREFIX)
        }

    def verify(self, username: str, password: str) -> bool:
        expected = self._passwords.get(username)
        given = password.encode()
        matches = hmac.compare_digest(given, given if expected is None else expected)
        return matches and expected is not None


class PlainServer:
    """Implements `ServerMechanism`."""

    expires_at_ms = None
    token_authenticated = False

    def __init__(self, verify: Verify) -> None:
        self._verify = verify
        self.authorization_id = ""
        self.complete = False

    def evaluate(self, token: bytes) -> bytes | Awaitable[bytes]:
        message = parse_plain(token)
        try:
            verdict = self._verify(message.username, message.password)
        except Exception as error:
            raise _unverified(error) from error
        if inspect.isawaitable(verdict):
            return self._decide_later(message, verdict)
        return self._decide(message, bool(verdict))

    async def _decide_later(self, message: PlainMessage, verdict: Awaitable[bool]) -> bytes:
        try:
            is_right = bool(await verdict)
        except Exception as error:
            raise _unverified(error) from error
        return self._decide(message, is_right)

    def _decide(self, message: PlainMessage, is_right: bool) -> bytes:
        if not is_right:
            raise AuthenticationFailed(INVALID)
        message.check_authorization_id()
        self.authorization_id = message.username
        self.complete = True
        return b""


def _unverified(error: Exception) -> AuthenticationFailed:
    logger.error("the callback handler of PLAIN failed: %s", type(error).__name__)
    return AuthenticationFailed(_UNVERIFIED)
