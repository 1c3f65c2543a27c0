"""What `moldau pipelines top` prints and draws, without a cluster behind it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from moldau.cli.main import main
from moldau.cli.pipelines import pipelines as command
from moldau.cli.pipelines import top
from moldau.cli.support.connecting import Unreachable
from moldau.pipelines.api import PipelineInfo
from moldau.pipelines.control.folder import ControlFolder, Heartbeat
from moldau.pipelines.machine.records import ErrorRecord, ProgressRecord, State, StatusRecord

Capture = pytest.CaptureFixture[str]
PROGRESS = ProgressRecord(
    batch_id=12,
    input_rows=700,
    processed_rows_per_second=350.0,
    lag_records=9000,
    lag_seconds=4.25,
    output_rows=100,
    durations_ms={
        "latestOffset": 30,
        "getBatch": 10,
        "queryPlanning": 60,
        "addBatch": 1800,
        "walCommit": 50,
        "commitOffsets": 40,
        "triggerExecution": 2000,
    },
    backlog_done=0.25,
    seconds_left=95.0,
)


def info(name: str, state: str = "running", **more: Any) -> PipelineInfo:
    fields: dict[str, Any] = {
        "desired": "running",
        "definition": {"name": name},
        "checkpoint": "/checkpoints",
        "deployment": "d",
        "generation": 1,
        "revision": 1,
        "finite": False,
        "since_ms": int((time.time() - 63.0) * 1000),
    }
    return PipelineInfo(name=name, state=state, **(fields | more))


def two() -> list[PipelineInfo]:
    error = ErrorRecord(message="no room", at_ms=int((time.time() - 7) * 1000))
    worse = info("worse", "restarting", attempts=2, restarts=5, last_error=error)
    return [info("orders", progress=PROGRESS), worse]


class Cluster:
    """What `open_pipelines` gives; without `infos` no broker answers."""

    def __init__(self) -> None:
        self.infos: list[PipelineInfo] | None = two()

    def list(self) -> list[PipelineInfo]:
        if self.infos is None:
            raise Unreachable("no broker answers at 127.0.0.1:1.")
        return self.infos


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()

    @contextmanager
    def opened(arguments: object) -> Iterator[Cluster]:
        yield made

    monkeypatch.setattr(command, "open_pipelines", opened)
    return made


def test_one_table(cluster: Cluster, capsys: Capture) -> None:
    assert main(["pipelines", "top", "--once"]) == 0
    header, orders, worse, error = capsys.readouterr().out.splitlines()
    assert header.split("  ")[0] == "NAME"
    assert orders.split() == [
        *["orders", "running", "1m03s", "0", "350", "50", "9000", "4.2", "s", "25%", "1m35s"],
        *["12", "40", "60", "1800", "90", "2000"],
    ]
    assert worse.split()[:4] == ["worse", "restarting", "1m03s", "5"]
    assert error.startswith("worse: no room [")
    assert error.endswith("s ago, 2 times in a row]")


def test_an_error_that_is_over_is_shown_with_its_age(cluster: Cluster, capsys: Capture) -> None:
    at_ms = int((time.time() - 130) * 1000)
    cluster.infos = [info("well", last_error=ErrorRecord(message="lost", at_ms=at_ms))]
    assert main(["pipelines", "top", "--once"]) == 0
    assert "well: lost [2m10s ago, recovered]" in capsys.readouterr().out


def test_json_and_several_readings(cluster: Cluster, capsys: Capture) -> None:
    asked = ["pipelines", "--json", "top", "--count", "2", "--interval", "0.01"]
    assert main(asked) == 0
    for line in capsys.readouterr().out.splitlines():
        first = json.loads(line)[0]
        assert first["progress"]["durations_ms"]["addBatch"] == 1800
        assert first["progress"]["seconds_left"] == 95.0


def test_without_a_broker_the_stored_states_are_shown(
    cluster: Cluster, capsys: Capture, tmp_path: Path
) -> None:
    folder = ControlFolder(tmp_path)
    status = StatusRecord(name="orders", state=State.RUNNING, progress=PROGRESS)
    now_ms = int(time.time() * 1000)
    folder.beat(
        Heartbeat(
            pid=1,
            mark="1",
            at_ms=now_ms,
            round_at_ms=now_ms,
            started_at_ms=now_ms,
            bootstrap_servers="127.0.0.1:1",
            deployment="d",
            pipelines={"orders": status.to_json()},
        )
    )
    cluster.infos = None
    assert main(["pipelines", "--data", str(tmp_path), "top", "--once"]) == 0
    printed = capsys.readouterr().out
    assert "orders" in printed
    assert "9000" in printed
    assert "no broker answers at 127.0.0.1:1. These states are those" in printed


def test_without_a_broker_and_without_states_it_is_an_error(
    cluster: Cluster, capsys: Capture, tmp_path: Path
) -> None:
    cluster.infos = None
    assert main(["pipelines", "--data", str(tmp_path), "top", "--once"]) == 1
    assert "no broker answers" in capsys.readouterr().err


def test_a_screen_is_as_wide_as_the_terminal() -> None:
    from rich.console import Console

    reading = top.Reading(two(), time.monotonic(), "No broker answers.")
    for width in (60, 100, 180):
        console = Console(width=width, record=True, force_terminal=True)
        with console.capture() as captured:
            console.print(top._screen(reading, width))
        assert "moldau: No broker answers." in captured.get()
        assert all(len(line.rstrip()) <= width for line in console.export_text().splitlines())
