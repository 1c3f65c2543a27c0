"""A client's metrics by name, the sensors that feed them, and the reporters that follow them.

Invariants: a name is registered once; sensors may be recorded to and metrics read from any
thread; nothing here is called per record, only per batch, request or call.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

from moldau.client.errors import ConfigError
from moldau.client.metrics._stats import Recorder, Stat, Windows

__all__ = ["Gauge", "KafkaMetric", "MetricName", "MetricReporter", "Metrics", "Sensor"]

_logger = logging.getLogger(__name__)

JMX_REPORTER: Final = "org.apache.kafka.common.metrics.JmxReporter"
# A sensor that nobody records to for so long is dropped, if it was made to be.
IDLE_MS: Final = 3_600_000

Gauge = Callable[[], Any]


class MetricName:
    """Equal when name, group and tags are; the description says what is counted."""

    __slots__ = ("_hash", "description", "group", "name", "tags")

    def __init__(
        self,
        name: str,
        group: str,
        description: str = "",
        tags: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.group = group
        self.description = description
        self.tags: dict[str, str] = dict(tags or {})
        self._hash = hash((name, group, frozenset(self.tags.items())))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MetricName):
            return NotImplemented
        return self.name == other.name and self.group == other.group and self.tags == other.tags

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return (
            f"MetricName(name={self.name!r}, group={self.group!r}, "
            f"description={self.description!r}, tags={self.tags!r})"
        )


class KafkaMetric:
    """A name and what it measures at the moment it is asked."""

    __slots__ = ("_measure", "is_cumulative", "metric_name")

    def __init__(
        self, metric_name: MetricName, measure: Gauge, *, is_cumulative: bool = False
    ) -> None:
        self.metric_name = metric_name
        #: Whether it only ever grows, as totals do.
        self.is_cumulative = is_cumulative
        self._measure = measure

    def metric_value(self) -> Any:
        """The present value; a number for all but a few that hold text, as the version."""
        return self._measure()

    @property
    def value(self) -> Any:
        return self._measure()

    def __repr__(self) -> str:
        return f"KafkaMetric({self.metric_name!r}, value={self.value!r})"


class MetricReporter(Protocol):
    """What `metric.reporters` may hold; of these methods any may be missing."""

    def configure(self, config: Mapping[str, Any]) -> None: ...

    def init(self, metrics: list[KafkaMetric]) -> None: ...

    def metric_change(self, metric: KafkaMetric) -> None: ...

    def metric_removal(self, metric: KafkaMetric) -> None: ...

    def close(self) -> None: ...


class Sensor(Recorder):
    """Shows what its stats make of the values under their names."""

    def __init__(self, metrics: Metrics, name: str, parents: tuple[Sensor, ...]) -> None:
        super().__init__(metrics.windows, metrics.now_ms, parents)
        self.name = name
        self.metric_names: list[MetricName] = []
        self._metrics = metrics

    def add(self, metric_name: MetricName, stat: Stat, *, is_cumulative: bool = False) -> None:
        """Show what `stat` makes of the values under a name."""
        self.add_stat(stat)
        self.metric_names.append(metric_name)
        self._metrics.register(
            KafkaMetric(metric_name, lambda: self.measure(stat), is_cumulative=is_cumulative)
        )


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class Metrics:
    """The registry of one client."""

    def __init__(
        self,
        windows: Windows | None = None,
        *,
        tags: Mapping[str, str] | None = None,
        reporters: Iterable[Any] = (),
        now_ms: Callable[[], int] = _monotonic_ms,
    ) -> None:
        self.windows = windows or Windows()
        #: Go with every metric's own.
        self.tags: dict[str, str] = dict(tags or {})
        self.now_ms = now_ms
        self._lock = threading.RLock()
        self._metrics: dict[MetricName, KafkaMetric] = {}
        self._sensors: dict[str, Sensor] = {}
        # Sensors that are dropped when idle, with the time after which they are.
        self._expiring: dict[str, int] = {}
        self._reporters: list[Any] = []
        self.add_gauge(
            "count", "kafka-metrics-count", "registered metrics", lambda: float(len(self._metrics))
        )
        for reporter in reporters:
            self.add_reporter(reporter)

    @classmethod
    def of(cls, values: Mapping[str, Any], *, client_id: str) -> Metrics:
        """From parsed settings, for the client of this id."""
        windows = Windows(values["metrics.num.samples"], values["metrics.sample.window.ms"])
        return cls(
            windows,
            tags={"client-id": client_id},
            reporters=resolve_reporters(values["metric.reporters"], values),
        )

    def metrics(self) -> dict[MetricName, KafkaMetric]:
        """All of them, as of now."""
        self.expire()
        with self._lock:
            return dict(self._metrics)

    def metric_name(
        self,
        name: str,
        group: str,
        description: str = "",
        tags: Mapping[str, str] | None = None,
    ) -> MetricName:
        return MetricName(name, group, description, {**self.tags, **(tags or {})})

    def get(
        self, name: str, group: str, tags: Mapping[str, str] | None = None
    ) -> KafkaMetric | None:
        """One metric by its name, its group and its tags beside the client's."""
        return self._metrics.get(self.metric_name(name, group, tags=tags))

    def add_gauge(
        self,
        name: str,
        group: str,
        description: str,
        gauge: Gauge,
        tags: Mapping[str, str] | None = None,
    ) -> MetricName:
        """Show what a function returns whenever it is asked."""
        metric_name = self.metric_name(name, group, description, tags)
        self.register(KafkaMetric(metric_name, gauge))
        return metric_name

    def register(self, metric: KafkaMetric) -> None:
        with self._lock:
            if metric.metric_name in self._metrics:
                raise ValueError(f"a metric named {metric.metric_name} is already registered")
            self._metrics[metric.metric_name] = metric
            reporters = list(self._reporters)
        for reporter in reporters:
            _tell(reporter, "metric_change", metric)

    def remove(self, metric_name: MetricName) -> None:
        with self._lock:
            metric = self._metrics.pop(metric_name, None)
            reporters = list(self._reporters)
        if metric is not None:
            for reporter in reporters:
                _tell(reporter, "metric_removal", metric)

    def sensor(
        self, name: str, *, parents: tuple[Sensor, ...] = (), idle_ms: int | None = None
    ) -> Sensor:
        """The sensor of that name, made if there is none; dropped when idle for `idle_ms`."""
        with self._lock:
            sensor = self._sensors.get(name)
            if sensor is None:
                sensor = self._sensors[name] = Sensor(self, name, parents)
                if idle_ms is not None:
                    self._expiring[name] = idle_ms
            return sensor

    def find_sensor(self, name: str) -> Sensor | None:
        return self._sensors.get(name)

    def remove_sensor(self, name: str) -> None:
        with self._lock:
            sensor = self._sensors.pop(name, None)
            self._expiring.pop(name, None)
        if sensor is not None:
            for metric_name in sensor.metric_names:
                self.remove(metric_name)

    def expire(self) -> None:
        """Drop the sensors that were idle for too long."""
        if not self._expiring:
            return
        now = self.now_ms()
        with self._lock:
            idle = [
                name
                for name, idle_ms in self._expiring.items()
                if now - self._sensors[name].last_ms >= idle_ms
            ]
        for name in idle:
            self.remove_sensor(name)

    def add_reporter(self, reporter: Any) -> None:
        with self._lock:
            self._reporters.append(reporter)
            metrics = list(self._metrics.values())
        _tell(reporter, "init", metrics)

    def close(self) -> None:
        with self._lock:
            reporters, self._reporters = self._reporters, []
        for reporter in reporters:
            _tell(reporter, "close")


def _tell(reporter: Any, method: str, *arguments: Any) -> None:
    """A reporter that fails must not stop the client."""
    function = getattr(reporter, method, None)
    if function is None:
        return
    try:
        function(*arguments)
    except Exception:
        _logger.exception("metrics reporter %r failed in %s", reporter, method)


def resolve_reporters(setting: Any, config: Mapping[str, Any]) -> list[Any]:
    """The objects that `metric.reporters` names: objects, classes or Python paths.

    Kafka's own reporter, which is the default, publishes to a Java virtual machine and is left out.
    """
    reporters: list[Any] = []
    for item in [setting] if not isinstance(setting, (list, tuple)) else setting:
        if isinstance(item, str):
            if item == JMX_REPORTER or not item.strip():
                continue
            item = _import(item.strip())
        reporter = item() if isinstance(item, type) else item
        configure = getattr(reporter, "configure", None)
        if configure is not None:
            configure(dict(config))
        reporters.append(reporter)
    return reporters


def _import(path: str) -> Any:
    import importlib

    module, _, name = path.replace(":", ".").rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError.invalid(
            "metric.reporters", path, "no such Python class: pass its dotted path or an object"
        ) from error
