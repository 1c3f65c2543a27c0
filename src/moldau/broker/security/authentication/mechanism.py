"""The interfaces between a listener's gate, its SASL mechanisms and what they check against."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

from moldau.security.machine.scram import ScramLogin, ScramMechanism

__all__ = ["CredentialSource", "MechanismFactory", "ServerMechanism"]


class ServerMechanism(Protocol):
    """A server's side of one exchange."""

    @property
    def complete(self) -> bool: ...

    @property
    def authorization_id(self) -> str:
        """The name of the principal, once the exchange is complete."""
        ...

    @property
    def expires_at_ms(self) -> int | None:
        """The wall time at which the credentials end, if they do."""
        ...

    @property
    def token_authenticated(self) -> bool:
        """Whether the client logged in with a delegation token."""
        ...

    def evaluate(self, token: bytes) -> bytes | Awaitable[bytes]:
        """The answer to a message; raises SaslError or AuthenticationFailed."""
        ...


#: Makes the mechanism of one exchange.
MechanismFactory: TypeAlias = Callable[[], ServerMechanism]


class CredentialSource(Protocol):
    """Credentials in the metadata log."""

    def find(self, mechanism: ScramMechanism, name: str, is_token: bool) -> ScramLogin:
        """What is known of a user, or of a delegation token by its id; made up if it is unknown."""
        ...
