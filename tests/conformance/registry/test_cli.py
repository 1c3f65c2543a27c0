"""`moldau registry start` and `bin/schema-registry-start`, as a user types them."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.testing import Broker
from support.processes import ROOT


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as found:
        yield found


def lines_until_ready(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    shown = ""
    for line in process.stdout:
        shown += line
        if "Ctrl-C" in line:
            return shown
    raise AssertionError(shown)


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl on this machine")
def test_the_lines_that_it_prints_can_be_pasted(broker: Broker, tmp_path: Path) -> None:
    file = tmp_path / "schema-registry.properties"
    file.write_text(
        f"listeners=http://127.0.0.1:0\nkafkastore.bootstrap.servers={broker.bootstrap_servers}\n"
        "kafkastore.timeout.ms=20000\n"
    )
    process = subprocess.Popen(
        [str(ROOT / "bin" / "schema-registry-start"), str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        shown = lines_until_ready(process)
        tried = shown.split("Try it:\n")[1].split("\nCtrl-C")[0]
        ended = subprocess.run(
            ["sh", "-euc", tried.replace("curl ", "curl -sf ").replace("\n  curl", "\necho;curl")],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        registered, subjects = ended.stdout.split("\n")
        assert json.loads(registered)["id"] == 1
        assert json.loads(subjects) == ["greetings-value"]
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--port", "70000"], r"--port 70000: a port must be"),
        (["--override", "nonsense"], r"use KEY=VALUE"),
        (["missing.properties"], r"cannot read missing.properties"),
        (["--override", "schema.compatibility.level=loud"], r"schema.compatibility.level"),
        (
            ["--bootstrap-server", "127.0.0.1:1", "--override", "kafkastore.init.timeout.ms=500"],
            r"no broker of 127.0.0.1:1 answered within",
        ),
    ],
)
def test_what_is_wrong_is_one_line(options: list[str], reason: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "moldau.cli", "registry", "start", *options],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    assert re.search(reason, ended.stderr)
    assert "Traceback" not in ended.stderr
