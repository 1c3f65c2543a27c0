"""Metrics with Kafka Streams' names: of the application, of its threads and of its tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from moldau.client.metrics import MetricName, Metrics
from moldau.client.metrics.tables import Row, add_sensors
from moldau.streams.hosts.hosted_task import HostedTask
from moldau.streams.machine.subtopologies import TaskId

THREAD_GROUP: Final = "stream-thread-metrics"
TASK_GROUP: Final = "stream-task-metrics"
CLIENT_GROUP: Final = "stream-metrics"


def _timed(sensor: str, what: str, verb: str) -> tuple[Row, ...]:
    """The rate, the total and the latency of something that a thread does."""
    return (
        (f"{sensor}-latency", "avg", f"{sensor}-latency-avg", f"average time to {verb}, ms"),
        (f"{sensor}-latency", "max", f"{sensor}-latency-max", f"longest time to {verb}, ms"),
        (sensor, "rate", f"{sensor}-rate", f"{what} per second"),
        (sensor, "total", f"{sensor}-total", what),
    )


_THREAD: Final[tuple[Row, ...]] = (
    *_timed("commit", "commits", "commit"),
    *_timed("poll", "polls", "poll"),
    *_timed("process", "processed records", "process a batch of records"),
    *_timed("punctuate", "punctuations", "punctuate"),
    ("poll-records", "avg", "poll-records-avg", "average number of records of a poll"),
    ("poll-records", "max", "poll-records-max", "largest number of records of a poll"),
    ("process-records", "avg", "process-records-avg", "average records per turn of the loop"),
    ("process-records", "max", "process-records-max", "most records per turn of the loop"),
    ("task-created", "rate", "task-created-rate", "tasks created per second"),
    ("task-created", "total", "task-created-total", "tasks created"),
    ("task-closed", "rate", "task-closed-rate", "tasks closed per second"),
    ("task-closed", "total", "task-closed-total", "tasks closed"),
)


#: What a task shows: name, meaning, and how it is read.
_TASK: Final[tuple[tuple[str, str, Callable[[HostedTask], float]], ...]] = (
    ("process-total", "processed records", lambda task: float(task.processed)),
    (
        "dropped-records-total",
        "records that were dropped: late, without a key, or refused by a handler",
        lambda task: float(task.task.dropped),
    ),
    (
        "active-buffer-count",
        "records that are fetched and not processed",
        lambda task: float(len(task.inputs)),
    ),
    (
        "restore-remaining-records-total",
        "offsets of changelogs that are still to be restored",
        lambda task: float(sum(max(0, log.end - log.position) for log in task.logs)),
    ),
)


class ThreadMetrics:
    """What happens in a thread. Nothing here is called per record."""

    def __init__(self, metrics: Metrics, thread_id: str, start_time_ms: int) -> None:
        self._metrics = metrics
        tags = self._tags = {"thread-id": thread_id}
        self._tasks: dict[TaskId, list[MetricName]] = {}
        self._prefix = f"{thread_id}."
        self._sensors = add_sensors(metrics, THREAD_GROUP, _THREAD, prefix=self._prefix, tags=tags)
        self._gauges = [
            metrics.add_gauge(
                "thread-start-time", THREAD_GROUP, "when it started", lambda: start_time_ms, tags
            )
        ]

    def _timed(self, sensor: str, spent_ns: int, count: int) -> None:
        now_ms = self._metrics.now_ms()
        self._sensors[f"{sensor}-latency"].record(spent_ns / 1e6, now_ms)
        self._sensors[sensor].record(count, now_ms)

    def polled(self, spent_ns: int, records: int) -> None:
        self._timed("poll", spent_ns, 1)
        self._sensors["poll-records"].record(records)

    def processed(self, spent_ns: int, records: int) -> None:
        self._timed("process", spent_ns, records)
        self._sensors["process-records"].record(records)

    def punctuated(self, spent_ns: int) -> None:
        self._timed("punctuate", spent_ns, 1)

    def committed(self, spent_ns: int, tasks: int) -> None:
        self._timed("commit", spent_ns, tasks)

    def task_created(self, task: HostedTask) -> None:
        """Count it, and show how it does for as long as it is here."""
        self._sensors["task-created"].record()
        tags = {**self._tags, "task-id": str(task.id)}
        self._tasks[task.id] = [
            self._metrics.add_gauge(name, TASK_GROUP, description, partial(gauge, task), tags)
            for name, description, gauge in _TASK
        ]

    def task_closed(self, task: HostedTask) -> None:
        self._sensors["task-closed"].record()
        for name in self._tasks.pop(task.id, ()):
            self._metrics.remove(name)

    def close(self) -> None:
        """The thread has ended: its metrics go."""
        for name in self._sensors:
            self._metrics.remove_sensor(self._prefix + name)
        for gauge in (*self._gauges, *(name for each in self._tasks.values() for name in each)):
            self._metrics.remove(gauge)


def add_client_metrics(
    metrics: Metrics, facts: Mapping[str, tuple[str, Callable[[], Any]]]
) -> None:
    """The metrics of the application as a whole: name, meaning, and how it is measured."""
    for name, (description, gauge) in facts.items():
        metrics.add_gauge(name, CLIENT_GROUP, description, gauge)
