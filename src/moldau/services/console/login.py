"""Login: who a request is from, by session cookie, by basic authentication, or nobody.

A password is checked by logging in to the broker with it. A request that changes something must
come from a page of the console itself: browsers say where a request comes from (`Origin`,
`Sec-Fetch-Site`). Without a login only names of this machine are accepted as `Host`, so that no
web site can reach the console under a name of its own.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import urlsplit

from moldau.client.errors import AuthenticationError
from moldau.clock import LoopClock
from moldau.http.authentication import Authentication
from moldau.http.machine.errors import HttpError
from moldau.http.request import ANONYMOUS, Principal, Request
from moldau.services.console.clients import Clients
from moldau.services.console.config import ConsoleConfig
from moldau.services.console.machine.sessions import FailedLogins, Session, Sessions

__all__ = ["COOKIE", "Login"]

COOKIE: Final = "moldau_console"
PASSWORD_CHARACTERS_MAX: Final = 1000
CHECK_S: Final = 15.0
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class Login(Authentication):
    """See the module."""

    def __init__(self, config: ConsoleConfig, clients: Clients) -> None:
        super().__init__(methods=("NONE",))
        self._config = config
        self._clients = clients
        self._clock = LoopClock()
        self.sessions = Sessions(
            count_max=config["sessions.max"], timeout_ms=config["session.timeout.ms"]
        )
        self._failures = FailedLogins(
            count_max=config["login.failures.max"], window_ms=config["login.failures.window.ms"]
        )

    async def principal_of(self, request: Request) -> Principal:
        """Raises HttpError with 401 or 403."""
        self.check_origin(request)
        if self._config.login == "NONE":
            return ANONYMOUS
        session = self.session_of(request)
        if session is not None:
            return Principal(session.user, session.method, session.secret)
        scheme, _, text = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "basic" and self._config.login == "PASSWORD":
            return await self._by_basic(text.strip())
        if scheme.lower() == "bearer" and self._config.login == "OIDC":
            # The broker checks the token when it is used.
            return Principal("token", "bearer", text.strip())
        # Without WWW-Authenticate: a browser would show its own dialog instead of the login page.
        raise HttpError(401, "Log in first.")

    def session_of(self, request: Request) -> Session | None:
        session_id = _cookie(request)
        if session_id is None:
            return None
        return self.sessions.find(session_id, self._clock.elapsed_ms())

    async def check_password(self, user: str, password: str) -> Principal:
        """The principal, after the broker has accepted the password. Raises HttpError."""
        now_ms = self._clock.elapsed_ms()
        if self._failures.is_blocked(user, now_ms):
            raise HttpError(429, "Too many failed logins. Wait a minute and try again.")
        if not user or not password or len(user) + len(password) > PASSWORD_CHARACTERS_MAX:
            raise HttpError(401, "The user name or the password is wrong.")
        principal = Principal(user, "basic", password)
        cluster = next(iter(self._config.clusters))
        try:
            with self._clients.of(principal, cluster) as clients:
                await clients.admin.describe_cluster(timeout=CHECK_S)
        except AuthenticationError:
            self._failures.add(user, now_ms)
            raise HttpError(401, "The user name or the password is wrong.") from None
        self._failures.clear(user)
        return principal

    def begin(self, principal: Principal, *, expires_in_ms: int | None = None) -> str:
        """A session for the user; returns the cookie's value."""
        session_id = secrets.token_urlsafe(32)
        now_ms = self._clock.elapsed_ms()
        expires_ms = None if expires_in_ms is None else now_ms + expires_in_ms
        self.sessions.add(
            session_id,
            Session(principal.name, principal.method, principal.secret, now_ms, expires_ms),
        )
        return session_id

    def end(self, request: Request) -> None:
        session_id = _cookie(request)
        found = self.sessions.remove(session_id) if session_id is not None else None
        if found is not None:
            self._clients.forget(Principal(found.user, found.method, found.secret))

    async def _by_basic(self, text: str) -> Principal:
        try:
            user, _, password = base64.b64decode(text, validate=True).decode().partition(":")
        except (binascii.Error, ValueError):
            raise HttpError(401, "The header Authorization cannot be read.") from None
        return await self.check_password(user, password)

    def check_origin(self, request: Request) -> None:
        if self._config.login == "NONE":
            host = urlsplit("//" + request.headers.get("host", "")).hostname or ""
            listens_on = {each.host.strip("[]") for each in self._config.http.listeners}
            if listens_on <= _LOOPBACK and host not in _LOOPBACK:
                raise HttpError(
                    403, f"Host {host}: without a login the console is used as localhost only."
                )
        if request.method in _SAFE:
            return
        origin = request.headers.get("origin")
        foreign = origin is not None and origin != request.base_url
        if foreign or request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            raise HttpError(403, "Requests of other web sites may not change anything.")


def _cookie(request: Request) -> str | None:
    try:
        found = SimpleCookie(request.headers.get("cookie", "").replace(",", ";")).get(COOKIE)
    except CookieError:
        return None
    return None if found is None else found.value
