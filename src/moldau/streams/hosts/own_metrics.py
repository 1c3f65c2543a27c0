"""Metrics of a processor's own, in the registry of the application: Kafka's `StreamsMetrics`."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.client.metrics import KafkaMetric, MetricName, Metrics
from moldau.client.metrics.registry import Sensor
from moldau.client.metrics.tables import Row, add_sensors
from moldau.streams.machine.processor_metrics import Level, ProcessorSensor


class OwnMetrics:
    """Of one thread. A `ProcessorMetrics`."""

    def __init__(self, metrics: Metrics, thread_id: str, *, is_debug: bool) -> None:
        self._metrics = metrics
        self._thread_id = thread_id
        self._is_debug = is_debug
        self._sensors: dict[str, Sensor] = {}

    def metrics(self) -> Mapping[MetricName, KafkaMetric]:
        return self._metrics.metrics()

    def add_rate_total_sensor(
        self, scope: str, entity: str, operation: str, *, level: Level = "INFO", **tags: str
    ) -> ProcessorSensor:
        rows = (
            (operation, "count rate", f"{operation}-rate", f"{operation} per second"),
            (operation, "count total", f"{operation}-total", f"how often: {operation}"),
        )
        return self._add(scope, entity, operation, rows, level, tags)

    def add_latency_rate_total_sensor(
        self, scope: str, entity: str, operation: str, *, level: Level = "INFO", **tags: str
    ) -> ProcessorSensor:
        rows = (
            (operation, "count rate", f"{operation}-rate", f"{operation} per second"),
            (operation, "count total", f"{operation}-total", f"how often: {operation}"),
            (operation, "avg", f"{operation}-latency-avg", f"average latency of {operation}"),
            (operation, "max", f"{operation}-latency-max", f"longest latency of {operation}"),
        )
        return self._add(scope, entity, operation, rows, level, tags)

    def _add(
        self,
        scope: str,
        entity: str,
        operation: str,
        rows: tuple[Row, ...],
        level: Level,
        tags: Mapping[str, str],
    ) -> ProcessorSensor:
        """The tasks of a thread that ask for the same sensor share it."""
        prefix = f"{self._thread_id}.own.{scope}.{entity}."
        found = self._sensors.get(prefix + operation)
        if found is None:
            every = {"thread-id": self._thread_id, f"{scope}-id": entity, **tags}
            group = f"stream-{scope}-metrics"
            made = add_sensors(self._metrics, group, rows, prefix=prefix, tags=every)
            found = self._sensors[prefix + operation] = made[operation]
        return self._at(level, found)

    def add_sensor(self, name: str, *, level: Level = "INFO") -> ProcessorSensor:
        name = f"{self._thread_id}.own.{name}"
        found = self._sensors[name] = self._metrics.sensor(name)
        return self._at(level, found)

    def _at(self, level: Level, sensor: Sensor) -> ProcessorSensor:
        return sensor if level == "INFO" or self._is_debug else _Unrecorded(sensor)

    def remove_sensor(self, sensor: ProcessorSensor) -> None:
        inner = sensor.sensor if isinstance(sensor, _Unrecorded) else sensor
        for name, each in list(self._sensors.items()):
            if each is inner:
                del self._sensors[name]
                self._metrics.remove_sensor(name)

    def close(self) -> None:
        """The thread has ended."""
        for name in self._sensors:
            self._metrics.remove_sensor(name)
        self._sensors.clear()


class _Unrecorded:
    """A sensor of a level that is not recorded: its metrics are there, and stay as they are."""

    def __init__(self, sensor: Sensor) -> None:
        self.sensor = sensor
        self.add = sensor.add

    def record(self, value: float = 1.0) -> None:
        return
