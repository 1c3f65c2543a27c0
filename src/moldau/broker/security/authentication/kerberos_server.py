"""GSSAPI on the server, with the names of users that principals stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from moldau.security.gssapi import GssapiServer, acceptor_credentials, default_realm
from moldau.security.machine.jaas import JaasEntry
from moldau.security.machine.kerberos import NoMatchingRule, PrincipalRule, short_name
from moldau.security.machine.outcomes import SaslError

__all__ = ["KerberosServer", "kerberos_factory"]


class KerberosServer:
    """Implements `ServerMechanism`."""

    expires_at_ms = None
    token_authenticated = False

    def __init__(self, exchange: GssapiServer, name_of: Callable[[str], str]) -> None:
        self._exchange = exchange
        self._name_of = name_of
        self.authorization_id = ""

    @property
    def complete(self) -> bool:
        return self._exchange.complete

    def evaluate(self, token: bytes) -> bytes:
        answer = self._exchange.evaluate(token)
        if self._exchange.complete:
            try:
                self.authorization_id = self._name_of(self._exchange.authorization_id)
            except (NoMatchingRule, ValueError) as error:
                raise SaslError(f"{error} (sasl.kerberos.principal.to.local.rules)") from None
        return answer


def kerberos_factory(
    entry: JaasEntry, key: str, rules: Sequence[PrincipalRule]
) -> Callable[[], KerberosServer]:
    """Raises ConfigError if there are no credentials."""
    credentials, realm = acceptor_credentials(entry, key), default_realm(entry)
    return lambda: KerberosServer(
        GssapiServer(credentials), lambda principal: short_name(rules, realm, principal)
    )
