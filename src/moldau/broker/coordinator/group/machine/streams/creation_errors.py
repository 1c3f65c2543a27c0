"""Why internal topics could not be created, for the responses to the next heartbeats.

Invariants: at most `ERRORS_MAX` are stored, none longer than its interval.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from moldau.broker.coordinator.machine.wall_intervals import is_within
from moldau.times import WallMs

ERRORS_MAX = 1_000
_SHOWN_MAX = 3


class _Error(NamedTuple):
    message: str
    since_ms: WallMs
    keep_ms: int

    @property
    def expires_at_ms(self) -> int:
        return self.since_ms + self.keep_ms


class CreationErrors:
    def __init__(self) -> None:
        self._errors: dict[str, _Error] = {}

    def note(self, topic: str, message: str, now_ms: WallMs, *, keep_ms: int) -> None:
        self._errors.pop(topic, None)
        self._errors[topic] = _Error(message, now_ms, keep_ms)
        if len(self._errors) > ERRORS_MAX:
            del self._errors[min(self._errors, key=lambda each: self._errors[each].expires_at_ms)]

    def of(self, topics: Iterable[str], now_ms: WallMs) -> dict[str, str]:
        """The errors of the topics; creation of these should not be retried yet."""
        found = {}
        for topic in topics:
            error = self._errors.get(topic)
            if error is None:
                continue
            if is_within(since_ms=error.since_ms, interval_ms=error.keep_ms, now_ms=now_ms):
                found[topic] = error.message
            else:
                del self._errors[topic]
        return found


def shown(errors: dict[str, str]) -> str:
    listed = ", ".join(
        f"{topic} ({message})" for topic, message in list(errors.items())[:_SHOWN_MAX]
    )
    more = len(errors) - _SHOWN_MAX
    return f"{listed} and {more} more" if more > 0 else listed
