"""Assertions: JWTs that a client shows to the token endpoint in place of a secret.

Read from `sasl.oauthbearer.assertion.file`, or made for each request and signed with the client's
private key (KIP-1139, KIP-1258). Files are read each time, so that they can be replaced.
Invariant: keys and assertions are in no error and no log line.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from moldau.config.errors import ConfigError
from moldau.installation import pip_install
from moldau.security.http import FetchFailed, read_text

__all__ = ["Assertion"]

_CLAIMS: Final = {
    "aud": "sasl.oauthbearer.assertion.claim.aud",
    "iss": "sasl.oauthbearer.assertion.claim.iss",
    "sub": "sasl.oauthbearer.assertion.claim.sub",
}
_KEY_FILE: Final = "sasl.oauthbearer.assertion.private.key.file"
_PASSPHRASE: Final = "sasl.oauthbearer.assertion.private.key.passphrase"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assertion:
    """What `sasl.oauthbearer.assertion.*` says."""

    file: str | None = None
    """Holds the assertion itself; the other fields say how to make one."""
    algorithm: str = "RS256"
    key_file: str | None = None
    passphrase: str | None = field(default=None, repr=False)
    claims: Mapping[str, str] = field(default_factory=dict)
    template_file: str | None = None
    expires_s: int = 300
    not_before_s: int = 60
    has_id: bool = False

    @classmethod
    def of(cls, values: Any) -> Assertion:
        """From parsed settings; raises ConfigError where neither a file nor a key is named."""
        claims = {name: values[key] for name, key in _CLAIMS.items()}
        passphrase = values[_PASSPHRASE]
        made = cls(
            file=values["sasl.oauthbearer.assertion.file"],
            algorithm=values["sasl.oauthbearer.assertion.algorithm"],
            key_file=values[_KEY_FILE],
            passphrase=passphrase.value if passphrase else None,
            claims={name: value for name, value in claims.items() if value},
            template_file=values["sasl.oauthbearer.assertion.template.file"],
            expires_s=values["sasl.oauthbearer.assertion.claim.exp.seconds"],
            not_before_s=values["sasl.oauthbearer.assertion.claim.nbf.seconds"],
            has_id=values["sasl.oauthbearer.assertion.claim.jti.include"],
        )
        if not made.file and not made.key_file:
            raise ConfigError(
                f"{_KEY_FILE} is missing: the assertion is signed with it; or name a file that has "
                "the assertion itself, sasl.oauthbearer.assertion.file",
                key=_KEY_FILE,
            )
        return made

    def text(self, now_ms: int) -> str:
        """The assertion; raises FetchFailed."""
        if self.file:
            return read_text(Path(self.file)).strip()
        header, payload = self._template()
        now_s = now_ms // 1000
        payload |= {
            "iat": now_s, "exp": now_s + self.expires_s, "nbf": now_s - self.not_before_s,
        }  # fmt: skip
        if self.has_id:
            payload["jti"] = str(uuid.uuid4())
        return self._signed(header, payload)

    def _template(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Claims of the settings, and over them those of the file."""
        if not self.template_file:
            return {}, dict(self.claims)
        try:
            document = json.loads(read_text(Path(self.template_file)))
        except ValueError:
            document = None
        parts = document if isinstance(document, dict) else {"header": None}
        header, payload = parts.get("header", {}), parts.get("payload", {})
        if not isinstance(header, dict) or not isinstance(payload, dict):
            raise FetchFailed(
                f'{self.template_file} must hold {{"header": {{...}}, "payload": {{...}}}}'
            )
        # A template does not choose the algorithm.
        return {**header, "alg": self.algorithm, "typ": "JWT"}, {**self.claims, **payload}

    def _signed(self, header: dict[str, Any], payload: dict[str, Any]) -> str:
        try:
            import jwt
            from cryptography.hazmat.primitives.serialization import load_pem_private_key
        except ImportError:
            raise ConfigError(
                f"OAUTHBEARER needs the package PyJWT: {pip_install('security')}"
            ) from None
        password = self.passphrase.encode() if self.passphrase else None
        try:
            key: Any = load_pem_private_key(read_text(Path(self.key_file or "")).encode(), password)
            return jwt.encode(payload, key, algorithm=self.algorithm, headers=header)
        except (ValueError, TypeError, jwt.PyJWTError) as error:
            raise FetchFailed(
                f"{self.key_file} cannot sign with {self.algorithm}: {type(error).__name__}. It "
                f"must be a private key in PEM; one that is encrypted needs {_PASSPHRASE}"
            ) from None
