"""The whole control loop on a broker, with a server and queries that are only played."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from moldau.pipelines import registry
from moldau.pipelines.control import rounds, shell, workers
from moldau.pipelines.control.folder import ControlFolder
from moldau.pipelines.control.logs import tail
from moldau.pipelines.control.queries import Look
from moldau.pipelines.control.shell import ControlLoop
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.machine.records import (
    Desired,
    PipelineRecord,
    QueryRecord,
    State,
    StatusRecord,
)
from moldau.pipelines.registry import Registry
from moldau.testing import Broker
from support.waiting import eventually


class PlayedServer:
    """Runs from `start` until `die`."""

    url = session_url = "sc://played:1"

    def __init__(self) -> None:
        self.starts = 0
        self.runs = False
        self.broken = False
        self.deaf = False
        self.looks = 0

    @property
    def state(self) -> SimpleNamespace:
        return SimpleNamespace(pid=self.starts, mark="m")

    def alive(self) -> bool:
        """Runs and listens, as far as one can tell."""
        return self.runs and not self.deaf

    def attach(self) -> bool:
        self.looks += 1
        return self.runs

    def answers(self, *, seconds_max: float) -> bool:
        return True

    def tidy(self) -> None:
        if self.deaf:
            raise OSError("the disk is slow")

    def start(self) -> None:
        if self.broken:
            raise PipelineError("no Java here")
        self.starts += 1
        self.runs = True


class PlayedSessions:
    """Spark's side: what runs, by session."""

    def __init__(self, server: PlayedServer) -> None:
        self.server = server
        self.live: dict[str, str] = {}
        self.started: list[str] = []
        self.start_error: Exception | None = None
        self.ended: dict[str, BaseException] = {}
        self.progress: dict[str, Any] | None = None

    def definition(self, record: PipelineRecord) -> None:
        return None

    def start(
        self, record: PipelineRecord, url: str, session_id: str
    ) -> tuple[tuple[QueryRecord, ...], str]:
        if self.start_error is not None:
            raise self.start_error
        assert record.name not in self.live.values(), "it runs already"
        self.live[session_id] = record.name
        self.started.append(session_id)
        return (QueryRecord(record.name, "id", session_id),), "moldau"

    def reattach(
        self, name: str, url: str, session_id: str, queries: Sequence[QueryRecord]
    ) -> bool:
        return self.live.get(session_id) == name

    def look(self, name: str) -> Look:
        if not self.server.runs:
            raise ConnectionError("gone")
        error = self.ended.pop(name, None)
        return Look((error is None,), error, self.progress, "Processing new data")

    def close(self, name: str, url: str, session_id: str, queries: Sequence[QueryRecord]) -> None:
        if not self.server.runs:
            raise ConnectionError("gone")
        self.live.pop(session_id, None)

    def forget(self, name: str) -> None:
        return


