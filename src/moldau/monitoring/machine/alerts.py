"""Which alerts fire: once when a condition has held for long enough, once when it is over.

Invariants: an alert that fires is announced exactly once, and exactly once as resolved; a condition
that comes and goes within its time is not announced at all. At most `ALERTS_MAX` are remembered.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["Alerts", "Condition", "Notice"]

ALERTS_MAX: Final = 10_000


class Condition(NamedTuple):
    """Something that is wrong now. `labels` distinguish its instances."""

    name: str
    severity: str
    summary: str
    labels: tuple[tuple[str, str], ...] = ()
    runbook: str = ""


class Notice(NamedTuple):
    """What is sent."""

    status: str
    """firing or resolved."""
    condition: Condition
    since_s: float
    at_s: float


class _Seen:
    __slots__ = ("condition", "fired", "since_s")

    def __init__(self, condition: Condition, since_s: float) -> None:
        self.condition = condition
        self.since_s = since_s
        self.fired = False


class Alerts:
    def __init__(self, *, holds_s: float = 0.0) -> None:
        """A condition fires when it has held for `holds_s`."""
        self._holds_s = holds_s
        self._seen: dict[tuple[str, tuple[tuple[str, str], ...]], _Seen] = {}

    def observe(self, conditions: list[Condition], now_s: float) -> list[Notice]:
        """All conditions that hold now; what is to be announced."""
        notices: list[Notice] = []
        present = {(each.name, each.labels): each for each in conditions}
        for key, condition in present.items():
            seen = self._seen.get(key)
            if seen is None:
                if len(self._seen) >= ALERTS_MAX:
                    continue
                seen = self._seen[key] = _Seen(condition, now_s)
            seen.condition = condition
            if not seen.fired and now_s - seen.since_s >= self._holds_s:
                seen.fired = True
                notices.append(Notice("firing", condition, seen.since_s, now_s))
        for key in self._seen.keys() - present.keys():
            seen = self._seen.pop(key)
            if seen.fired:
                notices.append(Notice("resolved", seen.condition, seen.since_s, now_s))
        return notices

    @property
    def firing(self) -> list[Condition]:
        return [each.condition for each in self._seen.values() if each.fired]
