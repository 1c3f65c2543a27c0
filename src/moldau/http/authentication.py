"""Who a request is from: basic, bearer and client certificates, mapped to principals.

Which methods count is `authentication.method`; a client certificate, where the listener asks for
one, counts besides. Passwords of basic authentication are in `authentication.users.file`, one
`user: password[,role ...]` a line as in Jetty's property files; a service that passes credentials
on to the broker brings its own check. Comparisons take the same time whether a user exists or not.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from moldau.clock import LoopClock
from moldau.config.errors import ConfigError
from moldau.http.config import HttpConfig
from moldau.http.machine.errors import HttpError, unauthorized
from moldau.http.request import ANONYMOUS, Principal, Request
from moldau.security.jwt_keys import JwtValidator
from moldau.security.machine.distinguished_names import InvalidCertificate, subject_name
from moldau.security.machine.oauth import ClaimRules, InvalidToken
from moldau.security.machine.principals import InvalidRule, NoMatchingRule, PrincipalMapper

__all__ = ["Authentication", "PasswordCheck", "UsersFile", "authentication_of"]

CREDENTIALS_BYTES_MAX: Final = 64 * 1024


class PasswordCheck(Protocol):
    """Returns the roles of a user with this password; None refuses it."""

    def __call__(
        self, user: str, password: str
    ) -> frozenset[str] | Awaitable[frozenset[str] | None] | None: ...


class UsersFile:
    """Users of `authentication.users.file`; the file is read again when it changes."""

    def __init__(self, path: str) -> None:
        """Raises ConfigError."""
        self._path = Path(path)
        self._stamp = (0, 0)
        self._users: dict[str, tuple[str, frozenset[str]]] = {}
        try:
            self._refresh()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"authentication.users.file {path} cannot be read: {error}",
                key="authentication.users.file",
            ) from None

    def __call__(self, user: str, password: str) -> frozenset[str] | None:
        # What was read last stays valid while the file is replaced.
        with suppress(OSError, UnicodeDecodeError):
            self._refresh()
        stored, roles = self._users.get(user, ("", frozenset()))
        return roles if _is_password(password, stored) and user in self._users else None

    def _refresh(self) -> None:
        status = self._path.stat()
        stamp = (status.st_mtime_ns, status.st_size)
        if stamp != self._stamp:
            self._users = _parse_users(self._path.read_text())
            self._stamp = stamp


def _parse_users(text: str) -> dict[str, tuple[str, frozenset[str]]]:
    users = {}
    for line in text.splitlines():
        line = line.strip()
        if not line or line.startswith(("#", "!")):
            continue
        name, separator, rest = line.partition(":")
        if not separator:
            name, _, rest = line.partition("=")
        password, *roles = (part.strip() for part in rest.split(","))
        users[name.strip()] = (password, frozenset(role for role in roles if role))
    return users


def _is_password(given: str, stored: str) -> bool:
    if stored.startswith("MD5:"):
        digest = hashlib.md5(given.encode(), usedforsecurity=False).hexdigest()
        return hmac.compare_digest(digest.encode(), stored[4:].lower().encode())
    return hmac.compare_digest(given.encode(), stored.encode())


class Authentication:
    """Finds the principal of a request or refuses it."""

    def __init__(
        self,
        *,
        methods: Sequence[str],
        realm: str = "",
        roles: Sequence[str] = ("*",),
        check_password: PasswordCheck | None = None,
        tokens: JwtValidator | None = None,
        mapper: PrincipalMapper | None = None,
    ) -> None:
        self._basic = check_password if "BASIC" in methods else None
        self._tokens = tokens if "BEARER" in methods else None
        self._any_token = "BEARER" in methods and tokens is None
        self._roles = frozenset(roles)
        self._mapper = mapper
        self._required = self._basic is not None or "BEARER" in methods
        self._challenges = []
        if self._basic is not None:
            self._challenges.append(f'Basic realm="{realm or "moldau"}"')
        if "BEARER" in methods:
            self._challenges.append("Bearer")

    async def principal_of(self, request: Request) -> Principal:
        """Raises HttpError with 401 or 403."""
        if not self._required and "moldau.certificate" not in request.scope:
            return ANONYMOUS
        scheme, _, credentials = request.headers.get("authorization", "").strip().partition(" ")
        found: Principal | None = None
        if self._basic is not None and scheme.lower() == "basic":
            found = await self._by_password(self._basic, credentials.strip())
        elif scheme.lower() == "bearer" and (self._tokens is not None or self._any_token):
            found = await self._by_token(credentials.strip())
        elif not scheme:
            found = self._by_certificate(request)
        if found is None:
            if self._required:
                raise unauthorized(self._challenges)
            return ANONYMOUS
        if "*" not in self._roles and not found.roles & self._roles:
            raise HttpError(403, f"{found} has none of the roles that may use this service.")
        return found

    async def _by_password(self, check: PasswordCheck, credentials: str) -> Principal | None:
        if len(credentials) > CREDENTIALS_BYTES_MAX:
            return None
        try:
            user, separator, password = base64.b64decode(credentials).decode().partition(":")
        except (binascii.Error, ValueError):
            return None
        if not separator or not user:
            return None
        roles = check(user, password)
        if isinstance(roles, Awaitable):
            roles = await roles
        return None if roles is None else Principal(user, "basic", password, roles)

    async def _by_token(self, token: str) -> Principal | None:
        if self._tokens is None:
            # The broker checks the token: there is nothing here that could.
            return Principal("", "bearer", token) if token else None
        try:
            accepted = await self._tokens.validate(token)
        except InvalidToken:
            return None
        return Principal(accepted.principal_name, "bearer", token, accepted.scopes)

    def _by_certificate(self, request: Request) -> Principal | None:
        certificate = request.scope.get("moldau.certificate")
        if certificate is None or self._mapper is None:
            return None
        try:
            return Principal(self._mapper.name_of(subject_name(certificate)), "certificate")
        except (InvalidCertificate, NoMatchingRule):
            return None


def authentication_of(
    config: HttpConfig,
    *,
    check_password: PasswordCheck | None = None,
    passes_on: bool = False,
) -> Authentication:
    """By the keys. `check_password` stands in for a users file; `passes_on`: passwords and tokens
    are checked by the broker when they are used. Raises ConfigError."""
    values: Mapping[str, object] = config.settings
    methods = config.settings["authentication.method"]
    users_file = config.settings["authentication.users.file"]
    check: Callable[..., frozenset[str] | Awaitable[frozenset[str] | None] | None] | None
    check = UsersFile(users_file) if users_file else check_password
    if "BASIC" in methods and check is None:
        if not passes_on:
            raise ConfigError(
                "authentication.method=BASIC needs authentication.users.file: lines of "
                "user: password,role",
                key="authentication.users.file",
            )
        check = _accept_any
    try:
        mapper = PrincipalMapper(str(values["ssl.principal.mapping.rules"]))
    except InvalidRule as error:
        raise ConfigError.invalid(
            "ssl.principal.mapping.rules", values["ssl.principal.mapping.rules"], str(error)
        ) from None
    return Authentication(
        methods=methods,
        realm=config.settings["authentication.realm"],
        roles=config.settings["authentication.roles"] or ("*",),
        check_password=check,
        tokens=_tokens(config, passes_on=passes_on) if "BEARER" in methods else None,
        mapper=mapper,
    )


def _accept_any(user: str, password: str) -> frozenset[str]:
    return frozenset()


def _tokens(config: HttpConfig, *, passes_on: bool) -> JwtValidator | None:
    url = config.settings["oauthbearer.jwks.endpoint.url"]
    if not url:
        if passes_on:
            return None
        raise ConfigError(
            "authentication.method=BEARER needs oauthbearer.jwks.endpoint.url, the keys that "
            "tokens are signed with",
            key="oauthbearer.jwks.endpoint.url",
        )
    rules = ClaimRules(
        expected_issuer=config.settings["oauthbearer.expected.issuer"],
        expected_audience=config.settings["oauthbearer.expected.audience"],
        sub_claim_name=config.settings["oauthbearer.sub.claim.name"],
    )
    return JwtValidator(url, rules, clock=LoopClock())
