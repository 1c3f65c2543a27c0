"""What the control loop sees of pipelines that run without Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from moldau.pipelines.control.tasks import Tasks
from moldau.pipelines.machine.records import State, StatusRecord
from moldau.pipelines.tasks import host
from moldau.spark.hosting.machine.application import HostedApplication
from moldau.spark.hosting.machine.beats import InstanceBeat, InstanceState
from moldau.spark.hosting.places import ApplicationPlaces

STATUS = StatusRecord(name="small", state=State.RUNNING, session_id="run-1", engine="task")
BEAT = InstanceBeat(
    instance=0, run="run-1", pid=1, mark="", state=InstanceState.RUNNING, at_ms=0, since_ms=0
)


class Stage:
    def __init__(self, folder: Path) -> None:
        self.now_s = 0.0
        self.tasks = Tasks(folder, {}, clock=lambda: self.now_s)
        self.places = ApplicationPlaces(folder / "small")
        application = HostedApplication(name="small", program="m:f", instances=1, settings={})
        self.places.write_application(application)
        self.places.signal("run-1", stop=False)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr(host, "ensure_running", lambda folder: None)
    return Stage(tmp_path)


def test_a_run_that_says_nothing_is_not_shown_as_plainly_running(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def seen(now_s: float) -> str | None:
        stage.now_s = now_s
        summary = stage.tasks.look(STATUS).summary
        assert summary is not None
        assert bool(summary.failures) is (summary.error is not None)
        return summary.error

    assert seen(0.0) is None
    assert seen(29.0) is None
    assert "has reported nothing for 31 s; see " in (seen(31.0) or "")
    monkeypatch.setattr("time.time", lambda: 100.0)
    stage.places.beat(replace(BEAT, at_ms=99_000))
    assert seen(32.0) is None
    monkeypatch.setattr("time.time", lambda: 140.0)
    assert seen(72.0) is None
    assert "has reported nothing for 30 s" in (seen(102.0) or "")


def test_files_that_cannot_be_read_are_written_again_by_another_start(stage: Stage) -> None:
    (stage.places.folder / "application.json").write_text("")
    look = stage.tasks.look(STATUS)
    assert look.active == (False,)
    assert "cannot be read" in str(look.error)


@pytest.mark.parametrize(
    ("run", "stop", "goes_on"),
    [("run-1", False, True), ("run-1", True, False), ("x", False, False)],
)
def test_a_run_goes_on_unless_it_was_asked_to_stop(
    stage: Stage, run: str, stop: bool, goes_on: bool
) -> None:
    stage.places.signal(run, stop=stop)
    assert stage.tasks.goes_on(STATUS) is goes_on
