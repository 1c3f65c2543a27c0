"""OAUTHBEARER on the client: where tokens come from, and when the next one is fetched.

A token comes from the token endpoint by client credentials (a secret, or an assertion that the
client signs) or for an assertion (the jwt-bearer grant), from a file (`file:` as the endpoint's
URL), or from a class of the user's own. It is used for all connections until
`sasl.login.refresh.window.factor` of its lifetime is over; one that cannot be replaced is used
until it expires. Invariant: tokens and secrets are in no error and no log line.
"""

from __future__ import annotations

import asyncio
import base64
import inspect
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias
from urllib.parse import quote_plus, urlencode

from moldau.clock import Clock, LoopClock, pause
from moldau.security.assertions import Assertion
from moldau.security.http import DEFAULT_TIMEOUT_S, FetchFailed, as_path, fetch_json, read_text
from moldau.security.jwt_keys import claims_unverified
from moldau.security.machine.oauth import InvalidToken, OAuthClient
from moldau.security.machine.outcomes import AuthenticationFailed
from moldau.security.sasl_client import SaslClient

__all__ = ["OAuthLogin", "RefreshRules", "TokenSource", "endpoint_source"]

TokenSource: TypeAlias = Callable[[], str | Awaitable[str]]

_FORM: Final = "application/x-www-form-urlencoded"
_GRANT_OF_ASSERTIONS: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_CLIENT_ASSERTION: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshRules:
    """sasl.login.refresh.*"""

    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_period_s: int = 60
    buffer_s: int = 300

    def due_after_s(self, lifetime_s: float, chance: float) -> float:
        """How long a token that lives so long is used; `chance` is between 0 and 1."""
        due_s = lifetime_s * (self.window_factor + self.window_jitter * chance)
        if self.min_period_s + self.buffer_s >= lifetime_s:
            # As in Kafka both are ignored for a token that lives too shortly.
            return due_s
        return max(float(self.min_period_s), min(due_s, lifetime_s - self.buffer_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A token endpoint and what is sent to it."""

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None
    urlencode_header: bool
    timeout_s: float
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    assertion: Assertion | None = None
    """In place of the secret."""
    is_grant: bool = False
    """The assertion is exchanged for a token, and says for whom (the jwt-bearer grant)."""

    async def fetch(self, clock: Clock) -> str:
        """A token; tried again for sasl.login.retry.backoff.max.ms. Raises FetchFailed."""
        began_ms, delay_ms = clock.elapsed_ms(), max(1, self.retry_backoff_ms)
        while True:
            try:
                return _access_token(await self._ask(clock))
            except FetchFailed as error:
                left_ms = began_ms + self.retry_backoff_max_ms - clock.elapsed_ms()
                if left_ms <= delay_ms or " answered 4" in str(error):
                    raise
            await pause(clock, delay_ms)
            delay_ms *= 2

    async def _ask(self, clock: Clock) -> Any:
        headers = {
            "Accept": "application/json",
            "Cache-Control": "no-cache",
            "Content-Type": _FORM,
        }
        fields = {"grant_type": _GRANT_OF_ASSERTIONS if self.is_grant else "client_credentials"}
        if self.assertion is None:
            headers["Authorization"] = self._basic()
        elif self.is_grant:
            fields["assertion"] = self.assertion.text(clock.now_ms())
        else:
            fields["client_assertion_type"] = _CLIENT_ASSERTION
            fields["client_assertion"] = self.assertion.text(clock.now_ms())
            if self.client_id:
                fields["client_id"] = self.client_id
        if self.scope:
            fields["scope"] = self.scope.strip()
        body = urlencode(fields).encode()
        return await fetch_json(self.url, body=body, headers=headers, timeout_s=self.timeout_s)

    def _basic(self) -> str:
        pair = (self.client_id, self.client_secret)
        if self.urlencode_header:
            pair = (quote_plus(pair[0]), quote_plus(pair[1]))
        return "Basic " + base64.b64encode(":".join(pair).encode()).decode()


def _access_token(answer: Any) -> str:
    token = answer.get("access_token") if isinstance(answer, dict) else None
    if not isinstance(token, str) or not token.strip():
        raise FetchFailed("the token endpoint response's access_token value must be non-null")
    return token.strip()


def endpoint_source(endpoint: Endpoint, clock: Clock) -> TokenSource:
    path = as_path(endpoint.url)
    if path is None:
        return lambda: endpoint.fetch(clock)
    return lambda: read_text(path).strip()


def timeout_s(connect_ms: int | None, read_ms: int | None) -> float:
    """One for both: sasl.login.connect.timeout.ms and sasl.login.read.timeout.ms."""
    given = [each / 1000 for each in (connect_ms, read_ms) if each is not None]
    return max(given) if given else DEFAULT_TIMEOUT_S


class OAuthLogin:
    """Implements `Login`."""

    mechanism = "OAUTHBEARER"

    def __init__(
        self,
        source: TokenSource,
        *,
        extensions: Mapping[str, str] | None = None,
        rules: RefreshRules | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._source = source
        self._extensions = dict(extensions or {})
        self._rules = rules or RefreshRules()
        self._clock: Clock = clock or LoopClock()
        self._token: str | None = None
        self._due_ms = 0
        self._expires_ms = 0
        self._fetching: asyncio.Lock | None = None

    async def client(self, host: str) -> SaslClient:
        return OAuthClient(await self._current(), self._extensions)

    async def _current(self) -> str:
        # Made here: a login may be made before there is a loop.
        if self._fetching is None:
            self._fetching = asyncio.Lock()
        async with self._fetching:
            now_ms = self._clock.now_ms()
            if self._token is None or now_ms >= self._due_ms:
                try:
                    await self._fetch()
                except (FetchFailed, InvalidToken) as error:
                    if self._token is None or now_ms >= self._expires_ms:
                        raise AuthenticationFailed(
                            f"no token could be retrieved for OAUTHBEARER: {error}"
                        ) from None
                    logger.warning("the OAUTHBEARER token is used on: %s", error)
            return self._token or ""

    async def _fetch(self) -> None:
        try:
            found = self._source()
            token = await found if inspect.isawaitable(found) else found
        except (FetchFailed, InvalidToken):
            raise
        except Exception as error:
            # A class of the user's own may put the token into its errors.
            raise FetchFailed(
                f"the login callback handler failed: {type(error).__name__}"
            ) from None
        now_ms = self._clock.now_ms()
        expires_s = claims_unverified(token).get("exp")
        if isinstance(expires_s, bool) or not isinstance(expires_s, int | float):
            raise InvalidToken("the token has no expiration time (exp)")
        lifetime_s = max(0.0, expires_s - now_ms / 1000)
        self._token = token
        self._expires_ms = int(expires_s * 1000)
        due_s = self._rules.due_after_s(lifetime_s, random.random())
        self._due_ms = now_ms + int(due_s * 1000)
