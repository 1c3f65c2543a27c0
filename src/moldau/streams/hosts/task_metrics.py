"""The metrics of a task with Kafka Streams' names: of itself, its nodes, stores, caches and topics.

As in Kafka Streams every metric is there at every `metrics.recording.level`, and what belongs to a
higher level than the application's is not recorded. What is recorded at INFO is counted per batch
of records, never per record and node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, NamedTuple

from moldau.client.metrics import MetricName, Metrics
from moldau.client.metrics.registry import Sensor
from moldau.client.metrics.tables import Row, add_sensors
from moldau.streams.hosts.hosted_task import HostedTask, Times
from moldau.streams.hosts.metering import StoreKind, TaskMeter
from moldau.streams.machine.definitions import (
    Definition,
    ProcessorDefinition,
    SinkDefinition,
    SourceDefinition,
)

TASK_GROUP: Final = "stream-task-metrics"
NODE_GROUP: Final = "stream-processor-node-metrics"
STORE_GROUP: Final = "stream-state-metrics"
CACHE_GROUP: Final = "stream-record-cache-metrics"
TOPIC_GROUP: Final = "stream-topic-metrics"
#: How often the counts of processors are read at INFO.
_COUNTS_MS: Final = 1000


class NodeRate(NamedTuple):
    """What a node processes per second, and how many records its tasks have given it."""

    rate: float
    records: int


def counted(sensor: str, what: str) -> tuple[Row, ...]:
    """How often something happens."""
    return (
        (sensor, "rate", f"{sensor}-rate", f"{what} per second"),
        (sensor, "total", f"{sensor}-total", what),
    )


def spread(sensor: str, what: str, *stats: str) -> tuple[Row, ...]:
    """The average and other statistics of something."""
    words = {"avg": "average", "max": "largest", "min": "smallest"}
    return tuple((sensor, stat, f"{sensor}-{stat}", f"{words[stat]} {what}") for stat in stats)


_TASK: Final[tuple[Row, ...]] = (
    *counted("process", "processed records"),
    *spread("process-latency", "time to process a record, ns", "avg", "max"),
    *counted("punctuate", "punctuations"),
    *spread("punctuate-latency", "time to punctuate, ns", "avg", "max"),
    *spread("record-lateness", "time that a record is behind stream time, ms", "avg", "max"),
    *counted("enforced-processing", "times that an empty partition was no longer waited for"),
    *counted("dropped-records", "records that were dropped: late, without a key, or refused"),
    *counted("restore", "restored records"),
    ("active-process-ratio", "value", "active-process-ratio", "share of the thread's processing"),
)
_E2E: Final = spread("record-e2e-latency", "age of a record, ms", "avg", "max", "min")
_STORE: Final[Mapping[StoreKind, tuple[str, ...]]] = {
    StoreKind.KEY_VALUE: (
        *("put", "put-if-absent", "put-all", "get", "delete", "range", "all", "prefix-scan"),
        *("flush", "commit", "restore"),
    ),
    StoreKind.WINDOW: ("put", "fetch", "flush", "commit", "restore"),
    StoreKind.SESSION: ("put", "fetch", "remove", "flush", "commit", "restore"),
}
_BUFFER: Final[tuple[Row, ...]] = (
    *spread("suppression-buffer-count", "number of buffered records", "avg", "max"),
    *spread("suppression-buffer-size", "bytes of buffered records", "avg", "max"),
)


class TaskMetrics:
    """Of one task in a thread; called by the thread."""

    def __init__(self, metrics: Metrics, thread_id: str, task: HostedTask) -> None:
        self._metrics = metrics
        self._task = task
        self._tags = {"thread-id": thread_id, "task-id": str(task.id)}
        self._prefix = f"{thread_id}.{task.id}."
        self._names: list[str] = []
        self._gauges: list[MetricName] = []
        self._is_debug = task.meter.is_debug
        self._task_sensors = self._sensors(TASK_GROUP, _TASK, "task.", {})
        self._dropped = self._enforced = self._restored = 0
        self._add_task_gauges()
        self._sources, self._terminal = self._nodes(task.definitions)
        self._stores = self._add_stores(task.meter)
        self._add_topics(task)

    # What there is.

    def _sensors(
        self, group: str, rows: Iterable[Row], prefix: str, tags: Mapping[str, str]
    ) -> dict[str, Sensor]:
        prefix = self._prefix + prefix
        found = add_sensors(self._metrics, group, rows, prefix=prefix, tags={**self._tags, **tags})
        self._names += [prefix + name for name in found]
        return found

    def _gauge(
        self,
        name: str,
        group: str,
        description: str,
        gauge: Callable[[], float],
        tags: Mapping[str, str] | None = None,
    ) -> None:
        self._gauges.append(
            self._metrics.add_gauge(name, group, description, gauge, {**self._tags, **(tags or {})})
        )

    def _add_task_gauges(self) -> None:
        task = self._task

        def remaining() -> float:
            return float(sum(max(0, log.end - log.position) for log in task.logs))

        def waiting() -> float:
            return float(len(task.inputs))

        what = "records that are fetched and not processed"
        self._gauge("active-buffer-count", TASK_GROUP, what, waiting)
        what = "offsets of changelogs that are still to be restored"
        self._gauge("restore-remaining-records-total", TASK_GROUP, what, remaining)
        what = "bytes of updates that wait in the caches of the thread"
        self._gauge(
            "cache-size-bytes-total",
            TASK_GROUP,
            what,
            lambda: float(task.meter.cache_bytes()),
        )

    def _nodes(
        self, definitions: Iterable[Definition]
    ) -> tuple[dict[str, list[Sensor]], list[Sensor]]:
        """The ages of records: at the sources of each topic, and at the last nodes."""
        sources: dict[str, list[Sensor]] = {}
        last: list[Sensor] = []
        nodes, meter = list(definitions), self._task.meter
        parents = {name for each in nodes for name in each.parents}
        self._counts: dict[str, _Count] = {}
        self._counted_ms = 0
        self._ends: list[_End] = []
        self._emits: list[tuple[list[str], Sensor]] = []
        for node in nodes:
            tags = {"processor-node-id": node.name}
            is_source, is_last = isinstance(node, SourceDefinition), node.name not in parents
            rows = (
                *counted("process", "processed records"),
                *(_E2E if is_source or is_last else ()),
            )
            sensors = self._sensors(NODE_GROUP, rows, f"{node.name}.", tags)
            if isinstance(node, ProcessorDefinition):
                self._counts[node.name] = _Count(sensors["process"])
            topics = _topics(node, meter)
            counts = meter.consumed if is_source else meter.produced
            self._ends += [_End(sensors["process"], counts.setdefault(t, [0, 0])) for t in topics]
            if is_source:
                for topic in topics:
                    sources.setdefault(topic, []).append(sensors["record-e2e-latency"])
            elif is_last:
                last.append(sensors["record-e2e-latency"])
            if meter.is_buffer(node):
                rows = counted("suppression-emit", "records that were let go")
                emit = self._sensors(NODE_GROUP, rows, f"{node.name}.", tags)["suppression-emit"]
                children = [each.name for each in nodes if node.name in each.parents]
                self._emits.append((children, emit))
        return sources, last

    def _add_stores(self, meter: TaskMeter) -> dict[str, dict[str, Sensor]]:
        found: dict[str, dict[str, Sensor]] = {}
        for name, store in meter.stores.items():
            tags = {store.tag: name}
            if store.kind is StoreKind.BUFFER:
                found[name] = self._sensors(STORE_GROUP, _BUFFER, f"{name}.", tags)
                continue
            rows = [*_E2E]
            for operation in _STORE[store.kind]:
                rows.append((operation, "count rate", f"{operation}-rate", "calls per second"))
                rows += spread(f"{operation}-latency", "time of a call, ns", "avg", "max")
            found[name] = self._sensors(STORE_GROUP, rows, f"{name}.", tags)
            if store.kind is StoreKind.KEY_VALUE and store.size is not None:
                self._gauge("num-keys", STORE_GROUP, "entries", store.size, tags)
            if store.is_cached:
                rows = list(
                    spread("hit-ratio", "share of updates that found one of their key", *_ALL)
                )
                cache = self._sensors(
                    CACHE_GROUP, rows, f"{name}.cache.", {"record-cache-id": name}
                )
                found[name]["hit-ratio"] = cache["hit-ratio"]
        return found

    def _add_topics(self, task: HostedTask) -> None:
        meter = task.meter
        for node in task.definitions:
            is_source = isinstance(node, SourceDefinition)
            verb, counts = (
                ("consumed", meter.consumed) if is_source else ("produced", meter.produced)
            )
            for topic in _topics(node, meter):
                tags = {"processor-node-id": node.name, "topic": topic}
                both = counts.setdefault(topic, [0, 0])
                for place, unit in enumerate(("records", "bytes")):
                    self._gauge(
                        f"{unit}-{verb}-total",
                        TOPIC_GROUP,
                        f"{unit} {verb}",
                        partial(_count, both, place),
                        tags,
                    )

    # What happens.

    def processed(self, count: int, spent_ns: int, times: Times, now_ms: int) -> None:
        """A batch of records was processed."""
        sensors, at_ms = self._task_sensors, self._metrics.now_ms()
        if times.count:
            for topic in times.topics:
                for age in self._sources.get(topic, ()):
                    _record_ages(age, times, now_ms, at_ms)
            for age in self._terminal:
                _record_ages(age, times, now_ms, at_ms)
        dropped = self._task.task.dropped
        if dropped != self._dropped:
            sensors["dropped-records"].record(dropped - self._dropped, at_ms)
            self._dropped = dropped
        if self._is_debug:
            sensors["process"].record(count, at_ms)
            sensors["process-latency"].record(spent_ns / count, at_ms)
            sensors["record-lateness"].record(max(0, times.stream_time - times.mean), at_ms)
            enforced = self._task.inputs.enforced
            if enforced != self._enforced:
                sensors["enforced-processing"].record(enforced - self._enforced, at_ms)
                self._enforced = enforced
        self._record_inside(at_ms)

    def committed(self) -> None:
        """A commit has flushed caches and buffers."""
        at_ms = self._metrics.now_ms()
        self._record_inside(at_ms)
        self._record_nodes(at_ms)

    def _record_inside(self, at_ms: int) -> None:
        for end in self._ends:
            end.record(at_ms)
        if self._is_debug:
            self._record_nodes(at_ms)
            self._record_stores(at_ms)
        elif at_ms - self._counted_ms >= _COUNTS_MS:
            # Not with each of many small batches: the nodes count by themselves.
            self._record_nodes(at_ms)

    def _record_nodes(self, at_ms: int) -> None:
        self._counted_ms = at_ms
        counts = self._task.task.counts()
        taken = {name: each.record(counts[name], at_ms) for name, each in self._counts.items()}
        for children, sensor in self._emits:
            emitted = max((taken.get(name, 0) for name in children), default=0)
            if emitted:
                sensor.record(emitted, at_ms)

    def _record_stores(self, at_ms: int) -> None:
        for name, store in self._task.meter.stores.items():
            sensors = self._stores[name]
            if store.kind is StoreKind.BUFFER:
                count, size = store.held()
                sensors["suppression-buffer-count"].record(count, at_ms)
                sensors["suppression-buffer-size"].record(size, at_ms)
                continue
            for operation, calls in store.take().items():
                if operation == "hit-ratio":
                    sensors["hit-ratio"].record(calls.total_ns / calls.count, at_ms)
                    continue
                for _ in range(calls.count):
                    sensors[operation].record(1, at_ms)
                sensors[f"{operation}-latency"].record(calls.total_ns / calls.count, at_ms)
                sensors[f"{operation}-latency"].record(calls.max_ns, at_ms)

    def shared(self, ratio: float) -> None:
        """The task's share of what the thread processed in a turn."""
        self._task_sensors["active-process-ratio"].record(ratio)

    def punctuated(self, spent_ns: int) -> None:
        if self._is_debug:
            self._task_sensors["punctuate"].record(1)
            self._task_sensors["punctuate-latency"].record(spent_ns)

    def restored(self) -> None:
        """Records of changelogs were applied."""
        new, self._restored = self._task.restored - self._restored, self._task.restored
        if self._is_debug and new:
            self._task_sensors["restore"].record(new)

    def close(self) -> None:
        """The task is closed: its metrics go."""
        for name in self._names:
            self._metrics.remove_sensor(name)
        for gauge in self._gauges:
            self._metrics.remove(gauge)


