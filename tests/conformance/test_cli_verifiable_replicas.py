"""`moldau replica-verification` on three nodes: replicas that follow are found equal."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterable

from moldau.client.admin import Admin, NewTopic
from moldau.client.producer import Producer
from moldau.testing import Cluster
from support.cli import moldau_cli


def test_replicas_are_found_equal_also_after_a_restart() -> None:
    with Cluster(3) as cluster:
        settings = {"bootstrap.servers": cluster.bootstrap_servers}
        with Admin(settings) as admin:
            admin.create_topics([NewTopic("copied", 2, 3)])
        _produce(settings)
        command = [sys.executable, "-m", "moldau.cli", "replica-verification"]
        command += ["--broker-list", cluster.bootstrap_servers, "--topics-include", "cop.*"]
        command += ["--time", "-2", "--report-interval-ms", "50", "--max-wait-ms", "50"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            lines = process.stdout
            assert lines is not None
            assert re.fullmatch(
                r"[\d-]{10} [\d:]{8},\d{3}: verification process is started\n", lines.readline()
            )
            _read_until_equal(lines, 10)
            cluster.nodes[3].restart()
            _produce(settings)
            _read_until_equal(lines, 20)
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 128 + signal.SIGTERM


def _produce(settings: dict[str, str]) -> None:
    with Producer(settings) as producer:
        for number in range(20):
            producer.send("copied", b"v", partition=number % 2)


def _read_until_equal(lines: Iterable[str], offset: int) -> None:
    """Until all is verified: no line before may tell of a difference."""
    for line in lines:
        told = re.search(
            r"max lag is (-?\d+) for partition copied-\d at offset (\d+) among 2", line
        )
        assert told is not None, line
        if told[1] == "0" and told[2] == str(offset):
            return
    raise AssertionError("it ended")


def test_nothing_to_verify_is_told() -> None:
    with Cluster(1) as cluster:
        words = ("--broker-list", cluster.bootstrap_servers, "--topics-include", "none")
        ended = moldau_cli("replica-verification", *words)
    assert ended.status == 1
    assert ended.err.startswith("No topics found.")
