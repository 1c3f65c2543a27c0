"""`moldau streams`: start, query, list, describe and stop an application."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from support.cli import moldau_cli
from support.ports import free_port
from support.processes import ROOT
from support.streams_counting import updates
from support.streams_embedded import Stage
from support.waiting import eventually

PROGRAM = ROOT / "examples" / "streams" / "word_count.py"


def test_an_application_from_start_to_stop(stage: Stage, tmp_path: Path) -> None:
    stage.create(["text", "counts"], partitions=2)
    queries = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "moldau.cli", "streams", "start", str(PROGRAM)]
    command += ["--bootstrap-server", stage.bootstrap, "--application-id", "word-count"]
    command += ["--state-dir", str(tmp_path / "state"), "--threads", "2", "--queries", queries]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        for line in ("Hello hello", "streams of Kafka"):
            stage.producer.send("text", line.encode())
        updates(stage.bootstrap, "counts", 2, 5)

        def found() -> int:
            answer = moldau_cli("streams", "query", queries, "counts", "hello")
            return int(json.loads(answer.out)["value"]) if answer.status == 0 else 0

        assert eventually(found, what="the store answers") == 2
        servers = ("--bootstrap-server", stage.bootstrap)
        listed = moldau_cli("streams", "list", *servers, "--json")
        assert ["word-count", 2] in [
            [each["application"], each["members"]] for each in json.loads(listed.out)
        ]
        described = json.loads(
            moldau_cli("streams", "describe", "word-count", *servers, "--json").out
        )
        assert {each["topic"] for each in described["inputs"]} == {
            "text",
            "word-count-counts-repartition",
        }
        state = ("--state-dir", str(tmp_path / "state"))
        assert moldau_cli("streams", "stop", "word-count", *state).status == 0
        assert process.wait(30) == 0, (tmp_path / "log").read_text()
        stopped = moldau_cli("streams", "stop", "word-count", *state)
        assert stopped.status == 1
        assert "no instance of word-count" in stopped.err
    finally:
        process.kill()
        process.wait()


def test_what_cannot_be_run(stage: Stage, tmp_path: Path) -> None:
    assert "Sub-topology: 1" in moldau_cli("streams", "topology", str(PROGRAM)).out
    (tmp_path / "empty.py").write_text("x = 1\n")
    answer = moldau_cli("streams", "topology", str(tmp_path / "empty.py"))
    assert answer.status == 1
    assert "has no topology" in answer.err
    assert "there is no file" in moldau_cli("streams", "topology", "nowhere.py").err
    assert "no application answers" in moldau_cli("streams", "query", "127.0.0.1:1").err
