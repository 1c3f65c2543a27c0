"""`moldau doctor` and completion beside a broker that runs."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from moldau.cli.setup import doctor
from moldau.cli.setup.completion import candidates
from support.cli import Tools, moldau_cli
from support.processes import BrokerProcess
from support.waiting import eventually


@pytest.fixture(autouse=True)
def _no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "spark_checks", lambda: ())


def test_a_broker_that_is_well(broker: BrokerProcess, tmp_path: Path) -> None:
    at = ("--bootstrap-server", broker.bootstrap)
    port = broker.bootstrap.rpartition(":")[2]
    ended = moldau_cli("doctor", "--data", str(tmp_path), "--port", port, *at, "--json")
    found = {each["check"]: each for each in ended.json}
    assert ended.status == 0
    assert "1 broker(s) up" in found["broker"]["found"]
    assert found["broker 1"]["found"] == f"reachable at {broker.bootstrap}"
    assert found["clock"]["status"] == "OK"
    # The port is taken, and by whom it says.
    assert found["port"]["status"] == "warn"
    assert f"a broker already listens on {port}" in found["port"]["found"]


def test_names_of_topics_and_groups_are_completed(broker: BrokerProcess) -> None:
    tools = Tools(broker.bootstrap)
    tools.run("topics", "--create", "--topic", "payments")
    tools.run("topics", "--create", "--topic", "parcels")
    line = f"moldau topics --bootstrap-server {broker.bootstrap} --describe --topic pa"
    eventually(lambda: candidates(line) == ["parcels", "payments"], what="both are offered")
    assert candidates(line.replace("--topic pa", "--topic=pay")) == ["--topic=payments"]


def test_a_person_sees_tables_and_colours(broker: BrokerProcess) -> None:
    tools = Tools(broker.bootstrap)
    tools.run("topics", "--create", "--topic", "seen", "--partitions", "2")
    shown = on_terminal(
        "topics", "--bootstrap-server", broker.bootstrap, "--describe", "--topic", "seen"
    )
    assert "\x1b[" in shown
    assert "Partition" in shown
    assert "─" in shown
    assert "Topic: seen\t" not in shown
    at = ("--bootstrap-server", broker.bootstrap)
    # There are topics, only none of that name.
    assert on_terminal("topics", *at, "--list", "--topic", "none") == "No topic matches.\r\n"


def on_terminal(*words: str) -> str:
    """What a command shows on a terminal of its own."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    try:
        command = [sys.executable, "-m", "moldau.cli", *words]
        subprocess.run(
            command, stdout=theirs, stderr=theirs, env=environment, timeout=120, check=True
        )
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end is closed
                part = b""
            if not part:
                return shown.decode()
            shown += part
    finally:
        os.close(ours)
