"""What a node says about listeners that nothing secures."""

from __future__ import annotations

import pytest

from moldau.broker.config import BrokerConfig, Listener
from moldau.broker.machine.exposure import exposure_of

BROKER = {
    "process.roles": "broker",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
    "log.dirs": "/data",
}


@pytest.mark.parametrize(
    ("listeners", "words"),
    [
        ([Listener("PLAINTEXT", "127.0.0.1", 9092, "PLAINTEXT")], "only this machine can connect"),
        ([Listener("PLAINTEXT", "", 9092, "PLAINTEXT")], "open to the network: PLAINTEXT://:9092"),
        ([Listener("PLAINTEXT", "10.0.0.1", 9092, "PLAINTEXT")], "open to the network"),
        ([Listener("SSL", "", 9093, "SSL")], None),
        (
            [
                Listener("SSL", "", 9093, "SSL"),
                Listener("PLAINTEXT", "localhost", 9092, "PLAINTEXT"),
            ],
            None,
        ),
    ],
)
def test_the_line_says_who_can_connect(listeners: list[Listener], words: str | None) -> None:
    line = exposure_of(listeners)
    assert line is None if words is None else words in str(line)


def test_without_listeners_only_this_machine_can_connect() -> None:
    default = BrokerConfig.from_properties(BROKER)
    assert [str(each) for each in default.listeners] == ["PLAINTEXT://127.0.0.1:9092"]
    # What Kafka's tools show stays Kafka's default.
    assert default["listeners"] == ("PLAINTEXT://:9092",)
    asked_for = BrokerConfig.from_properties(BROKER | {"listeners": "PLAINTEXT://:9092"})
    assert asked_for.listeners[0].is_wildcard
