"""The loop of the console consumers."""

from __future__ import annotations

import io
import signal
import sys
import threading
from typing import Any

import pytest

from moldau.cli.console.loop import POLL_SECONDS_MAX, RecordLoop
from moldau.cli.support.signals import Signals
from moldau.client.errors import GroupAuthorizationFailedError, WakeupError


@pytest.fixture(autouse=True)
def output(monkeypatch: pytest.MonkeyPatch) -> io.BytesIO:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written))
    return written


class Polls:
    """Answers polls with what it was given; then there is nothing."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.timeouts: list[float] = []

    def __call__(self, timeout: float) -> Any:
        self.timeouts.append(timeout)
        answer = self.answers.pop(0) if self.answers else []
        if isinstance(answer, Exception):
            raise answer
        return answer


def looped(polls: Polls, **limits: int | None) -> tuple[RecordLoop, list[Any]]:
    taken: list[Any] = []
    loop = RecordLoop(
        polls,
        Signals(lambda: None),
        timeout_ms=limits.get("timeout_ms"),
        count_max=limits.get("count_max"),
    )
    loop.run(lambda record, _: taken.append(record))
    return loop, taken


def test_it_ends_after_so_many_and_keeps_the_rest() -> None:
    loop, taken = looped(Polls([1, 2], [3, 4, 5]), count_max=3)
    assert (taken, loop.count, list(loop.waiting)) == ([1, 2, 3], 3, [4, 5])


def test_no_record_at_all_is_wanted() -> None:
    polls = Polls([1])
    assert looped(polls, count_max=0)[1] == []
    assert polls.timeouts == []


def test_it_ends_when_nothing_comes_for_so_long(capsys: pytest.CaptureFixture[str]) -> None:
    polls = Polls([1], [])
    assert looped(polls, timeout_ms=0)[1] == [1]
    assert "no message within 0 ms" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (WakeupError("woken"), ""),
        (
            GroupAuthorizationFailedError("Not authorized"),
            "terminating consumer process: Not authorized\n",
        ),
    ],
)
def test_errors_end_it(error: Exception, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert looped(Polls([1], error))[1] == [1]
    assert told in capsys.readouterr().err


def test_polls_come_back_often_enough_to_see_signals() -> None:
    polls = Polls(WakeupError("end"))
    looped(polls)
    assert polls.timeouts == [POLL_SECONDS_MAX]


def test_a_broken_pipe_ends_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.dup2", lambda *_: None)
    monkeypatch.setattr(sys.stdout, "fileno", lambda: 1, raising=False)

    def take(record: Any, output: Any) -> None:
        raise BrokenPipeError

    loop = RecordLoop(Polls([1, 2]), Signals(lambda: None), timeout_ms=None, count_max=None)
    loop.run(take)
    assert loop.count == 1
    assert "Unable to write to standard out" in capsys.readouterr().err


@pytest.fixture
def woken() -> threading.Event:
    return threading.Event()


def test_signals_wake_and_are_told_as_a_shell_does(woken: threading.Event) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Signals(woken.set) as signals:
        assert signals.exit_code == 0
        signal.raise_signal(signal.SIGTERM)
        assert woken.wait(10)
        assert signals.exit_code == 128 + signal.SIGTERM
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGTERM) is before
