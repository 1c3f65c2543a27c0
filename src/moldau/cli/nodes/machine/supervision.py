"""What `moldau start --spark` decides while it runs: what to start again and when, what to report.

| part | restarted by | if it ends in order |
|---|---|---|
| broker | this command | somebody stopped it, so everything ends |
| control loop | this command | `moldau spark stop` was run, so it stays down |
| Spark | the control loop | the same |

Invariants: a part that ended without being asked is started again for as long as the command runs,
ever later after failures in a row (1 s, 2 s, 4 s, ... at most a minute), soon again after it has
run for a minute. Each change of a part is reported once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from moldau.cli.support.machine.restarts import Restarts, ending, next_try
from moldau.peers.machine.backoff import RandomSource

__all__ = [
    "BrokerEnded",
    "BrokerReady",
    "Effect",
    "End",
    "Event",
    "LoopFailed",
    "Say",
    "Seen",
    "StartBroker",
    "StartLoop",
    "Supervisor",
]


@dataclass(frozen=True, slots=True)
class BrokerReady:
    pass


@dataclass(frozen=True, slots=True)
class BrokerEnded:
    """Its exit code; below 0 the signal that ended it."""

    code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The processes of the control loop and of Spark, None where there is none.

    `wanted` is False after `moldau spark stop`.
    """

    loop: int | None
    spark: int | None
    wanted: bool


@dataclass(frozen=True, slots=True)
class LoopFailed:
    """The control loop could not be started."""

    reason: str


Event = BrokerReady | BrokerEnded | Seen | LoopFailed


@dataclass(frozen=True, slots=True)
class Say:
    """One line for the user."""

    text: str


@dataclass(frozen=True, slots=True)
class StartBroker:
    pass


@dataclass(frozen=True, slots=True)
class StartLoop:
    pass


@dataclass(frozen=True, slots=True)
class End:
    """Stop all that is left."""


Effect = Say | StartBroker | StartLoop | End


class Supervisor:
    """The state of a deployment whose parts have all been up once."""

    def __init__(self, random: RandomSource, seen: Seen, *, now_ms: int) -> None:
        self._broker_ready = True
        self._broker = Restarts(random, now_ms)
        self._loop = Restarts(random, now_ms)
        self._seen = seen

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        match event:
            case BrokerReady():
                return self._on_broker_ready(now_ms)
            case BrokerEnded(code):
                return self._on_broker_ended(code, now_ms)
            case Seen():
                return self._on_seen(event, now_ms)
            case LoopFailed(reason):
                delay_ms = self._loop.on_ended(now_ms, ran=False)
                return [Say(f"The control loop cannot be started: {reason}. {next_try(delay_ms)}.")]
            case _:
                assert_never(event)

    def _on_broker_ready(self, now_ms: int) -> list[Effect]:
        self._broker.on_started(now_ms)
        self._broker_ready = True
        return [Say("The broker is up again; pipelines continue.")]

    def _on_broker_ended(self, code: int, now_ms: int) -> list[Effect]:
        if code == 0 and self._broker_ready:
            return [Say("The broker was stopped, so Spark and all pipelines stop, too."), End()]
        delay_ms = self._broker.on_ended(now_ms, ran=self._broker_ready)
        self._broker_ready = False
        return [Say(f"The broker {ending(code)}. {next_try(delay_ms)}.")]

    def _on_seen(self, seen: Seen, now_ms: int) -> list[Effect]:
        before, self._seen = self._seen, seen
        effects: list[Effect] = []
        if before.wanted and not seen.wanted and seen.loop is None:
            effects.append(
                Say(
                    "Spark and all pipelines were stopped by `moldau spark stop`; "
                    "`moldau spark start` starts them again."
                )
            )
        elif not seen.wanted and seen.loop is None:
            pass
        else:
            if not seen.wanted:
                # It is about to stop: that is reported when it has.
                self._seen = Seen(loop=seen.loop, spark=seen.spark, wanted=before.wanted)
            effects += self._loop_changes(before, seen, now_ms)
            effects += _spark_changes(before, seen)
        if not seen.wanted:
            self._loop.at_ms = None
        if self._loop.is_due(now_ms):
            effects.append(StartLoop())
        if self._broker.is_due(now_ms):
            effects.append(StartBroker())
        return effects

    def _loop_changes(self, before: Seen, seen: Seen, now_ms: int) -> list[Effect]:
        if seen.loop == before.loop:
            return []
        if seen.loop is None:
            if not seen.wanted:
                return []
            delay_ms = self._loop.on_ended(now_ms, ran=True)
            return [
                Say(
                    f"The control loop (process {before.loop}) has ended unexpectedly; pipelines "
                    f"continue without it. {next_try(delay_ms)}."
                )
            ]
        self._loop.on_started(now_ms)
        return [Say(f"The control loop is up again (process {seen.loop}).")]


def _spark_changes(before: Seen, seen: Seen) -> list[Effect]:
    if seen.spark == before.spark or not seen.wanted:
        return []
    if seen.spark is None:
        return [
            Say(
                f"Spark (process {before.spark}) has ended unexpectedly; the control loop starts "
                "it again, and all pipelines from their checkpoints."
            )
        ]
    return [Say(f"Spark is up again (process {seen.spark}); pipelines continue.")]
