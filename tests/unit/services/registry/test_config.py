"""A registry's properties file."""

from __future__ import annotations

import pytest

from moldau.config.errors import ConfigError
from moldau.services.registry.config import RegistryConfig

SERVERS = {"kafkastore.bootstrap.servers": "127.0.0.1:9092"}


def test_the_defaults_are_confluents_but_on_loopback() -> None:
    config = RegistryConfig.of(SERVERS)
    assert [each.url for each in config.http.listeners] == ["http://127.0.0.1:8081"]
    assert (config.topic, config.group_id) == ("_schemas", "schema-registry")
    assert config.defaults.compatibility_level == "BACKWARD"
    assert config.replication_factor == 3
    assert config.advertised(list(config.http.listeners)) == ("http", "127.0.0.1", 8081)


def test_settings_of_clients_and_of_the_topic_are_passed_on() -> None:
    config = RegistryConfig.of(
        {
            **SERVERS,
            "kafkastore.security.protocol": "SASL_SSL",
            "kafkastore.sasl.mechanism": "PLAIN",
            "kafkastore.topic.config.min.insync.replicas": "2",
            "kafkastore.timeout.ms": "700",
        }
    )
    assert config.clients == {
        "bootstrap.servers": "127.0.0.1:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
    }
    assert config.topic_configs == {"min.insync.replicas": "2"}
    assert config.timeout_ms == 700


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        pytest.param({}, "kafkastore.bootstrap.servers is missing", id="no brokers"),
        pytest.param(
            {**SERVERS, "schema.compatibility.level": "loud"}, "backward", id="an unknown level"
        ),
        pytest.param(
            {**SERVERS, "resource.extension.class": "x.Y"}, "plug-ins", id="a Java extension"
        ),
        pytest.param(
            {**SERVERS, "kafkastore.connection.url": "zk:2181"}, "ZooKeeper", id="ZooKeeper"
        ),
        pytest.param({**SERVERS, "listeners": "ftp://x:1"}, "listeners", id="a wrong listener"),
    ],
)
def test_a_wrong_file_is_refused(properties: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        RegistryConfig.of(properties)


def test_the_file_that_confluent_ships_is_accepted(caplog: pytest.LogCaptureFixture) -> None:
    config = RegistryConfig.of(
        {
            "listeners": "http://0.0.0.0:8081",
            "kafkastore.bootstrap.servers": "PLAINTEXT://localhost:9092",
            "kafkastore.topic": "_schemas",
            "debug": "false",
            "metadata.encoder.secret": "REPLACE_ME_WITH_HIGH_ENTROPY_STRING",
            "resource.extension.class": "io.confluent.dekregistry.DekRegistryResourceExtension",
            "avro.compatibility.level": "full",
        }
    )
    assert config.defaults.compatibility_level == "FULL"
    assert caplog.messages == [
        "the key metadata.encoder.secret has no effect: sensitive metadata is stored as it is, "
        "not encrypted"
    ]
