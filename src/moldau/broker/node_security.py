"""How a node's listeners are secured, and its connections to other nodes.

Each listener has settings of its own. A node connects to a listener of another node as its own
listener of that name is set up: brokers by inter.broker.listener.name, controllers by the first of
controller.listener.names.
"""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from moldau.broker.config import BrokerConfig, Listener
from moldau.broker.config.listener_settings import listener_prefix, listener_settings
from moldau.broker.network.security.listeners import (
    Authenticator,
    SecuredListener,
    listener_security,
)
from moldau.broker.network.transport_layer import (
    Identify,
    ListenerSecurity,
    LoginObserver,
    Plaintext,
)
from moldau.broker.security.principal_builders import load_principal_builder
from moldau.clock import Clock
from moldau.config.errors import ConfigError
from moldau.peers.node_connection import NodeConnection
from moldau.peers.security import PLAINTEXT, ConnectionSecurity
from moldau.security.keystores import store_files
from moldau.security.tls import check_own_trust, client_context

if TYPE_CHECKING:
    from moldau.broker.security.authentication.authentication import Authentication

__all__ = ["NodeSecurity"]

logger = logging.getLogger(__name__)


class NodeSecurity:
    """See the module."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock,
        random_bytes: Callable[[int], bytes],
    ) -> None:
        """Raises ConfigError."""
        self._config = config
        #: None if no listener has SASL.
        self.authentication = _authentication(config, clock, random_bytes)
        self.listeners: dict[str, ListenerSecurity] = {}
        self._peers: dict[str, ConnectionSecurity] = {}
        for listener in config.listeners:
            self.listeners[listener.name] = listener_security(
                listener.name,
                listener.security_protocol,
                listener_settings(config, listener.name),
                client_auth=_client_auth(config, listener),
                authenticator=self._authenticator(listener),
            )
            self._set_principals(config, listener)
        # Of all names that the node connects to, so that what is wrong shows at the start.
        for name in self._between_nodes:
            self.of_peers(name)
        for listener in config.listeners:
            self._check_own_trust(config, listener)

    def observe_logins(self, observer: LoginObserver) -> None:
        """Have `observer` called after each login and each failure."""
        if self.authentication is not None:
            self.authentication.observe(observer)
        for security in self.listeners.values():
            if isinstance(security, SecuredListener):
                security.on_login = observer

    @property
    def _between_nodes(self) -> tuple[str, ...]:
        config = self._config
        return (config.inter_broker_listener_name, *config.controller_listener_names)

    def _check_own_trust(self, config: BrokerConfig, listener: Listener) -> None:
        """Kafka refuses to start with a listener for nodes that they could not use."""
        if listener.name in self._between_nodes and listener.security_protocol.endswith("SSL"):
            try:
                check_own_trust(
                    listener_settings(config, listener.name),
                    client_auth=_client_auth(config, listener),
                )
            except ConfigError as error:
                raise ConfigError(f"listener {listener.name}: {error}", key=error.key) from None

    def _authenticator(self, listener: Listener) -> Authenticator | None:
        if self.authentication is None or not _uses_sasl(listener.security_protocol):
            return None
        return self.authentication.authenticator(listener)

    def of_peers(self, listener_name: str) -> ConnectionSecurity:
        """For connections to other nodes' listeners of this name."""
        known = self._peers.get(listener_name)
        if known is None:
            known = self._peers[listener_name] = self._connection_security(listener_name)
        return known

    def _connection_security(self, listener_name: str) -> ConnectionSecurity:
        protocol = self._config.security_protocols.get(listener_name, "PLAINTEXT")
        if protocol == "PLAINTEXT":
            return PLAINTEXT
        context = None
        if protocol in ("SSL", "SASL_SSL"):
            context = ReloadedContext(lambda: listener_settings(self._config, listener_name))
        login = None
        if _uses_sasl(protocol):
            login = _peer_login(self._config, listener_name)
        return ConnectionSecurity(tls=context, authenticate=login)

    def check(self, config: BrokerConfig) -> None:
        """ConfigError if a listener would keep what it has."""
        for listener in config.listeners:
            security = self.listeners.get(listener.name)
            _identify(config, listener)
            if isinstance(security, SecuredListener):
                settings = listener_settings(config, listener.name)
                security.check(settings, client_auth=_client_auth(config, listener))
                self._check_own_trust(config, listener)

    def _set_principals(self, config: BrokerConfig, listener: Listener) -> None:
        """Of clients that do not log in by SASL: the login has its own."""
        security = self.listeners.get(listener.name)
        if isinstance(security, Plaintext | SecuredListener):
            security.identify = _identify(config, listener)

    def update(self, config: BrokerConfig) -> None:
        """Take over what changed in a running node."""
        self._config = config
        if self.authentication is not None:
            self.authentication.update(config)
        for listener in config.listeners:
            security = self.listeners.get(listener.name)
            try:
                self._set_principals(config, listener)
                settings = listener_settings(config, listener.name)
            except ConfigError as error:
                logger.error("listener %s keeps its settings: %s", listener.name, error)
                continue
            if isinstance(security, SecuredListener):
                security.update(settings, client_auth=_client_auth(config, listener))


def _identify(config: BrokerConfig, listener: Listener) -> Identify | None:
    """principal.builder.class; raises ConfigError."""
    built = load_principal_builder(listener_settings(config, listener.name))
    return None if built is None else lambda connection: built(connection, None, None)


def _uses_sasl(protocol: str) -> bool:
    return protocol.startswith("SASL_")


# Imported where SASL is used: most starts do not need it, and all of them would take longer.


def _authentication(
    config: BrokerConfig, clock: Clock, random_bytes: Callable[[int], bytes]
) -> Authentication | None:
    if not any(_uses_sasl(each.security_protocol) for each in config.listeners):
        return None
    from moldau.broker.security.authentication.authentication import Authentication

    return Authentication(config, clock=clock, random_bytes=random_bytes)


def _peer_login(
    config: BrokerConfig, listener_name: str
) -> Callable[[NodeConnection, str], Awaitable[int]]:
    from moldau.broker.security.authentication.peer_logins import peer_login
    from moldau.peers.sasl_login import sasl_login

    return sasl_login(peer_login(config, listener_name))


class ReloadedContext:
    """A client's context, made again when its settings or the files of its stores have changed."""

    def __init__(self, settings: Callable[[], Mapping[str, Any]]) -> None:
        self._settings = settings
        self._used = _client_facts(settings())
        self._context = client_context(settings())

    def __call__(self) -> ssl.SSLContext:
        settings = self._settings()
        facts = _client_facts(settings)
        if facts != self._used:
            self._used = facts
            try:
                self._context = client_context(settings)
            except ConfigError as error:
                logger.error("connections to other nodes keep their certificates: %s", error)
        return self._context


def _client_facts(settings: Mapping[str, Any]) -> tuple[Any, ...]:
    files = tuple(_modified_ns(path) for path in store_files(settings))
    return tuple(value for name, value in settings.items() if name.startswith("ssl.")), files


def _modified_ns(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return -1


def _client_auth(config: BrokerConfig, listener: Listener) -> str:
    """ssl.client.auth; for SASL_SSL only if it is set for the very listener (KIP-684)."""
    key = "ssl.client.auth"
    own = f"{listener_prefix(listener.name)}{key}"
    if listener.security_protocol == "SASL_SSL" and own not in config.originals:
        return "none"
    return str(listener_settings(config, listener.name)[key])
