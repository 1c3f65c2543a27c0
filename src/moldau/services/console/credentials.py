"""Settings with which a user's own clients log in to the broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from moldau.http.machine.errors import HttpError
from moldau.http.request import Principal

__all__ = ["credentials_of"]

_KAFKA: Final = "org.apache.kafka.common.security"
_MODULES: Final = {
    "PLAIN": f"{_KAFKA}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_KAFKA}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_KAFKA}.scram.ScramLoginModule",
}


class _Token:
    """Hands out the access token of a session; the broker checks it."""

    def __init__(self, token: str) -> None:
        self._token = token

    def token(self) -> str:
        return self._token


def credentials_of(settings: Mapping[str, str], principal: Principal) -> dict[str, Any]:
    """What replaces the console's own credentials in a client's settings."""
    if principal.method == "bearer":
        return {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f"{_KAFKA}.oauthbearer.OAuthBearerLoginModule required;",
            "sasl.login.callback.handler.class": _Token(str(principal.secret)),
        }
    mechanism = settings.get("sasl.mechanism", "SCRAM-SHA-512").upper()
    module = _MODULES.get(mechanism)
    if module is None:
        raise HttpError(
            500,
            f"A user name and password cannot be used with sasl.mechanism={mechanism}. Configure "
            f"one of {', '.join(_MODULES)}.",
        )
    return {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"{module} required username={_quoted(principal.name)} "
        f"password={_quoted(str(principal.secret))};",
    }


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