class Stage:
    """A loop in a thread, and its users' registry."""

    def __init__(self, folder: Path, bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = ControlFolder(folder)
        self.bootstrap = bootstrap
        self.registry = Registry(bootstrap)
        self.server = PlayedServer()
        self.sessions = PlayedSessions(self.server)
        monkeypatch.setattr(workers, "Sessions", lambda *_: self.sessions)
        for name in ("_ROUND_SECONDS", "_LOOK_SECONDS"):
            monkeypatch.setattr(rounds, name, 0.05)
        monkeypatch.setattr(shell, "_BEAT_SECONDS", 0.05)
        self.name = f"p{time.monotonic_ns()}"
        self.begin()

    def begin(self) -> None:
        self.loop = ControlLoop(self.folder, {"bootstrap.servers": self.bootstrap}, self.server)
        self.thread = threading.Thread(target=self.loop.run)
        self.thread.start()

    def end(self) -> None:
        self.loop.shut_down()
        self.thread.join(30)
        assert not self.thread.is_alive()

    def want(self, desired: Desired, *, anew: bool = False) -> None:
        def change(present: PipelineRecord | None) -> PipelineRecord:
            was = present or PipelineRecord(
                name=self.name,
                definition={"name": self.name},
                desired=desired,
                checkpoint="nowhere",
                deployment=self.folder.deployment,
                generation=0,
                revision=1,
            )
            return replace(
                was, desired=desired, generation=was.generation + 1, revision=was.revision + anew
            )

        self.registry.change(self.name, change)

    def status(self) -> StatusRecord | None:
        return self.registry.read().statuses.get(self.name)

    def wait(self, state: State) -> StatusRecord:
        def there() -> StatusRecord | None:
            status = self.status()
            return status if status is not None and status.state is state else None

        found = eventually(there, what=f"{self.name} is {state}")
        assert found is not None
        return found


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker() as broker:
        yield str(broker.bootstrap_servers)


@pytest.fixture
def stage(tmp_path: Path, bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    made = Stage(tmp_path, bootstrap, monkeypatch)
    yield made
    made.end()
    made.registry.close()


def test_a_pipeline_is_started_watched_stopped_and_removed(stage: Stage) -> None:
    assert not stage.server.runs
    stage.sessions.progress = {"batchId": 3, "sources": []}
    stage.want(Desired.RUNNING)
    status = stage.wait(State.RUNNING)
    assert stage.sessions.live == {status.session_id: stage.name}
    beat = eventually(
        lambda: next(
            (
                one
                for one in [stage.folder.heartbeat()]
                if one is not None and one.statuses().get(stage.name, status).progress
            ),
            None,
        ),
        what="its progress in the heartbeat",
    )
    assert beat is not None
    assert beat.statuses()[stage.name].activity == "working on a batch"
    stage.want(Desired.STOPPED)
    stage.wait(State.STOPPED)
    assert stage.sessions.live == {}
    stage.want(Desired.DELETED)
    eventually(lambda: stage.name not in stage.registry.read().pipelines, what="its end")
    assert stage.status() is None
    eventually(
        lambda: list(tail(stage.folder.logs / f"{stage.name}.log", None)) == [],
        what="the end of its log",
    )


def test_a_failed_query_is_started_again_and_its_error_is_told(stage: Stage) -> None:
    stage.want(Desired.RUNNING)
    first = stage.wait(State.RUNNING)
    stage.sessions.ended[stage.name] = RuntimeError("the disk is full")
    eventually(lambda: len(stage.sessions.started) == 2, what="a second start")
    second = stage.wait(State.RUNNING)
    assert second.session_id != first.session_id
    assert second.attempts == 1
    assert second.last_error is not None
    assert "the disk is full" in second.last_error.message
    logged = "\n".join(tail(stage.folder.logs / f"{stage.name}.log", None))
    assert "ERROR" in logged
    assert "the disk is full" in logged


def test_a_definition_with_a_mistake_waits_for_another(stage: Stage) -> None:
    stage.sessions.start_error = PipelineError("no such column", where="steps.py:3")
    stage.want(Desired.RUNNING)
    failed = stage.wait(State.FAILED)
    assert failed.last_error is not None
    assert str(failed.last_error) == "steps.py:3: no such column"
    stage.sessions.start_error = None
    stage.want(Desired.RUNNING, anew=True)
    assert stage.wait(State.RUNNING).attempts == 0


def test_a_dead_server_is_started_again_and_its_pipelines_too(stage: Stage) -> None:
    stage.want(Desired.RUNNING)
    stage.wait(State.RUNNING)
    stage.sessions.live.clear()
    stage.server.broken = True
    stage.server.runs = False

    def problem() -> str | None:
        beat = stage.folder.heartbeat()
        return None if beat is None else beat.problem

    eventually(lambda: problem() == "no Java here", what="the reason in the heartbeat")
    stage.server.broken = False
    eventually(lambda: stage.server.starts == 2, what="a second server")
    eventually(lambda: len(stage.sessions.started) == 2, what="a second start")
    assert stage.wait(State.RUNNING).attempts == 0


class RemoteError(Exception):
    """As gRPC raises it."""

    def __str__(self) -> str:
        return "<_MultiThreadedRendezvous of RPC that terminated with:\n\tstatus = UNAVAILABLE>"


class RemoteErrorWithDetails(RemoteError):
    def details(self) -> str:
        return "connection refused"


@pytest.mark.parametrize(
    ("error", "logged"),
    [
        (RemoteErrorWithDetails(), "connection refused"),
        # As Spark raises it again.
        (
            RemoteError(),
            "<_MultiThreadedRendezvous of RPC that terminated with: status = UNAVAILABLE>",
        ),
    ],
)
def test_why_a_query_cannot_be_checked_is_logged_in_one_line(
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    logged: str,
) -> None:
    def fail(name: str) -> Look:
        raise error

    monkeypatch.setattr(stage.sessions, "look", fail)
    with caplog.at_level("INFO"):
        stage.want(Desired.RUNNING)
        eventually(lambda: "cannot be checked" in caplog.text, what="the line in the log")
    assert f"cannot be checked: {logged}\n" in caplog.text


def test_a_server_that_is_only_slow_is_not_taken_for_a_dead_one(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its queries run on: started again, they would run twice."""
    stage.want(Desired.RUNNING)
    stage.wait(State.RUNNING)
    monkeypatch.setattr(workers, "_TIDY_EVERY_SECONDS", 0.0)
    stage.server.deaf = True
    seen = stage.server.looks
    eventually(lambda: stage.server.looks > seen + 5, what="some more looks at the server")
    assert len(stage.sessions.started) == 1
    assert stage.server.starts == 1


def test_what_is_wanted_while_another_is_removed_is_not_forgotten(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one's record is first seen together with the removal."""
    stage.want(Desired.STOPPED)
    stage.wait(State.STOPPED)
    removed, stage.name = stage.name, f"next-{stage.name}"
    poll = rounds.Rounds._poll

    def only_to_the_end(self: rounds.Rounds, *, to_the_end: bool = False) -> None:
        if to_the_end:
            poll(self, to_the_end=True)

    def remove_and_want_the_next(name: str) -> None:
        monkeypatch.setattr(rounds.Rounds, "_poll", only_to_the_end)
        stage.want(Desired.RUNNING)

    monkeypatch.setattr(stage.sessions, "forget", remove_and_want_the_next)
    with Registry(stage.bootstrap) as user:
        user.change(removed, lambda was: was and replace(was, desired=Desired.DELETED))
        eventually(lambda: stage.sessions.started, what="a start of the next one")
        assert removed not in user.read().pipelines


def test_a_shutdown_stops_queries_and_the_next_loop_goes_on(stage: Stage) -> None:
    stage.want(Desired.RUNNING)
    stage.wait(State.RUNNING)
    stage.end()
    assert stage.sessions.live == {}
    assert stage.wait(State.STOPPED).queries == ()
    stage.begin()
    stage.wait(State.RUNNING)
    assert len(stage.sessions.started) == 2


def test_pipelines_of_another_deployment_are_left_alone(stage: Stage) -> None:
    other = f"other-{stage.name}"
    stage.registry.change(
        other,
        lambda _: PipelineRecord(
            name=other,
            definition={"name": other},
            desired=Desired.RUNNING,
            checkpoint="nowhere",
            deployment="elsewhere",
            generation=1,
            revision=1,
        ),
    )
    stage.want(Desired.RUNNING)
    stage.wait(State.RUNNING)
    assert list(stage.sessions.live.values()) == [stage.name]
    assert other not in stage.registry.read().statuses


def test_without_a_broker_nothing_is_started_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_STATUS_MS_MAX", 500)
    with Broker() as broker:
        stage = Stage(tmp_path, str(broker.bootstrap_servers), monkeypatch)
        try:
            stage.want(Desired.RUNNING)
            stage.wait(State.RUNNING)
            broker.kill()
            # Its session could not be written down: what failed is not started again blindly.
            stage.sessions.ended[stage.name] = RuntimeError("it broke")
            log = stage.folder.logs / f"{stage.name}.log"
            eventually(
                lambda: any("cannot be written" in line for line in tail(log, None)),
                what="the reason in its log",
            )
            assert len(stage.sessions.started) == 1
            broker.start_nodes()
            eventually(lambda: len(stage.sessions.started) == 2, what="its second start")

            def again() -> bool:
                status = stage.wait(State.RUNNING)
                return status.session_id == stage.sessions.started[-1]

            eventually(again, what="its new session in the registry")
            stage.want(Desired.STOPPED)
            stage.wait(State.STOPPED)
        finally:
            stage.end()
            stage.registry.close()


# What a lost cluster may cost: one status that cannot be written, and the end of the clients.
END_SECONDS_MAX = 12.0


def _seconds_to_end(stage: Stage) -> float:
    started = time.monotonic()
    stage.loop.shut_down()
    stage.thread.join(120)
    assert not stage.thread.is_alive()
    return time.monotonic() - started


@pytest.mark.parametrize("desired", [None, Desired.RUNNING])
def test_a_loop_ends_soon_although_its_cluster_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, desired: Desired | None
) -> None:
    broker = Broker().start()
    stage = Stage(tmp_path, str(broker.bootstrap_servers), monkeypatch)
    if desired is not None:
        stage.want(desired)
        stage.wait(State.RUNNING)
    stage.registry.close()
    broker.stop()
    assert _seconds_to_end(stage) < END_SECONDS_MAX
    assert stage.sessions.live == {}


def test_a_loop_that_waits_for_its_cluster_ends_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = Broker().start()
    stage = Stage(tmp_path, str(broker.bootstrap_servers), monkeypatch)
    stage.registry.close()
    stage.end()
    broker.stop()
    asks, make_topic = threading.Event(), Registry._make_topic

    def ask(self: Registry) -> None:
        asks.set()
        make_topic(self)

    monkeypatch.setattr(Registry, "_make_topic", ask)
    stage.begin()
    assert asks.wait(30)
    assert _seconds_to_end(stage) < END_SECONDS_MAX
