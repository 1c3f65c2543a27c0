"""The security of one listener: TLS, SASL, both or neither, by its security protocol and settings.

Certificates, keys and trust may change while the broker runs: new connections use the new ones,
existing connections stay as they are. What cannot be loaded leaves the listener as it was.
"""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn, TypeAlias

from moldau.broker.network.context import ANONYMOUS, ConnectionInfo
from moldau.broker.network.interface import FrameReceiver
from moldau.broker.network.security.tls_layer import (
    HANDSHAKE_TIMEOUT_S,
    HandshakeTurns,
    TlsLayer,
)
from moldau.broker.network.transport_layer import (
    Identify,
    ListenerSecurity,
    LoginObserver,
    Plaintext,
    TransportLayer,
    identified,
)
from moldau.config.errors import ConfigError
from moldau.security.machine.distinguished_names import InvalidCertificate, subject_name
from moldau.security.machine.principals import InvalidRule, NoMatchingRule, PrincipalMapper
from moldau.security.reasons import explain
from moldau.security.server_contexts import ServerContexts

__all__ = ["Authenticator", "SecuredListener", "listener_security"]

RECEIVE_BUFFER_BYTES: Final = 256 * 1024

#: Gets the receiver of a connection's frames, and gives the one that they go to until it knows
#: who sends them.
Authenticator: TypeAlias = Callable[[ConnectionInfo, FrameReceiver], FrameReceiver]

logger = logging.getLogger(__name__)


def listener_security(
    name: str,
    security_protocol: str,
    settings: Mapping[str, Any],
    *,
    client_auth: str,
    authenticator: Authenticator | None = None,
) -> ListenerSecurity:
    """For a listener with these settings (config/listener_settings.py). Raises ConfigError."""
    if security_protocol.startswith("SASL_") and authenticator is None:
        raise ConfigError(
            f"listener {name}: {security_protocol} needs an authenticator",
            key="listeners",
        )
    if security_protocol in ("SSL", "SASL_SSL"):
        return SecuredListener(name, settings, client_auth=client_auth, authenticator=authenticator)
    if authenticator is not None:
        return Authenticated(authenticator)
    return Plaintext()


class Authenticated:
    """SASL without encryption."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    def open(
        self, sock: socket.socket, connection: ConnectionInfo, receiver: FrameReceiver
    ) -> tuple[TransportLayer, FrameReceiver]:
        return sock, self._authenticator(connection, receiver)


class SecuredListener:
    """A listener with TLS. The principal is that of the client's certificate, or that which
    `identify` or the authenticator finds."""

    def __init__(
        self,
        name: str,
        settings: Mapping[str, Any],
        *,
        client_auth: str,
        authenticator: Authenticator | None,
    ) -> None:
        self._name = name
        self._contexts = ServerContexts(name, settings, client_auth=client_auth)
        self._authenticator = authenticator
        self._receive_buffer = memoryview(bytearray(RECEIVE_BUFFER_BYTES))
        self._turns = HandshakeTurns()
        self._mapper = _mapper(settings)
        self.identify: Identify | None = None
        #: Called after each handshake with a client's certificate, and with why one failed.
        self.on_login: LoginObserver | None = None

    def open(
        self, sock: socket.socket, connection: ConnectionInfo, receiver: FrameReceiver
    ) -> tuple[TransportLayer, FrameReceiver]:
        def established(session: ssl.SSLObject) -> None:
            certificate = session.getpeercert(binary_form=True)
            try:
                if certificate is not None:
                    connection.ssl_peer_name = subject_name(certificate)
                if self._authenticator is None:
                    connection.principal = self._principal(connection)
                    if connection.principal != ANONYMOUS:
                        self._report(connection, None)
            except (NoMatchingRule, InvalidCertificate) as error:
                self._refuse(connection, error)

        def failed(error: ssl.SSLError | None) -> None:
            self._log_failure(connection, error)

        layer = TlsLayer(
            sock,
            self._contexts.current(),
            receive_buffer=self._receive_buffer,
            turns=self._turns,
            on_established=established,
            on_failed=failed,
        )
        if self._authenticator is not None:
            receiver = self._authenticator(connection, receiver)
        return layer, receiver

    def check(self, settings: Mapping[str, Any], *, client_auth: str) -> None:
        """ConfigError if these settings cannot be used."""
        self._contexts.check(settings, client_auth=client_auth)

    def update(self, settings: Mapping[str, Any], *, client_auth: str) -> None:
        """Use other settings for new connections."""
        self._contexts.update(settings, client_auth=client_auth)

    def _principal(self, connection: ConnectionInfo) -> str:
        if self.identify is not None:
            return identified(self.identify, connection)
        name = connection.ssl_peer_name
        return ANONYMOUS if name is None else f"User:{self._mapper.name_of(name)}"

    def _refuse(self, connection: ConnectionInfo, error: ValueError) -> NoReturn:
        logger.warning(
            "closing connection from %s on %s: the client's certificate names no user: %s "
            "(ssl.principal.mapping.rules)",
            connection.peer,
            self._name,
            error,
        )
        self._report(connection, f"the client's certificate names no user: {error}")
        raise ConnectionAbortedError("the certificate names no user") from error

    def _log_failure(self, connection: ConnectionInfo, error: ssl.SSLError | None) -> None:
        reason = (
            f"it was not done within {HANDSHAKE_TIMEOUT_S:g} s" if error is None else explain(error)
        )
        logger.info(
            "Failed authentication with %s on %s (SSL handshake failed): %s",
            connection.peer,
            self._name,
            reason,
        )
        self._report(connection, reason)

    def _report(self, connection: ConnectionInfo, problem: str | None) -> None:
        if self.on_login is not None:
            self.on_login(connection, "SSL", problem)


def _mapper(settings: Mapping[str, Any]) -> PrincipalMapper:
    key = "ssl.principal.mapping.rules"
    try:
        return PrincipalMapper(settings[key] or "DEFAULT")
    except InvalidRule as error:
        raise ConfigError.invalid(key, settings[key], str(error)) from None
