"""Which cluster a command asks when its line names none, and `moldau profile`, which names them."""

from __future__ import annotations

import argparse
import os
import stat
from importlib import import_module
from pathlib import Path

import pytest

from moldau.cli.catalogue import TOOLS
from moldau.cli.console import console_producer
from moldau.cli.console.options import client_settings
from moldau.cli.main import main, parser_of
from moldau.cli.support.addresses import cluster_settings, named_cluster
from moldau.cli.support.client_options import client_config
from moldau.cli.support.connecting import Unreachable
from moldau.cli.support.failures import Failure
from moldau.cli.support.profiles import Profiles
from moldau.cli.topics import get_offsets, topics
from support.cli import Ended, moldau_cli


@pytest.fixture(autouse=True)
def config_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for variable in ("MOLDAU_BOOTSTRAP_SERVERS", "MOLDAU_PROFILE", "MOLDAU_SCRIPT"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path / "config" / "moldau"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[argparse.Namespace]:
    """The arguments that tools would have asked a cluster with."""
    seen: list[argparse.Namespace] = []

    def run(arguments: argparse.Namespace) -> int:
        seen.append(arguments)
        return 0

    for tool in (topics, get_offsets, console_producer):
        monkeypatch.setattr(tool, "run", run)
    return seen


def create(name: str, servers: str, *words: str) -> Ended:
    ended = moldau_cli("profile", "create", name, "--bootstrap-server", servers, *words)
    assert ended.status == 0, ended
    return ended


def test_what_comes_first(
    asked: list[argparse.Namespace], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=file:1\n")
    words = ["topics", "--list"]
    assert main(words) == 0
    create("prod", "prod:1", "--set", "client.id=laptop")
    assert main(words) == 0
    create("other", "other:1")
    monkeypatch.setenv("MOLDAU_PROFILE", "prod")
    assert main(words) == 0
    monkeypatch.setenv("MOLDAU_BOOTSTRAP_SERVERS", "environment:1")
    assert main(words) == 0
    assert main([*words, "--command-config", str(file)]) == 0
    assert main([*words, "--command-config", str(file), "--bootstrap-server", "line:1"]) == 0
    assert [client_config(arguments) for arguments in asked] == [
        {"bootstrap.servers": "127.0.0.1:9092"},
        {"bootstrap.servers": "prod:1", "client.id": "laptop"},
        {"bootstrap.servers": "prod:1", "client.id": "laptop"},
        # Properties of a profile do not go to another cluster.
        {"bootstrap.servers": "environment:1"},
        {"bootstrap.servers": "file:1"},
        {"bootstrap.servers": "line:1"},
    ]


def test_properties_of_the_command_line_come_first(asked: list[argparse.Namespace]) -> None:
    create("prod", "prod:1", "--set", "client.id=laptop")
    words = ["console-producer", "--topic", "t"]
    assert main([*words, "--command-property", "client.id=mine"]) == 0
    assert main([*words, "--command-property", "bootstrap.servers=mine:1"]) == 0
    assert [client_settings(arguments) for arguments in asked] == [
        {"bootstrap.servers": "prod:1", "client.id": "mine"},
        {"bootstrap.servers": "mine:1"},
    ]


def test_every_tool_of_kafka_does_without_the_option() -> None:
    for tool in TOOLS.values():
        if tool.name in ("profile", "pipelines", "spark"):
            continue
        for parser in _parsers(parser_of(tool)):
            option = parser._option_string_actions.get("--bootstrap-server")
            assert option is None or not option.required, tool.name


def _parsers(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    found = [parser]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found += action.choices.values()
    return found


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["topics", "--list"], "--bootstrap-server must be specified"),
        (["get-offsets"], "--bootstrap-server is required"),
        (["kafka-cluster", "cluster-id"], "--bootstrap-server/-b --bootstrap-controller"),
    ],
)
def test_the_scripts_of_kafka_insist_on_an_address(
    words: list[str], line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create("prod", "prod:1")
    monkeypatch.setenv("MOLDAU_BOOTSTRAP_SERVERS", "environment:1")
    monkeypatch.setenv("MOLDAU_SCRIPT", "kafka-tool")
    ended = moldau_cli(*words)
    assert ended.status == 1
    assert line in ended.err


def test_where_an_address_came_from_is_said_when_nobody_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run(arguments: argparse.Namespace) -> int:
        raise Unreachable("no broker can be reached.")

    monkeypatch.setattr(topics, "run", run)
    said = [moldau_cli("topics", "--list").err]
    create("prod", "prod:1")
    said.append(moldau_cli("topics", "--list").err)
    monkeypatch.setenv("MOLDAU_BOOTSTRAP_SERVERS", "environment:1")
    said.append(moldau_cli("topics", "--list").err)
    said.append(moldau_cli("topics", "--list", "--bootstrap-server", "line:1").err)
    assert [line.removeprefix("no broker can be reached.")[:60].strip() for line in said] == [
        "This is the default: give --bootstrap-server, set MOLDAU_BO",
        "The address is from the profile prod.",
        "The address is from MOLDAU_BOOTSTRAP_SERVERS.",
        "",
    ]


def test_profiles_from_creation_to_deletion(config_directory: Path) -> None:
    assert moldau_cli("profile", "current").status == 1
    assert "There are no profiles." in moldau_cli("profile", "list").out
    create("local", "127.0.0.1:9092")
    secret = "ssl.key.password=sesame"
    create("prod", "kafka1:9092,kafka2:9092", "--set", "client.id=laptop", "--set", secret)
    assert moldau_cli("profile", "current").out == "prod\n"
    assert moldau_cli("profile", "list").lines == [
        "NAME   BOOTSTRAP-SERVERS        IN-USE",
        "local  127.0.0.1:9092           -",
        "prod   kafka1:9092,kafka2:9092  yes",
    ]
    file = config_directory / "profiles" / "prod.properties"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert moldau_cli("profile", "show").lines == [
        f"# {file}",
        "client.id=laptop",
        "ssl.key.password=[hidden]",
        "bootstrap.servers=kafka1:9092,kafka2:9092",
    ]
    assert moldau_cli("profile", "use", "local").status == 0
    assert moldau_cli("profile", "current").out == "local\n"
    assert moldau_cli("profile", "delete", "local").status == 0
    assert moldau_cli("profile", "current").status == 1
    assert [row["name"] for row in moldau_cli("profile", "list", "--json").json] == ["prod"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("create prod --bootstrap-server x:1", "there is a profile prod already"),
        ("create new", "give --bootstrap-server HOST:PORT"),
        ("create ../new --bootstrap-server x:1", "cannot be the name of a profile"),
        ("create new --bootstrap-server x", "each entry has the form host:port"),
        ("use prd", "there is no profile prd. Did you mean prod?"),
        ("show prd", "there is no profile prd. Did you mean prod?"),
        ("delete prd", "there is no profile prd. Did you mean prod?"),
    ],
)
def test_mistakes_with_profiles(words: str, line: str) -> None:
    create("prod", "prod:1")
    ended = moldau_cli("profile", *words.split())
    assert ended.status == 1
    assert line in ended.err
    assert Profiles(os.environ).names() == ["prod"]
    assert Profiles(os.environ).read("prod")["bootstrap.servers"] == "prod:1"


