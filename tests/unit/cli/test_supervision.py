"""What `moldau start --spark` does when one of its parts ends."""

from __future__ import annotations

import random

import pytest

from moldau.cli.nodes.machine.supervision import (
    BrokerEnded,
    BrokerReady,
    Effect,
    End,
    Event,
    LoopFailed,
    Say,
    Seen,
    StartBroker,
    StartLoop,
    Supervisor,
)


class NoJitter(random.Random):
    def randrange(self, *_: int) -> int:  # type: ignore[override]
        return 20


UP = Seen(loop=7, spark=8, wanted=True)


def supervisor() -> Supervisor:
    return Supervisor(NoJitter(), UP, now_ms=0)


def said(effects: list[Effect]) -> str:
    return "\n".join(effect.text for effect in effects if isinstance(effect, Say))


def acts(effects: list[Effect]) -> list[Effect]:
    return [effect for effect in effects if not isinstance(effect, Say)]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (-9, "was killed (SIGKILL"),
        (-15, "was ended by signal 15"),
        (1, "ended with exit code 1"),
    ],
)
def test_a_broker_that_ends_is_started_again(code: int, words: str) -> None:
    made = supervisor()
    shown = said(made.step(BrokerEnded(code), 5_000))
    assert words in shown
    assert "started again in 1 s" in shown
    assert made.step(UP, 5_900) == []
    assert made.step(UP, 6_000) == [StartBroker()]
    assert made.step(UP, 60_000) == []
    assert "up again; pipelines continue" in said(made.step(BrokerReady(), 61_000))


def test_a_broker_that_was_stopped_ends_all() -> None:
    effects = supervisor().step(BrokerEnded(0), 5_000)
    assert "The broker was stopped" in said(effects)
    assert acts(effects) == [End()]


def test_failures_in_a_row_are_retried_ever_later_and_for_ever() -> None:
    made = supervisor()
    now_ms, pauses = 0, []
    for _ in range(20):
        made.step(BrokerEnded(1), now_ms)
        began = now_ms
        while made.step(UP, now_ms) != [StartBroker()]:
            now_ms += 100
        pauses.append((now_ms - began) // 1_000)
    assert pauses == [1, 2, 4, 8, 16, 32, *[60] * 14]
    made.step(BrokerReady(), now_ms)
    assert "in 1 s" in said(made.step(BrokerEnded(-9), now_ms + 60_000))


def test_a_loop_that_ends_is_started_again() -> None:
    made = supervisor()
    gone = Seen(loop=None, spark=8, wanted=True)
    shown = said(made.step(gone, 1_000))
    assert "control loop (process 7) has ended unexpectedly; pipelines continue" in shown
    assert made.step(gone, 1_500) == []
    assert made.step(gone, 2_000) == [StartLoop()]
    assert "cannot be started: no room. It is started again in 2 s" in said(
        made.step(LoopFailed("no room"), 3_000)
    )
    assert made.step(gone, 5_000) == [StartLoop()]
    assert "up again (process 9)" in said(made.step(Seen(loop=9, spark=8, wanted=True), 6_000))


def test_spark_that_ends_is_reported_and_left_to_the_loop() -> None:
    made = supervisor()
    effects = made.step(Seen(loop=7, spark=None, wanted=True), 1_000)
    assert "Spark (process 8) has ended unexpectedly" in said(effects)
    assert acts(effects) == []
    assert made.step(Seen(loop=7, spark=None, wanted=True), 90_000) == []
    assert "Spark is up again (process 9)" in said(
        made.step(Seen(loop=7, spark=9, wanted=True), 91_000)
    )


@pytest.mark.parametrize(
    "stopping",
    [
        pytest.param([], id="all at once"),
        pytest.param([Seen(loop=7, spark=8, wanted=False)], id="first it is asked"),
        pytest.param(
            [Seen(loop=7, spark=8, wanted=False), Seen(loop=None, spark=8, wanted=False)],
            id="one after the other",
        ),
    ],
)
def test_what_was_stopped_stays_down(stopping: list[Event]) -> None:
    made = supervisor()
    stopped = Seen(loop=None, spark=None, wanted=False)
    effects: list[Effect] = []
    for now_ms, event in enumerate([*stopping, stopped, stopped, stopped]):
        effects += made.step(event, now_ms * 60_000)
    assert acts(effects) == []
    assert len(effects) == 1
    assert "by `moldau spark stop`" in said(effects)
    started = made.step(UP, 900_000)
    assert "The control loop is up again" in said(started)
