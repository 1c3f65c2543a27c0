"""What `moldau pipelines` prints, without a cluster behind it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from moldau.cli.main import main
from moldau.cli.pipelines import connectors
from moldau.cli.pipelines import pipelines as command
from moldau.pipelines.api import PipelineInfo
from moldau.pipelines.control.folder import ControlFolder, Heartbeat
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.machine.records import (
    ErrorRecord,
    ProgressRecord,
    QueryRecord,
    State,
    StatusRecord,
)

Capture = pytest.CaptureFixture[str]
NOW = 1_794_822_755.0


def info(name: str, state: str, **more: Any) -> PipelineInfo:
    fields: dict[str, Any] = {
        "desired": "running",
        "definition": {
            "name": name,
            "source": {"topic": "orders"},
            "sink": {"parquet": "/data/out"},
            "trigger": "0 seconds",
            "base": "/nowhere",
        },
        "checkpoint": f"/checkpoints/{name}",
        "deployment": "d",
        "generation": 3,
        "revision": 2,
        "finite": False,
        "since_ms": int((NOW - 117) * 1000),
    }
    return PipelineInfo(name=name, state=state, **(fields | more))


RUNNING = info(
    "big-orders",
    "running",
    connector="moldau",
    activity="looking for records",
    queries=(QueryRecord("big-orders", "id-1", "run-1"),),
    progress=ProgressRecord(
        batch_id=12,
        input_rows=7,
        processed_rows_per_second=4210.4,
        lag_records=3,
        lag_seconds=0.25,
        at="then",
    ),
    last_error=ErrorRecord(message="no broker", at_ms=int((NOW - 3700) * 1000)),
)
RESTARTING = info(
    "worse",
    "restarting",
    attempts=3,
    restarts=7,
    retry_at_ms=int((NOW + 4) * 1000),
    last_error=ErrorRecord(
        message="ValueError: negative", where="steps.py:3", at_ms=int(NOW * 1000)
    ),
)


class Played:
    """The API as far as the command uses it."""

    def __init__(self, *infos: PipelineInfo) -> None:
        self.infos = {one.name: one for one in infos}
        self.error: PipelineError | None = None
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.cluster: dict[str, str] = {}

    def list(self) -> list[PipelineInfo]:
        return list(self.infos.values())

    def show(self, name: str) -> PipelineInfo:
        return self.infos[name]

    def start(self, definition: str, **options: Any) -> PipelineInfo:
        self.asked.append((definition, options))
        if self.error is not None:
            raise self.error
        return next(iter(self.infos.values()))

    def delete(self, name: str, **options: Any) -> None:
        self.asked.append((name, options))

    def logs(self, name: str, **options: Any) -> Iterator[str]:
        self.asked.append((name, options))
        yield from ("one", "two")


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    made = Played(RUNNING, RESTARTING)

    @contextmanager
    def opened(arguments: object) -> Iterator[Played]:
        yield made

    monkeypatch.setattr(command, "open_pipelines", opened)
    monkeypatch.setattr(connectors, "connectors_of", lambda _cluster, _found: [])
    monkeypatch.setattr(command.time, "time", lambda: NOW)
    return made


def test_list(played: Played, capsys: Capture) -> None:
    assert main(["pipelines", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == [
        *["NAME", "STATE", "FOR", "RESTARTS", "BATCH", "ROWS/S", "LAG", "BEHIND", "LEFT"],
        "ENGINE",
    ]
    assert lines[1].split() == [
        *["big-orders", "running", "1m57s", "0", "12", "4210", "3", "0.2", "s", "-", "spark"]
    ]
    assert lines[2].split() == [
        "worse",
        "restarting",
        "1m57s",
        "7",
        "-",
        "-",
        "-",
        "-",
        "-",
        "spark",
    ]
    assert lines[3] == "worse: steps.py:3: ValueError: negative [0s ago, 3 times in a row]"


def failed(message: str, *, seconds_ago: float) -> ErrorRecord:
    return ErrorRecord(message=message, at_ms=int((NOW - seconds_ago) * 1000))


@pytest.mark.parametrize(
    ("state", "more", "shown", "reason"),
    [
        pytest.param(
            "running",
            {"attempts": 3, "last_error": failed("bad record", seconds_ago=4)},
            "failing",
            "p: bad record [4s ago, 3 times in a row]",
            id="fails at every batch",
        ),
        pytest.param(
            "running",
            {"attempts": 1, "last_error": failed("bad record", seconds_ago=4)},
            "recovering",
            "p: bad record [4s ago]",
            id="failed once just now",
        ),
        pytest.param(
            "stopping",
            {"attempts": 2, "last_error": failed("bad record", seconds_ago=1)},
            "restarting",
            "p: bad record [1s ago, 2 times in a row]",
            id="between two tries",
        ),
        pytest.param(
            "restarting",
            {"last_error": failed("topic orders does not exist", seconds_ago=1080)},
            "restarting",
            "p: it starts again as soon as Spark is ready",
            id="without its server, after an error that is over",
        ),
        pytest.param(
            "running",
            {"last_error": failed("topic orders does not exist", seconds_ago=1080)},
            "running",
            None,
            id="recovered",
        ),
        pytest.param(
            "stopping", {"desired": "stopped", "attempts": 2}, "stopping", None, id="being stopped"
        ),
    ],
)
def test_a_pipeline_that_fails_is_not_shown_as_running(
    played: Played,
    capsys: Capture,
    state: str,
    more: dict[str, Any],
    shown: str,
    reason: str | None,
) -> None:
    played.infos = {"p": info("p", state, **more)}
    assert main(["pipelines", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[1] == shown
    assert lines[2:] == ([] if reason is None else [reason])


def test_states_are_shown_without_a_broker(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from moldau.cli.support import connecting

    monkeypatch.setattr(connecting, "REACHABLE_SECONDS_MAX", 0.05)
    monkeypatch.setattr(command.time, "time", lambda: NOW)
    status = StatusRecord(
        name="p", state=State.RUNNING, since_ms=int((NOW - 70) * 1000), restarts=2
    )
    ControlFolder(tmp_path).beat(
        Heartbeat(
            pid=1,
            mark="m",
            at_ms=int((NOW - 5) * 1000),
            round_at_ms=0,
            started_at_ms=0,
            bootstrap_servers="127.0.0.1:1",
            deployment="d",
            pipelines={"p": status.to_json()},
        )
    )
    words = ["--bootstrap-server", "127.0.0.1:1", "--data", str(tmp_path)]
    assert main(["pipelines", *words, "list"]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines()[1].split()[:4] == ["p", "running?", "1m10s", "2"]
    assert "no broker can be reached at 127.0.0.1:1" in shown.err
    assert "are those that the control loop wrote 5 s ago" in shown.err
    assert main(["pipelines", *words, "show", "p"]) == 0
    assert "running for 1m10s (the control loop does not run" in capsys.readouterr().out
    assert main(["pipelines", *words, "stop", "p"]) == 1


def test_list_without_any_says_how_to_begin(played: Played, capsys: Capture) -> None:
    played.infos.clear()
    assert main(["pipelines", "list"]) == 0
    assert "moldau pipelines start FILE.yaml" in capsys.readouterr().out
    assert main(["pipelines", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_show(played: Played, capsys: Capture) -> None:
    assert main(["pipelines", "show", "big-orders"]) == 0
    shown = dict(line.split(":", 1) for line in capsys.readouterr().out.splitlines())
    told = {name: value.strip() for name, value in shown.items()}
    assert told == {
        "Name": "big-orders",
        "State": "running for 1m57s",
        "Wanted": "running",
        "Restarts": "0, 0 failures in a row",
        "Activity": "looking for records",
        "Batch": "12, 7 rows, at then",
        "Rows/s": "4210",
        "Lag": "3 records, 0.2 s",
        "From": "topic orders",
        "To": "parquet /data/out",
        "Trigger": "as fast as possible",
        "Engine": "spark",
        "Connector": "moldau",
        "Checkpoint": "/checkpoints/big-orders",
        "Generation": "3, revision 2",
        "Query": "big-orders id-1 run run-1",
        "Last error": "no broker (1h01m ago, recovered)",
    }


def test_show_of_one_that_waits(played: Played, capsys: Capture) -> None:
    assert main(["pipelines", "show", "worse"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "Next try:   in 4 s, after 3 failures" in lines
    assert "Last error: steps.py:3: ValueError: negative (0s ago)" in lines


def test_a_failed_start_shows_the_user_s_own_line(
    played: Played, capsys: Capture, tmp_path: Path
) -> None:
    (tmp_path / "steps.py").write_text("def check(row):\n    if row:\n        raise ValueError\n")
    played.error = PipelineError(
        "ValueError: negative", where="steps.py:3", hint="mend it", detail="pages\nof\nJava"
    )
    assert main(["pipelines", "start", str(tmp_path / "p.yaml"), "--timeout", "5"]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == "steps.py:3: ValueError: negative (mend it)\n  3 | raise ValueError\n"
    assert played.asked == [(str(tmp_path / "p.yaml"), {"wait": True, "timeout": 5.0})]


def test_delete_and_logs(played: Played, capsys: Capture) -> None:
    assert main(["pipelines", "delete", "worse", "--checkpoint", "--no-wait"]) == 0
    assert capsys.readouterr().out == "worse is deleted.\n"
    assert main(["pipelines", "logs", "worse", "-n", "0", "--detail"]) == 0
    assert capsys.readouterr().out == "one\ntwo\n"
    assert played.asked == [
        ("worse", {"checkpoint": True, "wait": False, "timeout": 180.0}),
        ("worse", {"lines": None, "follow": False, "detail": True}),
    ]


def test_validate_needs_no_cluster(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("name: p\nsource: {topic: a, schema: 'id INT'}\nsink: {topic: b}\n")
    assert main(["pipelines", "validate", str(file)]) == 0
    assert "no mistake was found in the pipeline p. Checked: " in capsys.readouterr().out
    file.write_text("name: p\nsource: {tpoic: a, schema: 'id INT'}\nsink: {topic: b}\n")
    assert main(["pipelines", "validate", str(file)]) == 1
    assert "did you mean 'topic'?" in capsys.readouterr().err


def test_no_broker_is_one_line(capsys: Capture, tmp_path: Path, monkeypatch: Any) -> None:
    from moldau.cli.support import connecting

    monkeypatch.setattr(connecting, "REACHABLE_SECONDS_MAX", 0.05)
    words = ["--bootstrap-server", "127.0.0.1:1", "--data", str(tmp_path)]
    assert main(["pipelines", *words, "list"]) == 1
    assert "no broker can be reached at 127.0.0.1:1" in capsys.readouterr().err
