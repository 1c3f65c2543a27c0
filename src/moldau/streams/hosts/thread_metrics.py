"""Metrics with Kafka Streams' names, of the application and its threads."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence, Sized
from typing import Any, Final, Protocol

from moldau.client.metrics import MetricName, Metrics
from moldau.client.metrics.registry import Sensor
from moldau.client.metrics.tables import Row, add_sensors
from moldau.streams.hosts.hosted_task import HostedTask
from moldau.streams.hosts.own_metrics import OwnMetrics
from moldau.streams.hosts.task_metrics import TaskMetrics
from moldau.streams.machine.subtopologies import TaskId

THREAD_GROUP: Final = "stream-thread-metrics"
CLIENT_GROUP: Final = "stream-metrics"
UPDATER_GROUP: Final = "stream-state-updater-metrics"
#: What a thread's time goes into.
_SHARES: Final = ("poll", "process", "punctuate", "commit")
#: What the time for stores goes into: in Kafka Streams it is that of a thread of its own.
_UPDATER_SHARES: Final = ("active-restore", "standby-update", "checkpoint")
#: How often the shares are looked at.
_SHARE_NS: Final = 1_000_000_000


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
    *((f"{name}-ratio", "value", f"{name}-ratio", f"share of time: {name}") for name in _SHARES),
    ("poll-records", "avg", "poll-records-avg", "average number of records of a poll"),
    ("poll-records", "max", "poll-records-max", "largest number of records of a poll"),
    ("process-records", "avg", "process-records-avg", "average records per turn of the loop"),
    ("process-records", "max", "process-records-max", "most records per turn of the loop"),
    ("task-created", "rate", "task-created-rate", "tasks created per second"),
    ("task-created", "total", "task-created-total", "tasks created"),
    ("task-closed", "rate", "task-closed-rate", "tasks closed per second"),
    ("task-closed", "total", "task-closed-total", "tasks closed"),
)

_UPDATER: Final[tuple[Row, ...]] = (
    *((f"{name}-ratio", "value", f"{name}-ratio", f"share: {name}") for name in _UPDATER_SHARES),
    ("idle-ratio", "value", "idle-ratio", "share of time without any of these"),
    ("restore-records", "rate", "restore-records-rate", "restored records per second"),
    ("restore-call", "rate", "restore-call-rate", "batches restored per second"),
)


class RestoringTasks(Protocol):
    """How many tasks of a thread are filled from changelogs, or would be if it were not paused."""

    @property
    def restoring_count(self) -> int: ...

    @property
    def standbys(self) -> Sized: ...

    @property
    def is_paused(self) -> bool: ...


class ThreadMetrics:
    """What happens in a thread. Nothing here is called per record."""

    def __init__(
        self,
        metrics: Metrics,
        thread_id: str,
        start_time_ms: int,
        *,
        process_id: str = "",
        state: Callable[[], str] = str,
        is_debug: bool = False,
    ) -> None:
        self._metrics = metrics
        #: Those that processors add.
        self.own = OwnMetrics(metrics, thread_id, is_debug=is_debug)
        self._thread_id = thread_id
        tags = {"thread-id": thread_id}
        self._tasks: dict[TaskId, TaskMetrics] = {}
        self._prefix = f"{thread_id}."
        self._sensors = add_sensors(metrics, THREAD_GROUP, _THREAD, prefix=self._prefix, tags=tags)
        self._spent_ns = dict.fromkeys(_SHARES, 0)
        self._updater: Mapping[str, Sensor] = {}
        self._updater_ns = dict.fromkeys(_UPDATER_SHARES, 0)
        self._blocked_ns = 0
        self._since_ns = time.monotonic_ns()

        def gauge(name: str, what: str, value: Callable[[], Any], **more: str) -> MetricName:
            return metrics.add_gauge(name, THREAD_GROUP, what, value, {**tags, **more})

        self._gauges = [
            gauge("thread-start-time", "when it started", lambda: start_time_ms),
            gauge("state", "state of the thread", state),
            gauge("thread-state", "state of the thread", state, **{"process-id": process_id}),
            gauge(
                "blocked-time-ns-total",
                "time that the thread waited for brokers, ns",
                lambda: float(self._blocked_ns),
            ),
        ]

    def watch(self, tasks: RestoringTasks) -> None:
        """Show what is restored, under the name that Kafka Streams' thread for it would have."""
        tags = {"thread-id": self._thread_id.replace("StreamThread", "StateUpdater")}
        prefix = f"{self._prefix}updater."
        self._updater = add_sensors(
            self._metrics, UPDATER_GROUP, _UPDATER, prefix=prefix, tags=tags
        )

        def active(paused: bool) -> int:
            return tasks.restoring_count if tasks.is_paused is paused else 0

        def standby(paused: bool) -> int:
            return len(tasks.standbys) if tasks.is_paused is paused else 0

        facts: dict[str, tuple[str, Callable[[], int]]] = {
            "active-restoring-tasks": ("active tasks being restored", lambda: active(False)),
            "standby-updating-tasks": ("standby tasks being updated", lambda: standby(False)),
            "active-paused-tasks": ("active tasks to be restored", lambda: active(True)),
            "standby-paused-tasks": ("standby tasks to be updated", lambda: standby(True)),
        }
        for name, (what, value) in facts.items():
            self._gauges.append(self._metrics.add_gauge(name, UPDATER_GROUP, what, value, tags))

    def restored(self, spent_ns: int, records: int, *, active: bool) -> None:
        """A poll of changelogs has ended."""
        self._updater_ns["active-restore" if active else "standby-update"] += spent_ns
        if records and self._updater:
            self._updater["restore-records"].record(records)
            self._updater["restore-call"].record()
            for task in self._tasks.values():
                task.restored()

    def checkpointed(self, spent_ns: int) -> None:
        """Stores were written to disk."""
        self._updater_ns["checkpoint"] += spent_ns

    def _timed(self, sensor: str, spent_ns: int, count: int) -> None:
        now_ms = self._metrics.now_ms()
        self._sensors[f"{sensor}-latency"].record(spent_ns / 1e6, now_ms)
        self._sensors[sensor].record(count, now_ms)
        self._spent_ns[sensor] += spent_ns

    def turned(self) -> None:
        """A turn of the loop has ended: what its time went into."""
        now_ns = time.monotonic_ns()
        if now_ns - self._since_ns < _SHARE_NS:
            return
        whole, self._since_ns = now_ns - self._since_ns, now_ns
        for name, spent_ns in self._spent_ns.items():
            self._sensors[f"{name}-ratio"].record(spent_ns / whole)
            self._spent_ns[name] = 0
        if self._updater:
            busy_ns = sum(self._updater_ns.values())
            self._updater["idle-ratio"].record(max(0.0, 1 - busy_ns / whole))
            for name, spent_ns in self._updater_ns.items():
                self._updater[f"{name}-ratio"].record(spent_ns / whole)
                self._updater_ns[name] = 0

    def polled(self, spent_ns: int, records: int) -> None:
        self._timed("poll", spent_ns, 1)
        self._blocked_ns += spent_ns
        self._sensors["poll-records"].record(records)

    def processed(self, spent_ns: int, records: int, by_task: Mapping[TaskId, int]) -> None:
        """A turn processed `records`; `by_task` has the time that each task took, ns."""
        self._timed("process", spent_ns, records)
        self._sensors["process-records"].record(records)
        for task_id, took_ns in by_task.items():
            if task_id in self._tasks:
                self._tasks[task_id].shared(took_ns / max(1, spent_ns))

    def task_processed(self, task: HostedTask, count: int, spent_ns: int, now_ms: int) -> None:
        metrics = self._tasks.get(task.id)
        if metrics is not None:
            metrics.processed(count, spent_ns, task.times, now_ms)

    def punctuated(self, task: HostedTask, spent_ns: int) -> None:
        self._timed("punctuate", spent_ns, 1)
        if task.id in self._tasks:
            self._tasks[task.id].punctuated(spent_ns)

    def committed(self, spent_ns: int, tasks: Sequence[HostedTask]) -> None:
        self._timed("commit", spent_ns, len(tasks))
        self._blocked_ns += spent_ns
        for task in tasks:
            if task.id in self._tasks:
                self._tasks[task.id].committed()

    def task_created(self, task: HostedTask) -> None:
        """Count it, and show how it does for as long as it is here."""
        self._sensors["task-created"].record()
        self._tasks[task.id] = TaskMetrics(self._metrics, self._thread_id, task)

    def task_closed(self, task: HostedTask) -> None:
        self._sensors["task-closed"].record()
        closed = self._tasks.pop(task.id, None)
        if closed is not None:
            closed.close()

    def close(self) -> None:
        """The thread has ended: its metrics go."""
        for name in self._sensors:
            self._metrics.remove_sensor(self._prefix + name)
        for name in self._updater:
            self._metrics.remove_sensor(f"{self._prefix}updater.{name}")
        for gauge in self._gauges:
            self._metrics.remove(gauge)
        for task in self._tasks.values():
            task.close()
        self.own.close()


def add_client_metrics(
    metrics: Metrics,
    facts: Mapping[str, tuple[str, Callable[[], Any]]],
    *,
    client_id: str,
    tags: Mapping[str, Mapping[str, str]],
) -> None:
    """The metrics of the application as a whole: name, meaning, and how it is measured.

    `tags` are those that a metric has beside the client's id.
    """
    for name, (description, gauge) in facts.items():
        own = {"client-id": client_id, **tags.get(name, {})}
        metrics.add_gauge(name, CLIENT_GROUP, description, gauge, own)
