"""Passwords appear nowhere: not in the text of a configuration, in errors or in descriptions."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.broker.config import BrokerConfig
from moldau.broker.config.broker_keys import BROKER_KEYS
from moldau.broker.metadata.machine.scram import ScramError, parse_scram
from moldau.cli.nodes.configuration import load_config, scram_arguments
from moldau.client.config.admin_keys import ADMIN_KEYS
from moldau.client.config.consumer_keys import CONSUMER_KEYS
from moldau.client.config.producer_keys import PRODUCER_KEYS
from moldau.client.config.settings import gather, parse_settings
from moldau.config.definition import ConfigDef
from moldau.config.values import ConfigType

SECRET = "s3cr3t-value"
NODE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "127.0.0.1:1",
    "log.dirs": "/data",
}


def passwords(definition: ConfigDef) -> list[str]:
    return [name for name, key in definition.items() if key.type is ConfigType.PASSWORD]


@pytest.mark.parametrize("name", passwords(BROKER_KEYS))
@pytest.mark.parametrize("prefix", ["", "listener.name.plaintext."])
def test_a_brokers_password_is_not_in_its_text(name: str, prefix: str) -> None:
    config = BrokerConfig.from_properties({**NODE, prefix + name: SECRET})
    for text in (repr(config), str(config), repr(config[name]), str(config[name])):
        assert SECRET not in text


@pytest.mark.parametrize(
    ("definition", "name"),
    [
        (definition, name)
        for definition in (ADMIN_KEYS, CONSUMER_KEYS, PRODUCER_KEYS)
        for name in passwords(definition)
    ],
)
def test_a_clients_password_is_not_in_its_settings(
    definition: ConfigDef, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    given: dict[str, Any] = {"bootstrap.servers": "127.0.0.1:9092", name: SECRET}
    values = parse_settings(definition, gather(definition, given, {}))
    assert SECRET not in repr(values)
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    ("override", "warned"),
    [
        ("ssl.keystore.password", True),
        ("listener.name.internal.ssl.keystore.password", True),
        ("listener.name.internal.plain.sasl.jaas.config", True),
        ("broker.rack", False),
    ],
)
def test_passwords_on_a_command_line_are_warned_of(
    override: str, warned: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    load_config(NODE, [f"{override}={SECRET}"])
    said = capsys.readouterr().err
    assert (f"--override {override}" in said) == warned
    assert SECRET not in said


def test_a_variable_on_a_command_line_is_no_password(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY_PASSWORD", SECRET)
    overrides = ["config.providers=env", "ssl.key.password=${env:KEY_PASSWORD}"]
    config = load_config(NODE, overrides)
    assert config["ssl.key.password"].value == SECRET
    assert "command line" not in capsys.readouterr().err


def test_scram_users_may_have_their_passwords_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALICE_PASSWORD", SECRET)
    properties = NODE | {"config.providers": "env"}
    given = ['SCRAM-SHA-512=[name=alice,password="${env:ALICE_PASSWORD}"]']
    assert scram_arguments(properties, given) == [f'SCRAM-SHA-512=[name=alice,password="{SECRET}"]']


@pytest.mark.parametrize(
    "argument",
    [
        f"SCRAM-SHA-512[name=alice,password={SECRET}]",
        f"SCRAM-SHA-512=[name=alice,passwort={SECRET}]",
        f"SCRAM-SHA-512=[name=alice,{SECRET}]",
        f"SCRAM-SHA-512=[name=alice,salt=N3E=,saltedpassword={SECRET}]",
    ],
)
def test_a_scram_user_that_cannot_be_read_is_not_repeated(argument: str) -> None:
    with pytest.raises(ScramError) as raised:
        parse_scram(argument, lambda: b"salt")
    assert SECRET not in str(raised.value)
