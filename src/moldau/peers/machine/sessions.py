"""When a client logs in again before its session ends."""

from __future__ import annotations

from typing import Final

from moldau.peers.machine.backoff import RandomSource

__all__ = ["due_after_ms"]

#: As Kafka's clients: not all at once, and early enough for a slow login.
PERCENT_MIN: Final = 85
PERCENT_MAX: Final = 95


def due_after_ms(lifetime_ms: int, random: RandomSource) -> int:
    """How much of a session's lifetime is used."""
    percent = PERCENT_MIN + random.randrange(PERCENT_MAX - PERCENT_MIN + 1)
    return lifetime_ms * percent // 100
