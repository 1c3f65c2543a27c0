"""Decides about one instance in a worker: when its program runs, is asked to stop, is given up.

Transitions:

| from | event | to | effect |
|---|---|---|---|
| waiting | Tick after the pause | running | Run |
| running | ProgramFailed | waiting, for 1 s, 2 s, ... up to a minute | |
| running | ProgramReturned | ended | End |
| running | stop seen, or another run of the application seen | stopping | AskToStop |
| waiting | the same | ended | End |
| stopping | ProgramReturned, ProgramFailed | ended | End |
| any | WorkerOrphaned | ended | Exit |

Invariants: a program runs at most once at a time; an instance of a run that is over never starts
its program again; a failure of the program does not cost Spark an attempt of its task.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, assert_never

from moldau.peers.machine.backoff import ExponentialBackoff, RandomSource
from moldau.spark.hosting.machine.beats import InstanceState

__all__ = [
    "AskToStop",
    "Effect",
    "End",
    "Event",
    "Exit",
    "InstanceSupervisor",
    "ProgramFailed",
    "ProgramReturned",
    "Run",
    "SignalSeen",
    "Tick",
    "WorkerOrphaned",
]

BACKOFF: Final = ExponentialBackoff(1_000, 60_000)
#: A program that has run for so long has recovered: its next failure counts as the first.
WELL_AFTER_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


@dataclass(frozen=True, slots=True)
class SignalSeen:
    """The run that is wanted now, and whether it is to stop; None if the signal is gone."""

    run: str | None
    stop: bool = False


@dataclass(frozen=True, slots=True)
class ProgramFailed:
    message: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ProgramReturned:
    pass


@dataclass(frozen=True, slots=True)
class WorkerOrphaned:
    """The process that started the worker is gone, so Spark may have started another one."""


Event = Tick | SignalSeen | ProgramFailed | ProgramReturned | WorkerOrphaned


@dataclass(frozen=True, slots=True)
class Run:
    """Call the program."""


@dataclass(frozen=True, slots=True)
class AskToStop:
    """Set the stop signal of the program's context."""


@dataclass(frozen=True, slots=True)
class End:
    """Let the task end."""


@dataclass(frozen=True, slots=True)
class Exit:
    """End the process at once; an open transaction is aborted by its successor."""


Effect = Run | AskToStop | End | Exit


class InstanceSupervisor:
    """See the module."""

    def __init__(self, run: str, random: RandomSource, *, now_ms: int) -> None:
        self._run = run
        self._random = random
        self._retry_at_ms = now_ms
        self.state = InstanceState.WAITING
        self.since_ms = now_ms
        self.failures = 0
        self.error: str | None = None
        self.detail = ""
        self.error_at_ms = 0
        self.restarts = 0

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        match event:
            case Tick():
                return self._on_tick(now_ms)
            case SignalSeen():
                return self._on_signal(event, now_ms)
            case ProgramFailed():
                return self._on_failed(event, now_ms)
            case ProgramReturned():
                return self._end(now_ms)
            case WorkerOrphaned():
                self._enter(InstanceState.ENDED, now_ms)
                return [Exit()]
            case _:
                assert_never(event)

    def _on_tick(self, now_ms: int) -> list[Effect]:
        if self.state is InstanceState.WAITING and now_ms >= self._retry_at_ms:
            self.restarts += 1 if self.error is not None else 0
            self._enter(InstanceState.RUNNING, now_ms)
            return [Run()]
        if self.state is InstanceState.RUNNING and now_ms - self.since_ms >= WELL_AFTER_MS:
            self.failures = 0
        return []

    def _on_signal(self, event: SignalSeen, now_ms: int) -> list[Effect]:
        if event.run == self._run and not event.stop:
            return []
        if self.state is InstanceState.RUNNING:
            self._enter(InstanceState.STOPPING, now_ms)
            return [AskToStop()]
        if self.state is InstanceState.WAITING:
            return self._end(now_ms)
        return []

    def _on_failed(self, event: ProgramFailed, now_ms: int) -> list[Effect]:
        self.error, self.detail, self.error_at_ms = event.message, event.detail, now_ms
        self.failures += 1
        if self.state is not InstanceState.RUNNING:
            return self._end(now_ms)
        self._enter(InstanceState.WAITING, now_ms)
        self._retry_at_ms = now_ms + BACKOFF.delay_ms(self.failures, self._random)
        return []

    def _end(self, now_ms: int) -> list[Effect]:
        self._enter(InstanceState.ENDED, now_ms)
        return [End()]

    def _enter(self, state: InstanceState, now_ms: int) -> None:
        if self.state is not state:
            self.state, self.since_ms = state, now_ms
