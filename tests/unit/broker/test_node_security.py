"""A node's listeners and its connections to others, from one configuration."""

from __future__ import annotations

import os
import shutil
import ssl
from pathlib import Path

import pytest

from moldau.broker.config import BrokerConfig
from moldau.broker.network.security.listeners import SecuredListener
from moldau.broker.network.transport_layer import Plaintext
from moldau.broker.node_security import NodeSecurity
from moldau.cli.nodes.configuration import standalone_properties
from moldau.clock import LoopClock
from moldau.config.errors import ConfigError
from moldau.peers.security import PLAINTEXT
from support.certificates import Authority, Identity


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    if shutil.which("openssl") is None:
        pytest.skip("the openssl command is not on this machine")
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def own(authority: Authority) -> Identity:
    return authority.issue("own", "/O=Org/CN=broker")


def properties(own: Identity, authority: Authority) -> dict[str, str]:
    return standalone_properties(port=0, data="/data") | {
        "listeners": "CLIENTS://127.0.0.1:0,NODES://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,NODES:SSL,CONTROLLER:SSL",
        "inter.broker.listener.name": "NODES",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(own.pem),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
        "ssl.client.auth": "required",
    }


def node_security(given: dict[str, str]) -> NodeSecurity:
    config = BrokerConfig.from_properties(given)
    return NodeSecurity(config, clock=LoopClock(), random_bytes=os.urandom)


def test_every_listener_has_its_own_security(own: Identity, authority: Authority) -> None:
    security = node_security(properties(own, authority))
    kinds = {name: type(each) for name, each in security.listeners.items()}
    assert kinds == {
        "CLIENTS": Plaintext,
        "NODES": SecuredListener,
        "CONTROLLER": SecuredListener,
    }
    assert security.of_peers("CLIENTS") is PLAINTEXT
    for name in ("NODES", "CONTROLLER"):
        tls = security.of_peers(name).tls
        assert tls is not None
        assert tls().verify_mode is ssl.CERT_REQUIRED


def test_nodes_get_another_context_when_the_settings_change(
    own: Identity, authority: Authority
) -> None:
    given = properties(own, authority)
    security = node_security(given)
    tls = security.of_peers("NODES").tls
    assert tls is not None
    before = tls()
    assert tls() is before
    security.update(
        BrokerConfig.from_properties(
            given | {"listener.name.nodes.ssl.endpoint.identification.algorithm": ""}
        )
    )
    assert tls() is not before
    assert not tls().check_hostname


def test_nodes_that_would_not_trust_each_other_do_not_start(
    own: Identity, authority: Authority, tmp_path: Path
) -> None:
    other = Authority(tmp_path, "Other CA")
    config = properties(own, authority) | {"ssl.truststore.location": str(other.certificate)}
    with pytest.raises(ConfigError, match="listener NODES: A client with these settings cannot"):
        node_security(config)


@pytest.mark.parametrize(("general", "own_setting", "used"), [
    ("required", None, "none"), ("none", "required", "required"),
])  # fmt: skip
def test_client_certificates_beside_sasl_are_asked_for_by_the_listener_only(
    general: str, own_setting: str | None, used: str
) -> None:
    from moldau.broker.node_security import _client_auth

    given = standalone_properties(port=0, data="/data") | {
        "listeners": "CLIENTS://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENTS:SASL_SSL,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "CLIENTS",
        "sasl.mechanism.inter.broker.protocol": "GSSAPI",
        "ssl.client.auth": general,
    }
    if own_setting is not None:
        given["listener.name.clients.ssl.client.auth"] = own_setting
    config = BrokerConfig.from_properties(given)
    assert _client_auth(config, config.listeners[0]) == used