_ALL: Final = ("avg", "max", "min")


class _End:
    """A source or a sink: it processes what its topic gives or takes."""

    __slots__ = ("_both", "_sensor", "_shown")

    def __init__(self, sensor: Sensor, both: list[int]) -> None:
        self._sensor = sensor
        self._both = both
        self._shown = 0

    def record(self, at_ms: int) -> None:
        count = self._both[0]
        if count != self._shown:
            self._sensor.record(count - self._shown, at_ms)
            self._shown = count


class _Count:
    """A processor, which counts what it is given."""

    __slots__ = ("_sensor", "_shown")

    def __init__(self, sensor: Sensor) -> None:
        self._sensor = sensor
        self._shown = 0

    def record(self, count: int, at_ms: int) -> int:
        """How many there are since the last time."""
        new = count - self._shown
        if new:
            self._sensor.record(new, at_ms)
            self._shown = count
        return new


def _topics(node: Definition, meter: TaskMeter) -> list[str]:
    """The topics of a source or a sink, by their names on the cluster."""
    if isinstance(node, SourceDefinition):
        return [meter.topic_name(topic) for topic in node.topics]
    if isinstance(node, SinkDefinition) and isinstance(node.topic, str):
        return [meter.topic_name(node.topic)]
    return []


def _count(both: list[int], place: int) -> float:
    return float(both[place])


def _record_ages(sensor: Sensor, times: Times, now_ms: int, at_ms: int) -> None:
    """The oldest and the newest record of a batch, and their mean."""
    for timestamp in (times.oldest, times.newest, times.mean):
        sensor.record(now_ms - timestamp, at_ms)
