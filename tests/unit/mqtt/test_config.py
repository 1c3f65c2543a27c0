"""The settings of the proxy."""

from __future__ import annotations

import pytest

from moldau.config.errors import ConfigError
from moldau.services.mqtt.config import MqttConfig, listener_url


def config(**more: str) -> MqttConfig:
    texts = {name.replace("_", "."): value for name, value in more.items()}
    return MqttConfig.of({"bootstrap.servers": "localhost:9092", **texts})


def test_defaults() -> None:
    found = config()
    assert [listener_url(each) for each in found.listeners] == ["mqtt://127.0.0.1:1883"]
    assert not found.authenticates
    assert found.client_settings("producer")["acks"] == "all"


def test_listeners() -> None:
    found = config(listeners="mqtt://0.0.0.0:1883,mqtts://:8883")
    assert [listener_url(each) for each in found.listeners] == [
        "mqtt://0.0.0.0:1883", "mqtts://127.0.0.1:8883",
    ]  # fmt: skip
    with pytest.raises(ConfigError, match="mqtt://host:port"):
        config(listeners="http://localhost:1")
    found = config(listeners="ws://:8083,wss://0.0.0.0:8084")
    assert [listener_url(each) for each in found.listeners] == [
        "ws://127.0.0.1:8083/mqtt", "wss://0.0.0.0:8084/mqtt",
    ]  # fmt: skip


def test_websockets_need_wsproto(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moldau.services.mqtt.config.find_spec", lambda name: None)
    config(listeners="mqtt://:1883")
    with pytest.raises(ConfigError, match=r"need wsproto: .*moldau\[mqtt\]"):
        config(listeners="mqtt://:1883,ws://:8083")


def test_brokers_with_passwords_are_asked() -> None:
    secured = {"client_security_protocol": "SASL_SSL", "client_sasl_mechanism": "SCRAM-SHA-512"}
    assert config(**secured).authenticates
    assert not config(authentication_method="NONE", **secured).authenticates
    with pytest.raises(ConfigError, match="checks passwords"):
        config(authentication_method="BROKER")


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"packet.size.maxx": "1"}, "Did you mean|did you mean|packet.size.max"),
        ({"bootstrap.servers": ""}, "bootstrap.servers is missing"),
        ({"fallback.topic": "a b"}, "name of a Kafka topic"),
    ],
)
def test_wrong_settings_are_refused_in_words(settings: dict[str, str], match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        MqttConfig.of({"bootstrap.servers": "localhost:9092", **settings})