def test_an_unknown_property_is_kept_with_a_warning() -> None:
    ended = create("prod", "prod:1", "--set", "clientid=x")
    assert "no client knows clientid. Did you mean client.id?" in ended.err
    assert cluster_settings(os.environ) == {"clientid": "x", "bootstrap.servers": "prod:1"}


def test_a_profile_that_is_missing_or_damaged_is_named(config_directory: Path) -> None:
    with pytest.raises(Failure, match=r"there is no profile nosuch.*MOLDAU_PROFILE"):
        named_cluster({**os.environ, "MOLDAU_PROFILE": "nosuch"})
    create("prod", "prod:1")
    (config_directory / "profiles" / "prod.properties").write_text("client.id=x\n")
    with pytest.raises(Failure, match=r"prod\.properties has no bootstrap\.servers"):
        named_cluster(os.environ)
    # Other commands do not care, and the profile can be replaced.
    assert moldau_cli("storage", "random-uuid").status == 0
    assert create("prod", "prod:2", "--replace").status == 0


@pytest.mark.parametrize("service", ["connect", "sql"])
def test_the_file_of_a_service_names_its_cluster(
    service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a profile or a running broker would be found."""
    seen: list[argparse.Namespace] = []
    module = import_module(f"moldau.cli.services.{service}")
    monkeypatch.setattr(module, "run", lambda arguments: seen.append(arguments) or 0)
    create("other", "elsewhere:9092")
    file = tmp_path / "service.properties"
    file.write_text("bootstrap.servers=mine:9092\n")
    assert main([service, "start", str(file)]) == 0
    assert main([service, "start", "--override", "bootstrap.servers=theirs:9092"]) == 0
    assert main([service, "start", str(file), "--bootstrap-server", "given:9092"]) == 0
    found = [each.bootstrap_server for each in seen]
    assert found == ["mine:9092", "theirs:9092", "given:9092"]
