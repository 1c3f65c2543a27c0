"""Servers whose output nobody reads, as in `moldau start 2>&1 | head -3`, serve all the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.cli.support.output import surviving_closed_output
from moldau.client import Admin
from support.processes import free_port


@pytest.fixture
def unread() -> Iterator[int]:
    """A pipe that has no reader."""
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


def test_a_broker_starts_warns_serves_and_stops_in_order(tmp_path: Path, unread: int) -> None:
    port, data = free_port(), tmp_path / "data"
    process = subprocess.Popen(
        [sys.executable, "-m", "moldau.cli", "start", "--port", str(port), "--data", str(data)]
        # What is unknown is reported on standard error before the start.
        + ["--override", "no.such.key=1"],
        stdout=unread,
        stderr=unread,
    )
    try:
        with Admin(bootstrap_servers=f"127.0.0.1:{port}") as admin:
            assert admin.list_topics(timeout=60) == {}
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(60)
    assert code == 0
    assert (data / ".kafka_cleanshutdown").exists()


def test_a_failure_has_its_exit_code(tmp_path: Path, unread: int) -> None:
    (tmp_path / "file").touch()
    done = subprocess.run(
        [sys.executable, "-m", "moldau.cli", "start", "--data", str(tmp_path / "file" / "data")],
        stdout=unread,
        stderr=unread,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1


def test_everything_is_printed_while_there_is_a_reader(
    unread: int, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sys.stdout
    with surviving_closed_output():
        print("a line")
        print("no line", end="")
        sys.stderr.write("an error\n")
    assert sys.stdout is before
    assert capfd.readouterr() == ("a line\nno line", "an error\n")
    with os.fdopen(os.dup(unread), "w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        with surviving_closed_output():
            for _ in range(3):
                print("x" * 100_000)
