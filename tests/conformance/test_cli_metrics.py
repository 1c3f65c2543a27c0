"""`moldau metrics` and `moldau monitor`, as docs/metrics.md shows them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.client import Producer
from support.ports import free_port
from support.processes import BrokerProcess, moldau
from support.waiting import eventually

DOCUMENT = Path(__file__).parents[2] / "docs" / "metrics.md"


class Served:
    def __init__(self, broker: BrokerProcess, port: int) -> None:
        self.broker = broker
        self.url = f"http://127.0.0.1:{port}"

    def run(self, *arguments: str, status: int = 0) -> str:
        """What `moldau` prints with these arguments."""
        command = [sys.executable, "-m", "moldau.cli", *arguments]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert ended.returncode == status, ended.stdout + ended.stderr
        return ended.stdout + (ended.stderr if status else "")

    def run_any(self, *arguments: str) -> str:
        """The same, whether it reports trouble or not: a canary may be slow on a busy machine."""
        command = [sys.executable, "-m", "moldau.cli", *arguments]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        return ended.stdout

    def metrics(self, *arguments: str, status: int = 0) -> str:
        return self.run("metrics", arguments[0], "--url", self.url, *arguments[1:], status=status)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    port = free_port()
    folder = tmp_path_factory.mktemp("broker")
    broker = moldau(folder)
    broker.command += ["--metrics-port", str(port)]
    with broker:
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            for _ in range(10):
                producer.send("orders", b"value")
        yield Served(broker, port)


def test_list(served: Served) -> None:
    text = served.metrics("list", "messagesin_total", 'topic="orders"', "brokertopic")
    assert text == 'kafka_server_brokertopicmetrics_messagesin_total{topic="orders"} 10\n'
    (found,) = json.loads(served.metrics("list", "leadercount", "--json"))
    assert found["value"] >= 1
    assert served.metrics("list", "no-such-metric", status=1) == ""


def test_watch(served: Served) -> None:
    text = served.metrics("watch", "--interval", "0.2", "--count", "2")
    assert text.count("records in") == 2
    assert re.search(r"active controller +1\n", text)
    chosen = served.metrics("watch", "leadercount", "--interval", "0.1", "--count", "1")
    assert "kafka_server_replicamanager_leadercount" in chosen


def test_chart(served: Served) -> None:
    text = served.metrics("chart", "leadercount", "--interval", "0.1", "--count", "3")
    assert text.splitlines()[0] == "kafka_server_replicamanager_leadercount"
    assert "███" in text
    failed = served.metrics("chart", "no-such-metric", status=1)
    assert "no metric has all of: no-such-metric" in failed


def test_read(served: Served) -> None:
    text = served.metrics("read", "kafka.server:type=ReplicaManager,*")
    assert "kafka.server:type=ReplicaManager,name=LeaderCount\n  Value" in text
    failed = served.metrics("read", "nonsense", status=1)
    assert "write domain:type=TYPE" in failed


def test_clients(served: Served) -> None:
    assert "no client has pushed metrics" in served.metrics("clients")


def test_a_broker_without_a_port_is_explained(served: Served) -> None:
    failed = served.run("metrics", "list", "--url", f"http://127.0.0.1:{free_port()}", status=1)
    assert "Start the broker with --metrics-port" in failed


def test_a_wrong_setting_stops_the_start(tmp_path: Path) -> None:
    broker = moldau(tmp_path, ["moldau.metrics.prot=1"])
    with pytest.raises(RuntimeError, match=r"Unknown configuration moldau\.metrics\.prot"):
        broker.start()


def test_monitor(served: Served, tmp_path: Path) -> None:
    """With the file of the docs, quicker and without the ways of alerts."""
    blocks = re.findall(r"```yaml\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    (yaml,) = [block for block in blocks if "objectives:" in block]
    yaml = re.sub(r"(?ms)^alerts:.*", "", yaml)
    yaml = yaml.replace("http://127.0.0.1:9644", served.url).replace(
        "interval_seconds: 10\n", "interval_seconds: 0.3\n"
    )
    file = tmp_path / "monitor.yml"
    file.write_text(yaml)
    port = free_port()
    command = [
        sys.executable, "-m", "moldau.cli", "monitor", "start", str(file),
        "--bootstrap-server", served.broker.bootstrap, "--port", str(port),
    ]  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ)
    try:

        def probed() -> bool:
            assert process.poll() is None, (tmp_path / "log").read_text()
            try:
                with urllib.request.urlopen(f"{url}/clients", timeout=20) as answer:
                    return bool(json.load(answer)["canary"]["probes"])
            except OSError:
                return False

        eventually(probed, what="the canary has probed", seconds_max=120)
        found = served.run_any("monitor", "status", "--url", url)
        for name in ("writes", "fast", "fresh"):
            assert f"objective {name}" in found
        shown = json.loads(served.run("monitor", "status", "--url", url, "--json"))
        assert shown["problem"] == ""
        history = ["metrics", "history", "--bootstrap-server", served.broker.bootstrap]
        eventually(lambda: "leadercount" in served.run(*history, "leadercount"), what="a reading")
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, (tmp_path / "log").read_text()
    failed = served.run("monitor", "status", "--url", url, status=1)
    assert "no monitor answers" in failed


def test_mistakes_in_the_monitors_file_are_explained(served: Served, tmp_path: Path) -> None:
    file = tmp_path / "monitor.yml"
    file.write_text("intervall_seconds: 1\n")
    assert "unknown: intervall_seconds" in served.run("monitor", "start", str(file), status=1)
    assert "No such file" in served.run("monitor", "start", str(tmp_path / "none"), status=1)
