"""Signatures of JWTs, checked against a JSON Web Key Set from a file or URL.

A thin wrapper of PyJWT. Decided here: which algorithms a key may be used with (signatures of
public keys only, never `none` or a shared secret), and when the key set is loaded again: after its
refresh time, and for a key that is not in it, with growing pauses so that made-up key ids do not
become requests to the issuer.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any, Final

from moldau.clock import Clock
from moldau.config.errors import ConfigError
from moldau.installation import pip_install
from moldau.security.http import FetchFailed, as_path, fetch_json, read_text
from moldau.security.machine.oauth import ClaimRules, InvalidToken, OAuthToken, check_claims

__all__ = ["JwtValidator", "claims_unverified"]

_ALGORITHMS: Final = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}

logger = logging.getLogger(__name__)


def _pyjwt() -> Any:
    try:
        import jwt
    except ImportError:
        raise ConfigError(
            f"OAUTHBEARER needs the package PyJWT: {pip_install('security')}"
        ) from None
    return jwt


def claims_unverified(token: str) -> dict[str, Any]:
    """The claims of a token of one's own; raises InvalidToken."""
    jwt = _pyjwt()
    try:
        claims: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    except jwt.PyJWTError as error:
        raise InvalidToken(f"it is no JWT: {type(error).__name__}") from None
    return claims


class JwtValidator:
    """See the module. Implements the validation of tokens on a broker."""

    def __init__(
        self,
        jwks_url: str,
        rules: ClaimRules,
        *,
        clock: Clock,
        refresh_ms: int = 3_600_000,
        retry_backoff_ms: int = 100,
        retry_backoff_max_ms: int = 10_000,
    ) -> None:
        """Raises ConfigError if the file cannot be read; a URL is asked when it is needed."""
        _pyjwt()
        self._url = jwks_url
        self._path = as_path(jwks_url)
        self._rules = rules
        self._clock = clock
        self._refresh_ms = refresh_ms
        self._backoff_ms = retry_backoff_ms
        self._backoff_max_ms = retry_backoff_max_ms
        self._keys: dict[str | None, Any] = {}
        self._loaded_ms: int | None = None
        self._pause_ms = retry_backoff_ms
        self._loading = asyncio.Lock()
        if self._path is not None:
            try:
                self._take(json.loads(read_text(self._path)))
            except (FetchFailed, ValueError) as error:
                raise ConfigError(f"the key set cannot be used: {error}") from None

    async def validate(self, token: str) -> OAuthToken:
        """What the token says; raises InvalidToken."""
        jwt = _pyjwt()
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError as error:
            raise InvalidToken(f"it is no JWT: {type(error).__name__}") from None
        key = await self._key(header.get("kid"))
        algorithms = _ALGORITHMS.get(key.key_type, ())
        try:
            claims = jwt.decode(
                token,
                key.key,
                algorithms=list(algorithms),
                options={
                    "verify_exp": False, "verify_nbf": False, "verify_iat": False,
                    "verify_aud": False, "verify_iss": False, "verify_sub": False,
                    "verify_jti": False,
                },
            )  # fmt: skip
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise InvalidToken(f"its signature is not valid: {type(error).__name__}") from None
        return check_claims(claims, self._rules, self._clock.now_ms())

    async def _key(self, key_id: Any) -> Any:
        now_ms = self._clock.elapsed_ms()
        if self._loaded_ms is None or now_ms - self._loaded_ms >= self._refresh_ms:
            await self._load()
        key = self._find(key_id)
        if key is None and self._clock.elapsed_ms() - (self._loaded_ms or 0) >= self._pause_ms:
            self._pause_ms = min(self._pause_ms * 2, self._backoff_max_ms)
            await self._load()
            key = self._find(key_id)
        if key is None:
            raise InvalidToken("it is signed with a key that is not in the key set")
        return key

    def _find(self, key_id: Any) -> Any:
        if key_id is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(key_id) if isinstance(key_id, str) else None

    async def _load(self) -> None:
        """Keep the keys that are known if others cannot be had."""
        before_ms = self._loaded_ms
        async with self._loading:
            if self._loaded_ms != before_ms:
                return
            try:
                if self._path is not None:
                    text = await asyncio.to_thread(read_text, self._path)
                    self._take(json.loads(text))
                else:
                    self._take(await fetch_json(self._url))
            except (FetchFailed, ValueError) as error:
                self._loaded_ms = self._clock.elapsed_ms()
                logger.warning("the key set for OAUTHBEARER cannot be loaded: %s", error)

    def _take(self, document: Any) -> None:
        jwt = _pyjwt()
        try:
            keys = jwt.PyJWKSet.from_dict(document).keys
        except (jwt.PyJWTError, AttributeError, KeyError, TypeError) as error:
            raise FetchFailed(f"{self._url} has no usable key set: {error}") from None
        found = {each.key_id: each for each in keys if each.key_type in _ALGORITHMS}
        if found.keys() != self._keys.keys():
            self._pause_ms = self._backoff_ms
        self._keys = found
        self._loaded_ms = self._clock.elapsed_ms()
