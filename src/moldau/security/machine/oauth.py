"""SASL/OAUTHBEARER (RFC 7628): its messages, and which claims of a token are accepted.

Decided here: the client's one message with its extensions (KIP-342), the server's error, and the
rules of Kafka's BrokerJwtValidator: expiry and issue time are required, the subject names the user,
issuer and audience must be the expected ones, and a token for an audience is of no use where none
is expected. Signatures are checked elsewhere (`jwt_keys.py`), before this.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from moldau.config.errors import ConfigError
from moldau.security.machine.outcomes import SaslError

__all__ = [
    "INVALID_TOKEN",
    "KVSEP",
    "ClaimRules",
    "InvalidToken",
    "OAuthClient",
    "OAuthMessage",
    "OAuthToken",
    "check_claims",
    "check_extensions",
    "encode_oauth",
    "parse_oauth",
]

KVSEP: Final = b"\x01"
#: What a client gets if its token is refused, whatever is wrong with it.
INVALID_TOKEN: Final = '{"status":"invalid_token"}'

_SASL_NAME: Final = r"(?:[^\x00=,]|=2C|=3D)+"
_KEY: Final = r"[A-Za-z]+"
_VALUE: Final = r"[\x21-\x7E \t\r\n]+"
_MESSAGE: Final = re.compile(
    rf"n,(?:a=(?P<authzid>{_SASL_NAME}))?,\x01(?P<pairs>(?:{_KEY}={_VALUE}\x01)*)\x01"
)
_AUTH: Final = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_.~+/a-zA-Z0-9]+=*)")


class InvalidToken(Exception):
    """A token that is not accepted; the reason is for the own log only."""


class OAuthMessage(NamedTuple):
    token: str
    authorization_id: str
    extensions: Mapping[str, str]

    def __repr__(self) -> str:
        return "OAuthMessage()"


class OAuthToken(NamedTuple):
    """What is known of an accepted token; times are wall times."""

    principal_name: str
    expires_at_ms: int | None
    scopes: frozenset[str] = frozenset()


class ClaimRules(NamedTuple):
    """sasl.oauthbearer.*"""

    expected_issuer: str | None = None
    expected_audience: Sequence[str] = ()
    clock_skew_s: int = 30
    scope_claim_name: str = "scope"
    sub_claim_name: str = "sub"


def parse_oauth(token: bytes) -> OAuthMessage:
    """Raises SaslError."""
    try:
        found = _MESSAGE.fullmatch(token.decode())
    except UnicodeDecodeError:
        found = None
    if found is None:
        raise SaslError("Invalid OAUTHBEARER client first message")
    parts = (each.partition("=") for each in found["pairs"].split("\x01") if each)
    pairs = {name: value for name, _, value in parts}
    auth = pairs.pop("auth", None)
    if auth is None:
        raise SaslError("Invalid OAUTHBEARER client first message: 'auth' not specified")
    credentials = _AUTH.fullmatch(auth)
    if credentials is None:
        raise SaslError("Invalid OAUTHBEARER client first message: invalid 'auth' format")
    if credentials["scheme"].lower() != "bearer":
        raise SaslError("Invalid scheme in OAUTHBEARER client first message")
    authzid = (found["authzid"] or "").replace("=2C", ",").replace("=3D", "=")
    return OAuthMessage(credentials["token"], authzid, pairs)


def encode_oauth(token: str, extensions: Mapping[str, str] | None = None) -> bytes:
    more = "".join(f"{name}={value}\x01" for name, value in (extensions or {}).items())
    return f"n,,\x01auth=Bearer {token}\x01{more}\x01".encode()


def check_extensions(key: str, extensions: Mapping[str, str]) -> None:
    """Raises ConfigError for names and values that no message can hold."""
    for name, value in extensions.items():
        if name == "auth" or not re.fullmatch(_KEY, name):
            raise ConfigError(
                f"{key}: the SASL extension {name!r} must be made of letters and not be auth",
                key=key,
            )
        if not re.fullmatch(_VALUE, value):
            raise ConfigError(
                f"{key}: the value of the SASL extension {name} has characters that are not "
                "allowed: use printable ASCII",
                key=key,
            )


class OAuthClient:
    """A client's side of one exchange."""

    def __init__(self, token: str, extensions: Mapping[str, str] | None = None) -> None:
        self._message = encode_oauth(token, extensions)
        self._sent = False
        self.complete = False

    def evaluate(self, challenge: bytes) -> bytes | None:
        if not self._sent:
            self._sent = True
            return self._message
        if challenge:
            # The server's error: it says so again, in its own response, after this.
            return KVSEP
        self.complete = True
        return None


def check_claims(claims: Mapping[str, Any], rules: ClaimRules, now_ms: int) -> OAuthToken:
    """Raises InvalidToken."""
    skew_ms = rules.clock_skew_s * 1000
    expires_at_ms = _time_ms(claims, "exp")
    if expires_at_ms is None:
        raise InvalidToken("it has no expiration time (exp)")
    if _time_ms(claims, "iat") is None:
        raise InvalidToken("it has no issue time (iat)")
    # Without the skew, as Kafka: a session that has ended already would be of no use.
    if now_ms >= expires_at_ms:
        raise InvalidToken("it has expired")
    not_before_ms = _time_ms(claims, "nbf")
    if not_before_ms is not None and now_ms + skew_ms < not_before_ms:
        raise InvalidToken("it is not valid yet (nbf)")
    if rules.expected_issuer is not None and claims.get("iss") != rules.expected_issuer:
        raise InvalidToken("it is of another issuer (sasl.oauthbearer.expected.issuer)")
    _check_audience(claims.get("aud"), rules.expected_audience)
    subject = claims.get(rules.sub_claim_name)
    if not isinstance(subject, str) or not subject.strip():
        raise InvalidToken(f"it has no subject ({rules.sub_claim_name})")
    return OAuthToken(subject.strip(), expires_at_ms, _scopes(claims, rules.scope_claim_name))


def _time_ms(claims: Mapping[str, Any], name: str) -> int | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**53:
        raise InvalidToken(f"its {name} is no time")
    return int(value * 1000)


def _check_audience(audience: Any, expected: Sequence[str]) -> None:
    found = [audience] if isinstance(audience, str) else audience
    if found is None and not expected:
        return
    if not isinstance(found, list) or not set(map(str, found)) & set(expected):
        raise InvalidToken("it is for another audience (sasl.oauthbearer.expected.audience)")


def _scopes(claims: Mapping[str, Any], name: str) -> frozenset[str]:
    value = claims.get(name)
    if isinstance(value, str):
        value = value.split()
    if value is None:
        return frozenset()
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise InvalidToken(f"its scopes ({name}) are no texts")
    return frozenset(value)
