"""`moldau ... | head`: a reader that goes away ends a tool quietly and leaves a broker running."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from moldau.client import Admin
from support.ports import free_port

SECONDS_MAX = 120
MOLDAU = [sys.executable, "-m", "moldau.cli"]


def run_for_nobody(*words: str) -> subprocess.CompletedProcess[str]:
    """With a standard output that nobody reads from the beginning."""
    reader = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    reader.wait()
    assert reader.stdin is not None
    with reader.stdin as closed:
        return subprocess.run(
            [*MOLDAU, *words],
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
            # As in a terminal: what is printed is buffered until the end.
            env={key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"},
        )


@pytest.mark.parametrize(
    "words",
    [
        ("--help",),
        ("topics", "--help"),
        ("--version",),
        ("storage", "random-uuid"),
        ("spark", "status"),
    ],
)
def test_a_tool_ends_quietly(words: tuple[str, ...]) -> None:
    ended = run_for_nobody(*words)
    assert (ended.returncode, ended.stderr) == (128 + signal.SIGPIPE, "")


def test_a_broker_goes_on_and_stops_in_order(tmp_path: Path) -> None:
    port, data = free_port(), tmp_path / "data"
    broker = subprocess.Popen(
        [*MOLDAU, "start", "--port", str(port), "--data", str(data)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert broker.stdout is not None
        broker.stdout.close()
        with Admin(bootstrap_servers=f"127.0.0.1:{port}") as admin:
            assert admin.describe_cluster(timeout=SECONDS_MAX).cluster_id
        broker.send_signal(signal.SIGTERM)
        assert broker.wait(SECONDS_MAX) == 0
        assert (data / ".kafka_cleanshutdown").exists()
    finally:
        broker.kill()
        broker.wait()


def test_a_taken_port_leaves_no_data_directory_behind(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = subprocess.run(
            [*MOLDAU, "start", "--port", str(port), "--data", str(data)],
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
    assert refused.returncode == 1
    assert f"moldau: cannot listen on PLAINTEXT://127.0.0.1:{port}" in refused.stderr
    assert "in use" in refused.stderr
    assert not data.exists()
