"""Values from files, the environment and own classes: Kafka's config providers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pytest

from moldau.config.errors import ConfigError
from moldau.config.providers import resolve
from moldau.config.variables import Variable, replace_variables, variables_in

KAFKAS = "org.apache.kafka.common.config.provider."


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("no variable", []),
        ("${file:/a/b.properties:key}", [Variable("file", "/a/b.properties", "key")]),
        ("${env:NAME}", [Variable("env", "", "NAME")]),
        ("a${x:p:k}b${y:q}c", [Variable("x", "p", "k"), Variable("y", "", "q")]),
        ("${no_colon}", []),
        ("${file:/a:key", []),
        ("${file:C:/a:b:key}", [Variable("file", "C", "/a:b:key")]),
    ],
)
def test_variables(text: str, found: list[Variable]) -> None:
    assert variables_in(text) == found


def test_what_has_no_value_stays_as_it_is() -> None:
    values = {Variable("a", "", "x"): "1"}
    assert replace_variables("${a:x}-${a:y}-${b:x}", values.get) == "1-${a:y}-${b:x}"
    # A value is not looked at again: what a secret contains is not a variable.
    assert replace_variables("${a:x}", {Variable("a", "", "x"): "${a:x}"}.get) == "${a:x}"


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    (tmp_path / "secrets.properties").write_text("password=s3cr3t\nuser=alice\n")
    (tmp_path / "token").write_text("line 1\nline 2\n")
    return tmp_path


def test_a_file(secrets: Path) -> None:
    settings = {
        "config.providers": "file",
        "config.providers.file.class": KAFKAS + "FileConfigProvider",
        "jaas": f"u=${{file:{secrets}/secrets.properties:user}} "
        f"p=${{file:{secrets}/secrets.properties:password}}",
        "number": 5,
        "absent": f"${{file:{secrets}/secrets.properties:nobody}}",
    }
    resolved = resolve(settings)
    assert resolved == {
        "jaas": "u=alice p=s3cr3t",
        "number": 5,
        "absent": f"${{file:{secrets}/secrets.properties:nobody}}",
    }


def test_a_directory_and_the_environment(secrets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOLDAU_SECRET", "from outside")
    settings = {
        "config.providers": "dir,env",
        "config.providers.env.param.allowlist.pattern": "MOLDAU_.*",
        "a": f"${{dir:{secrets}:token}}",
        "b": "${env:MOLDAU_SECRET}",
        "c": "${env:PATH}",
        "d": f"${{dir:{secrets}:../{secrets.name}/token}}",
        "e": f"${{dir:{secrets}/none:token}}",
    }
    resolved = resolve(settings)
    assert resolved["a"] == "line 1\nline 2\n"
    assert resolved["b"] == "from outside"
    assert {resolved[name] == settings[name] for name in "cde"} == {True}


def test_only_allowed_paths_are_read(secrets: Path) -> None:
    allowed = secrets / "allowed"
    allowed.mkdir()
    (allowed / "own.properties").write_text("k=v")
    settings = {
        "config.providers": "file",
        "config.providers.file.param.allowed.paths": str(allowed),
        "good": f"${{file:{allowed}/own.properties:k}}",
        "bad": f"${{file:{allowed}/../secrets.properties:password}}",
    }
    resolved = resolve(settings)
    assert resolved["good"] == "v"
    assert resolved["bad"] == settings["bad"]


class Vault:
    """An own provider."""

    def configure(self, configs: Mapping[str, Any]) -> None:
        self._prefix = configs["prefix"]

    def get(self, path: str, keys: Collection[str]) -> Mapping[str, str]:
        return {key: f"{self._prefix}{path}/{key}" for key in keys}


def test_an_own_class() -> None:
    settings = {
        "config.providers": "vault",
        "config.providers.vault.class": f"{__name__}.Vault",
        "config.providers.vault.param.prefix": "at ",
        "a": "${vault:p:k}",
    }
    assert resolve(settings) == {"a": "at p/k"}
    assert resolve({**settings, "config.providers.vault.class": Vault}) == {"a": "at p/k"}


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"config.providers": "vault"}, r"config\.providers\.vault\.class"),
        (
            {"config.providers": "x", "config.providers.x.class": "org.acme.Vault"},
            "cannot be loaded",
        ),
        ({"config.providers": "file", "a": "${file:/no/such/file:k}"}, "Could not read properties"),
        ({"config.providers": "env", "a": "${env:path:k}"}, "Path is not supported"),
        (
            {"config.providers": "file", "config.providers.file.param.allowed.paths": "a/b"},
            "not absolute",
        ),
    ],
)
def test_what_cannot_be_read_is_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        resolve(settings)


def test_clients_read_their_secrets(secrets: Path) -> None:
    from moldau.client.config.admin_keys import ADMIN_KEYS
    from moldau.client.config.settings import gather, known_keys, parse_settings

    config = {
        "config.providers": "file",
        "config.providers.file.class": KAFKAS + "FileConfigProvider",
        "client.id": f"${{file:{secrets}/secrets.properties:user}}",
        "bootstrap.servers": "127.0.0.1:9092",
    }
    assert known_keys(config)["client.id"] == "alice"
    assert parse_settings(ADMIN_KEYS, gather(ADMIN_KEYS, config, {}))["client.id"] == "alice"
    assert parse_settings(ADMIN_KEYS, config)["client.id"] == "alice"


def test_nodes_read_their_secrets(secrets: Path) -> None:
    from moldau.cli.nodes.configuration import load_config

    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "127.0.0.1:1",
        "log.dirs": str(secrets / "data"),
        "config.providers": "file",
        "broker.rack": f"${{file:{secrets}/secrets.properties:user}}",
    }
    assert load_config(properties)["broker.rack"] == "alice"
