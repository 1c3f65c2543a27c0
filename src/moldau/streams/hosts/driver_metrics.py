"""Metrics of a `TopologyTestDriver`, with the names that the application's have on a cluster.

What was processed is summed up until somebody asks, so that a test without a look at metrics pays
for neither the registry nor its modules.
"""

from __future__ import annotations

import threading

from moldau.client.metrics import Metrics
from moldau.client.topics import TopicPartition
from moldau.streams.hosts.driver_meter import DriverMeter
from moldau.streams.hosts.hosted_task import HostedTask, Times
from moldau.streams.hosts.own_metrics import OwnMetrics
from moldau.streams.hosts.task_metrics import TaskMetrics
from moldau.streams.machine.definitions import Definition, SourceDefinition
from moldau.streams.machine.subtopologies import TaskId
from moldau.streams.machine.task import Task


class DriverMetrics:
    """Of one driver and its only task."""

    def __init__(self, task: Task, definitions: list[Definition], meter: DriverMeter) -> None:
        self.registry = Metrics()
        thread_id = threading.current_thread().name
        self.own = OwnMetrics(self.registry, thread_id, is_debug=meter.tasks.is_debug)
        self._meter = meter
        topics = {
            meter.tasks.topic_name(topic)
            for each in definitions
            if isinstance(each, SourceDefinition)
            for topic in each.topics
        }
        hosted = HostedTask(
            TaskId(0, 0),
            frozenset(TopicPartition(topic, 0) for topic in topics),
            task,
            idle_ms=0,
            buffered_max=0,
            definitions=definitions,
            meter=meter.tasks,
        )
        self._task = TaskMetrics(self.registry, thread_id, hosted)

    def update(self) -> None:
        """Record what was processed since the last time."""
        taken = self._meter.take()
        if taken.count:
            mean = taken.age_total / taken.count
            # Ages instead of times: the driver's clock may have been moved since then.
            times = Times(
                taken.count,
                -taken.age_max,
                -taken.age_min,
                -mean,
                taken.lateness_total / taken.count - mean,
                tuple(taken.topics),
            )
            self._task.processed(taken.count, taken.spent_ns, times, 0)
        for spent_ns in taken.punctuations:
            self._task.punctuated(spent_ns)
        self._task.committed()
