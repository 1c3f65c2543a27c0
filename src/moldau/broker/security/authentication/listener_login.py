"""How clients log in on one listener: its mechanisms, limits and the lifetime of sessions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from moldau.broker.network.context import ConnectionInfo
from moldau.broker.network.transport_layer import LoginObserver
from moldau.broker.security.authentication.mechanism import MechanismFactory, ServerMechanism
from moldau.broker.security.principal_builders import PrincipalOf
from moldau.clock import Clock

__all__ = ["ListenerLogin", "authorized_user"]


def _ignore(connection: ConnectionInfo, mechanism: str, problem: str | None) -> None:
    """Nobody observes logins."""


def authorized_user(
    connection: ConnectionInfo, mechanism: str | None, authorization_id: str | None
) -> str:
    """Kafka's default."""
    return f"User:{authorization_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerLogin:
    """Read by the gates of a listener's connections."""

    #: In the order of sasl.enabled.mechanisms.
    mechanisms: Mapping[str, MechanismFactory]
    clock: Clock
    #: sasl.server.max.receive.size
    receive_bytes_max: int = 524_288
    #: connection.failed.authentication.delay.ms
    failure_delay_ms: int = 100
    #: connections.max.reauth.ms by mechanism; 0 means that sessions do not end by it.
    reauthentication_ms: Mapping[str, int] = field(default_factory=dict)
    on_login: LoginObserver = _ignore
    #: principal.builder.class
    principal_of: PrincipalOf = authorized_user

    def exchange(self, mechanism: str) -> ServerMechanism:
        return self.mechanisms[mechanism]()

    def session_lifetime_ms(self, mechanism: str, expires_at_ms: int | None) -> int | None:
        """How long a session that begins now lasts, None if it has no end.

        The end of the credentials and connections.max.reauth.ms both limit it (KIP-368).
        """
        limits = []
        if expires_at_ms is not None:
            limits.append(expires_at_ms - self.clock.now_ms())
        if (most_ms := self.reauthentication_ms.get(mechanism, 0)) > 0:
            limits.append(most_ms)
        return max(0, min(limits)) if limits else None
