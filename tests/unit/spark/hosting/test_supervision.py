"""What is decided about one instance of a hosted application in its worker."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from moldau.spark.hosting.machine.beats import InstanceState
from moldau.spark.hosting.machine.supervision import (
    AskToStop,
    Effect,
    End,
    Event,
    Exit,
    InstanceSupervisor,
    ProgramFailed,
    ProgramReturned,
    Run,
    SignalSeen,
    Tick,
    WorkerOrphaned,
)

GO, STOP = SignalSeen("r1"), SignalSeen("r1", stop=True)
FAILED = ProgramFailed("no topic")


@pytest.mark.parametrize(
    ("events", "effects", "state"),
    [
        pytest.param([Tick()], [Run()], "running", id="runs at once"),
        pytest.param([Tick(), Tick(), GO], [Run()], "running", id="runs once"),
        pytest.param([Tick(), STOP], [Run(), AskToStop()], "stopping", id="is asked to stop"),
        pytest.param(
            [Tick(), STOP, STOP], [Run(), AskToStop()], "stopping", id="is asked to stop once"
        ),
        pytest.param(
            [Tick(), STOP, ProgramReturned()],
            [Run(), AskToStop(), End()],
            "ended",
            id="ends as asked",
        ),
        pytest.param(
            [Tick(), STOP, FAILED], [Run(), AskToStop(), End()], "ended", id="fails while it stops"
        ),
        pytest.param(
            [Tick(), SignalSeen("r2")],
            [Run(), AskToStop()],
            "stopping",
            id="another run has taken its place",
        ),
        pytest.param(
            [Tick(), SignalSeen(None)], [Run(), AskToStop()], "stopping", id="its files are gone"
        ),
        pytest.param([Tick(), FAILED, Tick()], [Run()], "waiting", id="waits after a failure"),
        pytest.param([Tick(), FAILED, STOP], [Run(), End()], "ended", id="stops while it waits"),
        pytest.param([STOP, Tick()], [End()], "ended", id="is stopped before it began"),
        pytest.param([Tick(), ProgramReturned()], [Run(), End()], "ended", id="comes to its end"),
        pytest.param([Tick(), WorkerOrphaned()], [Run(), Exit()], "ended", id="Spark is gone"),
    ],
)
def test_steps(events: list[Event], effects: list[Effect], state: str) -> None:
    supervisor = InstanceSupervisor("r1", Random(1), now_ms=0)
    found = [effect for event in events for effect in supervisor.step(event, 0)]
    assert (found, supervisor.state) == (effects, InstanceState(state))


def test_failures_in_a_row_are_retried_ever_later_and_forgotten_after_a_minute() -> None:
    supervisor = InstanceSupervisor("r1", Random(1), now_ms=0)
    now_ms, pauses = 0, []
    for _ in range(9):
        while supervisor.step(Tick(), now_ms) != [Run()]:
            now_ms += 100
        pauses.append(now_ms)
        supervisor.step(FAILED, now_ms)
    gaps = [later - earlier for earlier, later in pairwise(pauses)]
    assert gaps[0] <= 1_300
    assert gaps[3] > 4 * gaps[0]
    assert max(gaps) <= 60_000
    assert (supervisor.failures, supervisor.error) == (9, "no topic")
    while supervisor.step(Tick(), now_ms) != [Run()]:
        now_ms += 100
    supervisor.step(Tick(), now_ms + 59_000)
    assert supervisor.failures == 9
    supervisor.step(Tick(), now_ms + 60_000)
    assert supervisor.failures == 0
