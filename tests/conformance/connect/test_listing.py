"""Connectors are in `moldau pipelines list`, read from the topics of their workers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from moldau.connect.runtime.listing import connectors_in
from support.connect_workers import distributed_worker
from support.processes import BrokerProcess


def test_connectors_are_listed_as_pipelines(broker: BrokerProcess, tmp_path: Path) -> None:
    client = {"bootstrap.servers": broker.bootstrap}
    assert connectors_in(client, "connect-configs", "connect-status") == []
    (tmp_path / "in.txt").write_text("one\n")
    good = {"connector.class": "FileStreamSource", "file": str(tmp_path / "in.txt"), "topic": "l"}
    bad = {"connector.class": "FileStreamSink", "file": "/no/such/file", "topics": "l"}
    with distributed_worker(broker.bootstrap, "connect") as worker:
        worker.call("PUT", "/connectors/good/config", good)
        worker.call("PUT", "/connectors/bad/config", bad)
        worker.wait_for("good", "RUNNING", "RUNNING")
        worker.wait_for("bad", "RUNNING", "FAILED")
        found = connectors_in(client, "connect-configs", "connect-status")
        assert [(each.name, each.state, dict(each.tasks)) for each in found] == [
            ("bad", "RUNNING", {"FAILED": 1}),
            ("good", "RUNNING", {"RUNNING": 1}),
        ]
        listed = json.loads(listing(broker, tmp_path, "--json"))
        assert [(each["name"], each["kind"], each["state"]) for each in listed] == [
            ("bad", "connector", "failed"),
            ("good", "connector", "running"),
        ]
        shown = listing(broker, tmp_path)
        assert "good" in shown
        assert "bad: " in shown
        assert "/no/such/file" in shown
        # The command above has made the registry of pipelines, which is empty.
        assert worker.call("GET", "/pipelines").body == []


def listing(broker: BrokerProcess, folder: Path, *options: str) -> str:
    command = [sys.executable, "-m", "moldau.cli", "pipelines", "list"]
    options = ("--bootstrap-server", broker.bootstrap, "--data", str(folder / "spark"), *options)
    done = subprocess.run(
        [*command, *options], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
