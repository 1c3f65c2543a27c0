"""principal.builder.class: a class of the user's own names the principal."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Any

import pytest

from moldau.broker.config import BrokerConfig
from moldau.broker.network.context import ConnectionInfo
from moldau.broker.network.transport_layer import Plaintext
from moldau.broker.node_security import NodeSecurity
from moldau.broker.security.principal_builders import (
    DEFAULT,
    AuthenticationContext,
    InvalidPrincipal,
    load_principal_builder,
)
from moldau.cli.nodes.configuration import standalone_properties
from moldau.clock import LoopClock
from moldau.config.errors import ConfigError

KEY = "principal.builder.class"


class ByAddress:
    """Keeps what it is asked."""

    def configure(self, settings: Mapping[str, Any]) -> None:
        self.kind = settings.get("kind", "Host")

    def build(self, context: AuthenticationContext) -> str:
        if context.client_host == "10.0.0.9":
            raise LookupError("an address that nobody knows")
        parts = (context.client_host, context.ssl_peer_name, context.sasl_mechanism)
        return f"{self.kind}:{'/'.join(each or '-' for each in parts)}/{context.authorization_id}"


class Nameless:
    def build(self, context: AuthenticationContext) -> str:
        return "alice"


class NoBuilder:
    """Has no method `build`."""


def named(kind: type) -> str:
    return f"{kind.__module__}.{kind.__name__}"


def test_the_class_gets_what_is_known_of_the_connection() -> None:
    principal_of = load_principal_builder({KEY: named(ByAddress), "kind": "Partner"})
    assert principal_of is not None
    connection = ConnectionInfo(client_host="10.0.0.1")
    connection.ssl_peer_name = "CN=Duke"
    assert principal_of(connection, "PLAIN", "alice") == "Partner:10.0.0.1/CN=Duke/PLAIN/alice"


def test_kafkas_name_selects_the_default() -> None:
    assert load_principal_builder({KEY: DEFAULT}) is None


def test_a_principal_has_a_type_and_a_name() -> None:
    principal_of = load_principal_builder({KEY: named(Nameless)})
    assert principal_of is not None
    with pytest.raises(InvalidPrincipal, match=r"returned 'alice'.*type:name"):
        principal_of(ConnectionInfo(), None, None)


@pytest.mark.parametrize("name", ["foo", "foo.Bar", "com.example.Principals", named(NoBuilder)])
def test_a_class_that_cannot_be_used_stops_the_start(name: str) -> None:
    with pytest.raises(ConfigError, match=KEY):
        node_security({KEY: name})


def node_security(changes: dict[str, str]) -> NodeSecurity:
    given = standalone_properties(port=0, data="/data") | changes
    config = BrokerConfig.from_properties(given)
    return NodeSecurity(config, clock=LoopClock(), random_bytes=os.urandom)


def opened(security: NodeSecurity, host: str) -> str:
    listener = security.listeners["PLAINTEXT"]
    assert isinstance(listener, Plaintext)
    connection = ConnectionInfo(client_host=host)
    with socket.socket() as sock:
        listener.open(sock, connection, None)  # type: ignore[arg-type]
    return connection.principal


def test_clients_without_a_login_have_the_principal_that_the_class_says(
    caplog: pytest.LogCaptureFixture,
) -> None:
    security = node_security({KEY: named(ByAddress)})
    assert opened(security, "10.0.0.1") == "Host:10.0.0.1/-/-/None"
    with pytest.raises(ConnectionAbortedError):
        opened(security, "10.0.0.9")
    assert "principal.builder.class failed" in caplog.text


def test_a_listener_may_have_its_own_class_and_change_it() -> None:
    own = f"listener.name.plaintext.{KEY}"
    security = node_security({})
    assert opened(security, "10.0.0.1") == "User:ANONYMOUS"
    given = standalone_properties(port=0, data="/data")
    security.update(BrokerConfig.from_properties(given | {own: named(ByAddress)}))
    assert opened(security, "10.0.0.1").startswith("Host:")
    broken = BrokerConfig.from_properties(given | {own: "foo.Bar"})
    with pytest.raises(ConfigError, match="foo"):
        security.check(broken)
    security.update(broken)
    assert opened(security, "10.0.0.1").startswith("Host:")
