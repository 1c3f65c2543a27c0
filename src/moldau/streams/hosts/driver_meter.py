"""What a `TopologyTestDriver` notes of each record, for its metrics."""

from __future__ import annotations

from dataclasses import dataclass, field

from moldau.streams.hosts.metering import TaskMeter
from moldau.streams.records import Produced


@dataclass(slots=True)
class Processed:
    """What was processed since somebody asked."""

    count: int = 0
    spent_ns: int = 0
    age_total: int = 0
    age_min: int = 0
    age_max: int = 0
    lateness_total: int = 0
    topics: set[str] = field(default_factory=set)
    punctuations: list[int] = field(default_factory=list)


class DriverMeter:
    """See the module. `tasks` is the meter of the driver's task."""

    def __init__(self, tasks: TaskMeter) -> None:
        self.tasks = tasks
        self._since = Processed()

    def consumed(self, record: Produced, spent_ns: int, wall_clock_ms: int, latest_ms: int) -> None:
        """A record was processed; `latest_ms` is the stream time after it."""
        _add(self.tasks.consumed, record)
        age, since = wall_clock_ms - record.timestamp, self._since
        since.age_min = min(since.age_min, age) if since.count else age
        since.age_max = max(since.age_max, age) if since.count else age
        since.count += 1
        since.spent_ns += spent_ns
        since.age_total += age
        since.lateness_total += max(0, latest_ms - record.timestamp)
        since.topics.add(record.topic)

    def produced(self, record: Produced) -> None:
        _add(self.tasks.produced, record)

    def punctuated(self, spent_ns: int) -> None:
        """The wall clock was moved, and something was called."""
        self._since.punctuations.append(spent_ns)

    def take(self) -> Processed:
        taken, self._since = self._since, Processed()
        return taken


def _add(counts: dict[str, list[int]], record: Produced) -> None:
    both = counts.setdefault(record.topic, [0, 0])
    both[0] += 1
    both[1] += len(record.value or b"") + len(record.key or b"")
