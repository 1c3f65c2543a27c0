"""When a part that ended is started again, and the words for it.

Invariants: the pause grows after failures in a row (1 s, 2 s, 4 s, ... at most a minute) and is
short again after the part has run for a minute.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from moldau.peers.machine.backoff import ExponentialBackoff, RandomSource

__all__ = ["Restarts", "ending", "next_try"]

_BACKOFF: Final = ExponentialBackoff(1_000, 60_000)
_WELL_AFTER_MS: Final = 60_000
_SIGKILL: Final = 9


@dataclass(slots=True)
class Restarts:
    """When one part is started again."""

    random: RandomSource
    since_ms: int
    failures: int = 0
    #: None while it runs or is being started.
    at_ms: int | None = None

    def on_started(self, now_ms: int) -> None:
        self.since_ms = now_ms
        self.at_ms = None

    def on_ended(self, now_ms: int, *, ran: bool) -> int:
        """The pause before the next start, which may be shorter than a second."""
        well = ran and now_ms - self.since_ms >= _WELL_AFTER_MS
        self.failures = 1 if well else self.failures + 1
        delay_ms = _BACKOFF.delay_ms(self.failures, self.random)
        self.at_ms = now_ms + delay_ms
        return delay_ms

    def is_due(self, now_ms: int) -> bool:
        if self.at_ms is None or now_ms < self.at_ms:
            return False
        self.at_ms = None
        return True


def ending(code: int) -> str:
    """How a process ended, by its exit code; below 0 it is the signal that ended it."""
    if code == -_SIGKILL:
        return "was killed (SIGKILL: by a user, or because memory ran out)"
    return f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"


def next_try(delay_ms: int) -> str:
    return f"It is started again in {max(1, round(delay_ms / 1000))} s"
