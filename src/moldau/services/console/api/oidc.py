"""Login with OpenID Connect: the authorization code flow with PKCE.

The id token says who the user is; the access token is what the user's clients show the broker
(OAUTHBEARER). Logins under way are kept for ten minutes, at most a thousand of them.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from collections import OrderedDict
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

from moldau.clock import LoopClock
from moldau.http.machine.errors import HttpError
from moldau.http.machine.routes import Route
from moldau.http.request import Answer, Principal, Request
from moldau.security.http import FetchFailed, fetch_json
from moldau.security.jwt_keys import JwtValidator
from moldau.security.machine.oauth import ClaimRules, InvalidToken
from moldau.services.console.api.routing import api, text
from moldau.services.console.api.session import session_cookie
from moldau.services.console.backend import Backend

__all__ = ["OidcHandlers"]

WAITING_MAX: Final = 1000
WAITING_S: Final = 600.0
CALLBACK: Final = "/api/oidc/callback"


class _Login(NamedTuple):
    began_s: float
    verifier: str
    nonce: str
    redirect: str


class OidcHandlers:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._waiting: OrderedDict[str, _Login] = OrderedDict()
        self._found: dict[str, Any] | None = None
        self._tokens: JwtValidator | None = None

    def routes(self) -> list[Route]:
        if self._backend.config.login != "OIDC":
            return []
        return [
            api("GET", "/oidc/login", self.begin, "To the login of the OpenID provider",
                tag="session", public=True, status=302),
            api("GET", "/oidc/callback", self.finish, "Back from the OpenID provider",
                tag="session", public=True, status=302,
                parameters=(text("code", "of the provider"), text("state", "of this login"))),
        ]  # fmt: skip

    async def begin(self, request: Request) -> Answer:
        config = self._backend.config
        provider = await self._provider()
        state, verifier, nonce = (secrets.token_urlsafe(32) for _ in range(3))
        redirect = config["oidc.redirect.url"] or request.base_url + CALLBACK
        self._waiting[state] = _Login(time.monotonic(), verifier, nonce, redirect)
        if len(self._waiting) > WAITING_MAX:
            self._waiting.popitem(last=False)
        challenge = hashlib.sha256(verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": config["oidc.client.id"],
            "redirect_uri": redirect,
            "scope": " ".join(config["oidc.scopes"]),
            "state": state,
            "nonce": nonce,
            "code_challenge": base64.urlsafe_b64encode(challenge).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        # The cookie ties the login to this browser: nobody can log another one in.
        cookie = f"moldau_console_login={state}; Path=/api/oidc; HttpOnly; SameSite=Lax"
        return _to(f"{provider['authorization_endpoint']}?{urlencode(query)}", cookie)

    async def finish(self, request: Request) -> Answer:
        state = request.text("state") or ""
        login = self._waiting.pop(state, None)
        if (
            login is None
            or time.monotonic() - login.began_s > WAITING_S
            or f"moldau_console_login={state}" not in request.headers.get("cookie", "")
        ):
            return _failed("The login took too long or was begun elsewhere. Try again.")
        code = request.text("code")
        if code is None:
            return _failed(f"The provider refused: {request.text('error') or 'no code'}")
        try:
            principal, expires_in = await self._principal(login, code)
        except (FetchFailed, InvalidToken) as error:
            return _failed(f"The login failed: {error}")
        session_id = self._backend.login.begin(
            principal, expires_in_ms=None if expires_in is None else expires_in * 1000
        )
        return _to("/", session_cookie(request, session_id))

    async def _principal(self, login: _Login, code: str) -> tuple[Principal, int | None]:
        config = self._backend.config
        provider = await self._provider()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": login.redirect,
            "client_id": config["oidc.client.id"],
            "code_verifier": login.verifier,
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        secret = config["oidc.client.secret"]
        if secret is not None:
            pair = f"{quote(config['oidc.client.id'], safe='')}:{quote(secret.value, safe='')}"
            headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        answer = await fetch_json(
            provider["token_endpoint"], body=urlencode(form).encode(), headers=headers
        )
        id_token, access_token = answer.get("id_token"), answer.get("access_token")
        if not isinstance(id_token, str) or not isinstance(access_token, str):
            raise InvalidToken("the provider sent no id token")
        if self._tokens is None:
            rules = ClaimRules(
                expected_issuer=provider["issuer"],
                expected_audience=(config["oidc.client.id"],),
                sub_claim_name=config["oauthbearer.sub.claim.name"],
            )
            self._tokens = JwtValidator(provider["jwks_uri"], rules, clock=LoopClock())
        accepted = await self._tokens.validate(id_token)
        if _claims(id_token).get("nonce") != login.nonce:
            raise InvalidToken("the id token belongs to another login")
        expires = answer.get("expires_in")
        lifetime = expires if isinstance(expires, int) and expires > 0 else None
        return Principal(accepted.principal_name, "bearer", access_token), lifetime

    async def _provider(self) -> dict[str, Any]:
        if self._found is None:
            issuer = self._backend.config["oidc.issuer.url"].rstrip("/")
            url = f"{issuer}/.well-known/openid-configuration"
            try:
                found = await fetch_json(url)
            except FetchFailed as error:
                raise HttpError(503, f"The OpenID provider cannot be asked: {error}") from None
            needed = ("issuer", "authorization_endpoint", "token_endpoint", "jwks_uri")
            if not isinstance(found, dict) or any(each not in found for each in needed):
                raise HttpError(503, f"{url} does not describe an OpenID provider.")
            self._found = found
        return self._found


def _claims(token: str) -> dict[str, Any]:
    """Of a token whose signature has been checked."""
    part = token.split(".")[1]
    found = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return found if isinstance(found, dict) else {}


def _to(url: str, cookie: str | None = None) -> Answer:
    headers = {"Location": url, "Cache-Control": "no-store"}
    if cookie is not None:
        headers["Set-Cookie"] = cookie
    return Answer(status=302, body={}, headers=headers)


def _failed(message: str) -> Answer:
    return _to("/login?" + urlencode({"message": message}))
