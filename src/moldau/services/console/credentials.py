"""Settings with which a user's own clients log in to the broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.http.machine.errors import HttpError
from moldau.http.request import Principal
from moldau.security.machine.jaas import PASSWORD_MECHANISMS, jaas_line

__all__ = ["credentials_of"]


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
            "sasl.jaas.config": jaas_line("OAUTHBEARER", {}),
            "sasl.login.callback.handler.class": _Token(str(principal.secret)),
        }
    mechanism = settings.get("sasl.mechanism", "SCRAM-SHA-512").upper()
    if mechanism not in PASSWORD_MECHANISMS:
        raise HttpError(
            500,
            f"A user name and password cannot be used with sasl.mechanism={mechanism}. Configure "
            f"one of {', '.join(PASSWORD_MECHANISMS)}.",
        )
    login = {"username": principal.name, "password": str(principal.secret)}
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": jaas_line(mechanism, login)}
