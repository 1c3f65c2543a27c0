"""What is decided about hosted applications, and about pipelines that run without Spark."""

from __future__ import annotations

from random import Random

from moldau.pipelines.control.machine import events
from moldau.pipelines.control.machine.decisions import Reconciler
from moldau.pipelines.machine.records import Desired, ErrorRecord, State, StatusRecord

FAILURE = ErrorRecord(message="instance 1: no topic")


def reconciler(**remembered: StatusRecord) -> Reconciler:
    return Reconciler(Random(1), lambda: "session", remembered=remembered)


def specs(**given: events.Spec) -> events.SpecsRead:
    return events.SpecsRead(given)


RUNNING = events.Spec(Desired.RUNNING, 1)
TASK = events.Spec(Desired.RUNNING, 1, engine="task")


def test_a_failing_instance_makes_its_application_failing_until_it_is_well() -> None:
    made = reconciler()
    made.step(events.ServerSeen("s"), 0)
    made.step(specs(app=RUNNING), 0)
    made.step(events.Started("app", ()), 0)
    assert made.step(events.InstancesSeen("app", 2, FAILURE), 0) == [events.Report("app")]
    # Time alone does not make it well.
    made.step(events.Tick(), 600_000)
    status = made.status("app")
    assert status is not None
    assert (status.state, status.attempts, status.last_error) == (State.RUNNING, 2, FAILURE)
    assert made.step(events.InstancesSeen("app", 0, None), 600_000) == [events.Report("app")]
    status = made.status("app")
    assert status is not None
    assert status.attempts == 0


def test_instances_that_were_started_again_are_counted_once() -> None:
    made = reconciler()
    made.step(events.ServerSeen("s"), 0)
    made.step(specs(app=RUNNING), 0)
    made.step(events.Started("app", ()), 0)
    for restarts, reported in ((0, False), (1, True), (1, False), (3, True)):
        effects = made.step(events.InstancesSeen("app", 0, None, restarts), 0)
        assert effects == ([events.Report("app")] if reported else [])
    status = made.status("app")
    assert status is not None
    assert status.restarts == 3
    # The next control loop finds a run of which these are counted already.
    after = reconciler(app=status)
    after.step(events.ServerSeen("s"), 0)
    after.step(specs(app=RUNNING), 0)
    after.step(events.Reattached("app", True), 0)
    after.step(events.InstancesSeen("app", 0, None, 3), 0)
    after.step(events.InstancesSeen("app", 0, None, 4), 0)
    status = after.status("app")
    assert status is not None
    assert (status.state, status.restarts) == (State.RUNNING, 4)


def test_a_task_starts_without_a_server_and_none_is_started_for_it() -> None:
    made = reconciler()
    made.step(events.ServerSeen(None), 0)
    effects = made.step(specs(small=TASK), 0)
    assert effects == [events.Report("small"), events.Start("small", 1, "", "session")]
    made.step(events.Started("small", ()), 0)
    # A server that comes and goes does not concern it.
    assert made.step(events.ServerSeen("s"), 1_000) == []
    effects = made.step(events.ServerSeen(None), 2_000)
    assert events.Report("small") not in effects
    status = made.status("small")
    assert status is not None
    assert (status.state, status.engine) == (State.RUNNING, "task")


def test_a_task_is_taken_over_from_an_earlier_loop() -> None:
    status = StatusRecord(
        name="small", state=State.RUNNING, revision=1, session_id="r", engine="task"
    )
    made = reconciler(small=status)
    # It is looked for although no server has its session.
    assert made.step(events.ServerSeen("s"), 0) == [events.Reattach("small")]
    made.step(specs(small=TASK), 0)
    made.step(events.Reattached("small", found=True), 0)
    assert made.running() == ["small"]


def test_a_task_that_is_handed_over_stops_before_spark_starts_it() -> None:
    made = reconciler()
    made.step(events.ServerSeen("s"), 0)
    made.step(specs(small=TASK), 0)
    made.step(events.Started("small", ()), 0)
    effects = made.step(specs(small=events.Spec(Desired.RUNNING, 2)), 0)
    assert effects == [events.Report("small"), events.Stop("small")]
    effects = made.step(events.Stopped("small"), 0)
    assert effects[-1] == events.Start("small", 2, "s", "session")
    status = made.status("small")
    assert status is not None
    assert status.engine is None


def test_workers_that_are_killed_again_and_again_do_not_make_an_application_wait() -> None:
    """Spark gives it up every time; its instances ran, so the next start is tried soon."""
    made = reconciler()
    made.step(events.ServerSeen("s"), 0)
    made.step(specs(app=RUNNING), 0)
    now_ms = 0
    for _ in range(8):
        made.step(events.Started("app", ()), now_ms)
        now_ms += 12_000
        made.step(events.InstancesSeen("app", 0, None, all_run=True), now_ms)
        made.step(events.Tick(), now_ms)
        made.step(events.Ended("app", FAILURE), now_ms)
        made.step(events.Stopped("app"), now_ms)
        status = made.status("app")
        assert status is not None
        assert status.state is State.RESTARTING
        assert (status.retry_at_ms or 0) - now_ms < 2_000
        now_ms = status.retry_at_ms or now_ms
        made.step(events.Tick(), now_ms)


def test_an_application_that_never_runs_waits_ever_longer() -> None:
    made = reconciler()
    made.step(events.ServerSeen("s"), 0)
    made.step(specs(app=RUNNING), 0)
    now_ms = waited_ms = 0
    for _ in range(8):
        made.step(events.Started("app", ()), now_ms)
        now_ms += 12_000
        made.step(events.InstancesSeen("app", 0, None, all_run=False), now_ms)
        made.step(events.Tick(), now_ms)
        made.step(events.Ended("app", FAILURE), now_ms)
        made.step(events.Stopped("app"), now_ms)
        status = made.status("app")
        assert status is not None
        waited_ms = (status.retry_at_ms or 0) - now_ms
        now_ms = status.retry_at_ms or now_ms
        made.step(events.Tick(), now_ms)
    assert waited_ms > 30_000
