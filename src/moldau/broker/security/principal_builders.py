"""principal.builder.class: who a client is, decided by a Python class of the user's own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from moldau.broker.network.context import ConnectionInfo
from moldau.broker.security.plugins import load_class

__all__ = ["AuthenticationContext", "PrincipalBuilder", "load_principal_builder"]

BUILDER_CLASS: Final = "principal.builder.class"
#: Kafka's own: the distinguished name of the certificate by ssl.principal.mapping.rules, the
#: authorization id of a SASL login, or ANONYMOUS.
DEFAULT: Final = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticationContext:
    """What is known about a connection once the client is authenticated."""

    security_protocol: str
    listener_name: str
    client_host: str
    client_port: int
    #: The distinguished name of the client's certificate; None without one.
    ssl_peer_name: str | None
    #: None without SASL.
    sasl_mechanism: str | None
    #: Who logged in by SASL; None without it.
    authorization_id: str | None


class PrincipalBuilder(Protocol):
    """May also have `configure(settings)`, called once with the listener's settings."""

    def build(self, context: AuthenticationContext) -> str:
        """The principal, spelled type:name, such as User:alice. An exception refuses the client."""
        ...


class InvalidPrincipal(ValueError):
    """A principal builder returned something else than type:name."""


#: Gets the connection, the SASL mechanism and the authorization id, both None without SASL.
PrincipalOf = Callable[[ConnectionInfo, str | None, str | None], str]


def load_principal_builder(settings: Mapping[str, Any]) -> PrincipalOf | None:
    """For a listener with these settings, None if it has Kafka's default; raises ConfigError."""
    name = settings[BUILDER_CLASS]
    if name == DEFAULT:
        return None
    builder: PrincipalBuilder = load_class(BUILDER_CLASS, name, methods=("build",))()
    configure = getattr(builder, "configure", None)
    if callable(configure):
        configure(settings)

    def principal_of(
        connection: ConnectionInfo, mechanism: str | None, authorization_id: str | None
    ) -> str:
        principal = builder.build(
            AuthenticationContext(
                security_protocol=connection.security_protocol,
                listener_name=connection.listener_name,
                client_host=connection.client_host,
                client_port=connection.client_port,
                ssl_peer_name=connection.ssl_peer_name,
                sasl_mechanism=mechanism,
                authorization_id=authorization_id,
            )
        )
        kind, _, own_name = principal.partition(":") if isinstance(principal, str) else ("",) * 3
        if not kind or not own_name:
            raise InvalidPrincipal(
                f"{name} returned {principal!r} for the client {connection.peer}: a principal is "
                "spelled type:name, such as User:alice"
            )
        return principal

    return principal_of
