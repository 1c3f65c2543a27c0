"""How many messages the queries of this server read and write, by topic, as DESCRIBE shows it.

Totals come from samples of the metrics of the queries; a metric that starts again at 0, because its
task moved or its query was started again, goes on from there. Rates are those of the last 30 s.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from moldau.data.java_time.formatter import timestamp_text

__all__ = ["Counted", "Stat", "TopicStatistics", "shown"]

#: Kafka's two samples of 30 s, in one.
_RATE_MS: Final = 30_000
#: Over less time a rate says nothing.
_RATE_MIN_MS: Final = 1_000
_MESSAGES: Final = "consumer-total-messages"
#: The names of totals, and those of their rates.
_RATES: Final = {
    _MESSAGES: "consumer-messages-per-sec",
    "total-messages": "messages-per-sec",
    "consumer-failed-messages": "consumer-failed-messages-per-sec",
}
_ERRORS: Final = ("consumer-failed-messages",)
_TOTALS: Final = (_MESSAGES, "consumer-total-bytes", "total-messages")


class Counted(NamedTuple):
    """What a metric counts: one of ksqlDB's totals, for a topic."""

    total: str
    topic: str


class Stat(NamedTuple):
    name: str
    value: float
    #: When it last grew, in milliseconds since 1970; 0 for never.
    timestamp_ms: int

    def entity(self, host: str) -> dict[str, Any]:
        return {
            "name": self.name,
            "host": host,
            "value": self.value,
            "timestamp": self.timestamp_ms,
        }


@dataclass(slots=True)
class _Counter:
    total: float = 0
    last_ms: int = 0
    #: Totals by the times they were seen at, oldest first.
    samples: deque[tuple[int, float]] = field(default_factory=deque)

    def add(self, amount: float, now_ms: int) -> None:
        if not self.samples:
            self.samples.append((now_ms, self.total))
        if amount:
            self.total += amount
            self.last_ms = now_ms
        self.samples.append((now_ms, self.total))
        while len(self.samples) > 2 and self.samples[1][0] <= now_ms - _RATE_MS:
            self.samples.popleft()

    def rate(self, now_ms: int) -> float:
        """Per second."""
        since = now_ms - _RATE_MS
        start_ms, start = next(
            (each for each in self.samples if each[0] >= since), (since, self.total)
        )
        return (self.total - start) * 1000 / max(_RATE_MIN_MS, now_ms - start_ms)


class TopicStatistics:
    """Of all queries of a server. Times are in milliseconds since 1970."""

    def __init__(self) -> None:
        self._counters: dict[str, dict[str, _Counter]] = defaultdict(dict)
        self._seen: dict[str, dict[Any, float]] = {}

    def take(self, query_id: str, found: Mapping[Any, tuple[Counted, float]], now_ms: int) -> None:
        """What the metrics of a query say now, by their names."""
        before = self._seen.get(query_id, {})
        added: dict[Counted, float] = defaultdict(float)
        for name, (what, value) in found.items():
            last = before.get(name, 0)
            added[what] += value - last if value >= last else value
        self._seen[query_id] = {name: value for name, (_, value) in found.items()}
        for what, amount in added.items():
            self._counter(what).add(amount, now_ms)

    def failed(self, topic: str, now_ms: int) -> None:
        """A message could not be read."""
        self._counter(Counted(_ERRORS[0], topic)).add(1, now_ms)

    def forget(self, query_id: str) -> None:
        """Its metrics are gone; what they have counted stays."""
        self._seen.pop(query_id, None)

    def _counter(self, what: Counted) -> _Counter:
        return self._counters[what.topic].setdefault(what.total, _Counter())

    def stats(self, topic: str, now_ms: int) -> list[Stat]:
        return self._named(topic, _TOTALS, now_ms)

    def errors(self, topic: str, now_ms: int) -> list[Stat]:
        return self._named(topic, _ERRORS, now_ms)

    def _named(self, topic: str, totals: tuple[str, ...], now_ms: int) -> list[Stat]:
        counters = self._counters.get(topic, {})
        found = []
        for name in totals:
            counter = counters.get(name)
            if counter is None:
                continue
            if name in _RATES:
                found.append(Stat(_RATES[name], counter.rate(now_ms), counter.last_ms))
            found.append(Stat(name, counter.total, counter.last_ms))
        return found


def shown(stats: list[Stat], last: str) -> str:
    """As ksqlDB writes them: names and values, then when the first last grew."""
    if not stats:
        return ""
    texts = [
        f"{each.name:>16}:{each.value:10.{0 if each.value == round(each.value) else 2}f}"
        for each in stats
    ]
    at_ms = stats[0].timestamp_ms
    at = timestamp_text(at_ms) + "Z" if at_ms else "n/a"
    return " ".join([*texts, f"{last:>16}: {at:>9}"])
