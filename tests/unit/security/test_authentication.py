"""Which mechanisms a listener has by its settings, and classes of the user's own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from moldau.broker.config import BrokerConfig
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.network.context import ConnectionInfo
from moldau.broker.security.authentication.authentication import Authentication
from moldau.broker.security.authentication.credentials import ImageCredentials
from moldau.broker.security.authentication.peer_logins import peer_login
from moldau.clock import LoopClock
from moldau.config import ConfigError
from moldau.security.machine.outcomes import AuthenticationFailed
from moldau.security.machine.scram import ScramMechanism
from moldau.wire.messages import DelegationTokenRecord

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
NODE = {
    "process.roles": "broker",
    "node.id": "1",
    "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "listeners": "CLIENTS://127.0.0.1:0",
    "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "inter.broker.listener.name": "CLIENTS",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.enabled.mechanisms": "PLAIN",
}
LINE = f'{MODULE} required username="node" password="pw" user_alice="secret";'
JAAS = "listener.name.clients.plain.sasl.jaas.config"


OWN_USERS = """
class Users:
    def configure(self, settings):
        self.suffix = str(settings["node.id"])

    async def authenticate(self, username, password):
        return password == username + self.suffix
"""


def authenticator(changes: Mapping[str, str]) -> Any:
    config = BrokerConfig.from_properties(NODE | dict(changes))
    made = Authentication(config, clock=LoopClock(), random_bytes=lambda size: b"x" * size)
    return made.authenticator(config.listeners[0])


def exchange(changes: Mapping[str, str], mechanism: str = "PLAIN") -> Any:
    class Dispatcher:
        def dispatch(self, connection: ConnectionInfo, frame: memoryview) -> bytes:
            return b""

        def is_pipelined(self, frame: memoryview) -> bool:
            return False

    gate = authenticator(changes)(ConnectionInfo(), Dispatcher())
    return gate._login.exchange(mechanism)


@pytest.mark.parametrize(
    "key", [JAAS, "listener.name.clients.sasl.jaas.config", "sasl.jaas.config"]
)
def test_users_of_the_line(key: str) -> None:
    made = exchange({key: LINE})
    assert made.evaluate(b"\0alice\0secret") == b""
    assert made.complete


def test_a_class_of_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_users.py").write_text(OWN_USERS)
    monkeypatch.syspath_prepend(tmp_path)
    key = "listener.name.clients.plain.sasl.server.callback.handler.class"
    made = exchange({key: "own_users.Users"})
    assert asyncio.run(made.evaluate(b"\0bob\0" + b"bob1")) == b""
    with pytest.raises(AuthenticationFailed, match="Invalid username or password"):
        asyncio.run(exchange({key: "own_users.Users"}).evaluate(b"\0bob\0bob"))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({}, rf"{JAAS} is missing.*PlainLoginModule required.*user_alice"),
        ({"sasl.enabled.mechanisms": "PLAIN,NTLM", JAAS: LINE}, "NTLM"),
        ({"sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER", JAAS: LINE}, "without a signature"),
        (
            {"sasl.server.callback.handler.class": "com.example.Plugin", JAAS: LINE},
            "Class com.example.Plugin could not be found",
        ),
        ({"sasl.server.callback.handler.class": "asyncio.Queue"}, "must have a method"),
    ],
)
def test_what_is_missing_is_named(changes: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        authenticator(changes)
    assert "secret" not in str(caught.value)


def test_how_a_node_logs_in_to_others() -> None:
    config = BrokerConfig.from_properties(
        NODE | {JAAS: LINE, "sasl.mechanism.controller.protocol": "PLAIN"}
    )

    async def first() -> Any:
        return (await peer_login(config, "CLIENTS").client("host")).evaluate(b"")

    assert asyncio.run(first()) == b"\0node\0pw"
    with pytest.raises(ConfigError, match=r"listener\.name\.controller\.plain\.sasl\.jaas\.config"):
        peer_login(config, "CONTROLLER")


def test_tokens_log_in_until_they_expire() -> None:
    image = MetadataImage()
    image.tokens["id"] = DelegationTokenRecord(
        owner="User:alice", token_id="id", max_timestamp=100, expiration_timestamp=50
    )
    now_ms = 0
    found = ImageCredentials(lambda: image, b"s", token_key=b"key", now_ms=lambda: now_ms)
    login = found.find(ScramMechanism.SCRAM_SHA_256, "id", True)
    assert (login.authorization_id, login.expires_at_ms, login.is_fake) == ("alice", 50, False)
    assert found.find(ScramMechanism.SCRAM_SHA_256, "id", False).is_fake
    assert found.find(ScramMechanism.SCRAM_SHA_256, "other", True).is_fake
    now_ms = 51
    assert found.find(ScramMechanism.SCRAM_SHA_256, "id", True).is_fake


def test_settings_of_a_running_listener() -> None:
    config = BrokerConfig.from_properties(NODE | {JAAS: LINE})
    outcomes: list[Any] = []
    made = Authentication(config, clock=LoopClock(), random_bytes=lambda size: b"x" * size)
    made.observe(lambda *outcome: outcomes.append(outcome))
    made.authenticator(config.listeners[0])
    login = made.logins["CLIENTS"]
    login.on_login(ConnectionInfo(), "PLAIN", None)
    assert len(outcomes) == 1
    made.update(BrokerConfig.from_properties(NODE | {JAAS: LINE.replace("secret", "other")}))
    assert made.logins["CLIENTS"].exchange("PLAIN").evaluate(b"\0alice\0other") == b""
    made.update(BrokerConfig.from_properties(NODE))
    assert made.logins["CLIENTS"].exchange("PLAIN").evaluate(b"\0alice\0other") == b""
