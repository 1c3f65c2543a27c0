"""Settings of single listeners: `listener.name.<name>.<key>`."""

from __future__ import annotations

import pytest

from moldau.broker.config import BrokerConfig
from moldau.broker.config.listener_settings import listener_settings
from moldau.cli.nodes.configuration import standalone_properties
from moldau.config import ConfigError
from moldau.config.values import Password


def config(**changes: str) -> BrokerConfig:
    given = {name.replace("__", "-").replace("_", "."): text for name, text in changes.items()}
    return BrokerConfig.from_properties(standalone_properties(port=0, data="/data") | given)


def test_a_listener_has_the_general_settings_and_its_own_above_them() -> None:
    both = config(
        ssl_keystore_type="PEM",
        ssl_keystore_location="/general.pem",
        listener_name_external_ssl_keystore_location="/external.pem",
        listener_name_external_ssl_key_password="hush-hush",
        listener_name_internal_ssl_keystore_location="/internal.pem",
    )
    external = listener_settings(both, "EXTERNAL")
    assert external["ssl.keystore.location"] == "/external.pem"
    assert external["ssl.keystore.type"] == "PEM"
    assert external["ssl.key.password"] == Password("hush-hush")
    assert external["ssl.client.auth"] == "none"
    assert listener_settings(both, "PLAINTEXT")["ssl.keystore.location"] == "/general.pem"
    assert "hush-hush" not in str(external)


def test_values_are_parsed_by_the_key_behind_the_prefix() -> None:
    own = config(listener_name_external_ssl_enabled_protocols="TLSv1.3, TLSv1.2")
    assert listener_settings(own, "EXTERNAL")["ssl.enabled.protocols"] == ("TLSv1.3", "TLSv1.2")


def test_keys_of_a_mechanism_keep_its_name() -> None:
    own = config(
        listener_name_external_scram__sha__256_sasl_jaas_config="Login required;",
        listener_name_external_plain_connections_max_reauth_ms="1000",
        listener_name_external_com_example_option="text",
    )
    settings = listener_settings(own, "external")
    assert settings["scram-sha-256.sasl.jaas.config"] == Password("Login required;")
    assert settings["plain.connections.max.reauth.ms"] == 1000
    assert settings["com.example.option"] == "text"


def test_an_invalid_value_is_reported_with_the_name_that_was_given() -> None:
    wrong = config(listener_name_external_ssl_client_auth="sometimes")
    name = "listener.name.external.ssl.client.auth"
    with pytest.raises(ConfigError, match=name) as raised:
        listener_settings(wrong, "EXTERNAL")
    assert raised.value.key == name
