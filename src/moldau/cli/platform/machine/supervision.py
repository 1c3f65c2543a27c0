"""What `moldau up` decides while it runs: which service to start when, and what to report.

| state | becomes | when |
|---|---|---|
| waiting | starting | all that it needs are up |
| starting | up | it answers |
| up | failing | it has not answered a few times in a row |
| failing | up | it answers again |
| any with a process | ended | its process ended |
| ended | starting | its pause is over, and all that it needs are up |

Invariants: every process that ends is started again, ever later after failures in a row
(`cli/support/machine/restarts.py`). Each change of a service is reported once. A service that does
not answer is reported, not killed: a busy machine would else lose what it works on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, assert_never

from moldau.cli.platform.machine.plan import Service
from moldau.cli.support.machine.restarts import Restarts, ending, next_try
from moldau.peers.machine.backoff import RandomSource

__all__ = [
    "Effect",
    "Ended",
    "Event",
    "Probed",
    "Say",
    "Start",
    "Started",
    "State",
    "Status",
    "Supervisor",
    "Tick",
]

_PROBES_MAX: Final = 3
_SLOW_AFTER_MS: Final = 30_000


class State(StrEnum):
    WAITING = "waiting"
    STARTING = "starting"
    UP = "up"
    FAILING = "failing"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Started:
    """A service's process runs."""

    name: str
    pid: int


@dataclass(frozen=True, slots=True)
class Ended:
    """Its exit code, below 0 the signal that ended it, and the last line that it logged."""

    name: str
    code: int
    last_line: str = ""


@dataclass(frozen=True, slots=True)
class Probed:
    """Whether it answers; `problem` is None if it does.

    `pid` is the process that ran when the probe began: the answer of an earlier one says nothing.
    """

    name: str
    pid: int
    problem: str | None


@dataclass(frozen=True, slots=True)
class Tick:
    pass


Event = Started | Ended | Probed | Tick


@dataclass(frozen=True, slots=True)
class Say:
    """One line for the user."""

    text: str


@dataclass(frozen=True, slots=True)
class Start:
    name: str


Effect = Say | Start


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What is known of a service."""

    name: str
    title: str
    address: str
    state: State
    pid: int | None
    #: Since when it is in this state.
    since_ms: int
    restarts: int
    problem: str | None
    #: When it is started again.
    next_ms: int | None


@dataclass(slots=True)
class _Part:
    service: Service
    restarts: Restarts
    since_ms: int
    state: State = State.WAITING
    pid: int | None = None
    started_ms: int = 0
    restarted: int = 0
    failed_probes: int = 0
    problem: str | None = None
    is_slow: bool = False

    def become(self, state: State, now_ms: int) -> None:
        self.state = state
        self.since_ms = now_ms


class Supervisor:
    """The state of all services of a platform."""

    def __init__(self, services: Sequence[Service], random: RandomSource, *, now_ms: int) -> None:
        self._parts = {
            service.name: _Part(service, Restarts(random, now_ms), now_ms) for service in services
        }

    def statuses(self) -> list[Status]:
        return [
            Status(
                name=part.service.name,
                title=part.service.title,
                address=part.service.address,
                state=part.state,
                pid=part.pid,
                since_ms=part.since_ms,
                restarts=part.restarted,
                problem=part.problem,
                next_ms=part.restarts.at_ms,
            )
            for part in self._parts.values()
        ]

    @property
    def all_up(self) -> bool:
        return all(part.state is State.UP for part in self._parts.values())

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        match event:
            case Started(name, pid):
                return self._on_started(self._parts[name], pid, now_ms)
            case Ended():
                return self._on_ended(self._parts[event.name], event, now_ms)
            case Probed():
                return self._on_probed(self._parts[event.name], event, now_ms)
            case Tick():
                return self._on_tick(now_ms)
            case _:
                assert_never(event)

    def _on_started(self, part: _Part, pid: int, now_ms: int) -> list[Effect]:
        part.pid = pid
        part.started_ms = now_ms
        part.failed_probes = 0
        part.is_slow = False
        part.restarts.on_started(now_ms)
        part.become(State.STARTING, now_ms)
        return []

    def _on_ended(self, part: _Part, event: Ended, now_ms: int) -> list[Effect]:
        ran = part.state in (State.UP, State.FAILING)
        delay_ms = part.restarts.on_ended(now_ms, ran=ran)
        part.pid = None
        part.restarted += 1
        part.problem = event.last_line or f"it {ending(event.code)}"
        part.become(State.ENDED, now_ms)
        said = f": {event.last_line}" if event.last_line and event.code > 0 else ""
        return [Say(f"{part.service.title} {ending(event.code)}{said}. {next_try(delay_ms)}.")]

    def _on_probed(self, part: _Part, event: Probed, now_ms: int) -> list[Effect]:
        if part.pid != event.pid:
            return []
        if event.problem is None:
            return self._on_answer(part, now_ms)
        part.failed_probes += 1
        title = part.service.title
        if part.state is State.STARTING:
            if part.is_slow or now_ms - part.started_ms < _SLOW_AFTER_MS:
                return []
            part.is_slow = True
            part.problem = event.problem
            return [
                Say(
                    f"{title} has not answered for {_SLOW_AFTER_MS // 1000} s since its start: "
                    f"{event.problem}. `moldau logs {part.service.name}` shows its log."
                )
            ]
        if part.state is State.UP and part.failed_probes >= _PROBES_MAX:
            part.problem = event.problem
            part.become(State.FAILING, now_ms)
            return [Say(f"{title} does not answer: {event.problem}.")]
        return []

    def _on_answer(self, part: _Part, now_ms: int) -> list[Effect]:
        part.failed_probes = 0
        part.problem = None
        was = part.state
        if was is State.UP:
            return []
        part.become(State.UP, now_ms)
        service = part.service
        if was is State.FAILING:
            return [Say(f"{service.title} answers again.")]
        again = " again" if part.restarted else ""
        took = (now_ms - part.started_ms) / 1000
        return [
            Say(f"{service.title} is up{again} on {service.address} after {took:.1f} s."),
            # What waited for it can start.
            *self._on_tick(now_ms),
        ]

    def _on_tick(self, now_ms: int) -> list[Effect]:
        effects: list[Effect] = []
        for part in self._parts.values():
            if not all(self._is_up(need) for need in part.service.needs):
                continue
            if part.state is State.WAITING:
                part.become(State.STARTING, now_ms)
                effects.append(Start(part.service.name))
            elif part.state is State.ENDED and part.restarts.is_due(now_ms):
                effects.append(Start(part.service.name))
        return effects

    def _is_up(self, name: str) -> bool:
        return self._parts[name].state in (State.UP, State.FAILING)
