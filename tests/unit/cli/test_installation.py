"""Hints that are printed to be copied fit the installation they are printed by."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

from moldau import installation
from moldau.cli.nodes.start import try_lines
from moldau.connect.api import ConnectError
from moldau.connect.connectors.support.libraries import library
from support.processes import ROOT


@pytest.fixture
def no_commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As after `make run`: nothing of the environment is in the path."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("MOLDAU_BOOTSTRAP_SERVERS", raising=False)
    monkeypatch.delenv("MOLDAU_PROFILE", raising=False)


@pytest.fixture
def activated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An environment whose commands are in the path."""
    for name in ("moldau", "pip", "python"):
        command = tmp_path / name
        command.write_text("#!/bin/sh\n")
        command.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.usefixtures("no_commands")
def test_from_a_checkout_commands_are_short(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "executable", str(ROOT / ".venv" / "bin" / "python"))
    assert installation.command() == "./moldau"
    assert installation.python() == ".venv/bin/python"
    assert try_lines("127.0.0.1:9092")[:2] == [
        "  echo hello | ./moldau console-producer --topic greetings",
        "  ./moldau console-consumer --topic greetings --from-beginning --max-messages 1",
    ]
    assert " --bootstrap-server 127.0.0.1:19092 " in try_lines("127.0.0.1:19092")[0]
    monkeypatch.setenv("MOLDAU_BOOTSTRAP_SERVERS", "elsewhere:9092")
    assert " --bootstrap-server 127.0.0.1:9092 " in try_lines("127.0.0.1:9092")[0]
    monkeypatch.chdir(tmp_path)
    assert installation.command() == f"{ROOT}/moldau"


@pytest.mark.usefixtures("activated")
def test_in_an_activated_environment_names_are_enough() -> None:
    assert installation.command() == "moldau"
    assert installation.python() == "python"
    assert installation.pip_install("spark") == "pip install 'moldau[spark]'"


@pytest.mark.usefixtures("no_commands")
def test_an_extra_is_added_to_the_environment_that_needs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "executable", str(ROOT / ".venv" / "bin" / "python"))
    assert installation.pip_install("spark") == ".venv/bin/python -m pip install 'moldau[spark]'"

    def missing(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    # Code that runs from a checkout without being installed.
    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    assert installation.pip_install("spark") == ".venv/bin/python -m pip install -e '.[spark]'"


def test_the_wrapper_of_the_checkout() -> None:
    path = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
    done = subprocess.run(
        [str(ROOT / "moldau"), "topics", "--lsit"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PATH": path},
        cwd="/",
    )
    assert done.returncode == 1
    assert done.stderr == (
        "moldau topics: error: --lsit is not a recognized option. Did you mean --list?\n"
    )


def test_hints_to_install_an_extra_are_made_here_alone() -> None:
    """A line written by hand names a pip that may belong to another environment."""
    package = ROOT / "src" / "moldau"
    by_hand = [
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if path.name != "installation.py" and "pip install 'moldau[" in path.read_text()
    ]
    assert by_hand == []


def test_a_connector_without_its_package_says_what_adds_it() -> None:
    with pytest.raises(ConnectError) as caught:
        library("no_such_module.inner", "no-such-package", extra="cassandra")
    hint = installation.pip_install("cassandra")
    assert str(caught.value) == f"no-such-package is not installed: {hint} adds it"
