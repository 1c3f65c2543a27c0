"""What processors measure, as they see it: `context.metrics`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

Level = Literal["INFO", "DEBUG"]


class ProcessorSensor(Protocol):
    """Takes values, from which metrics are made."""

    def record(self, value: float = 1.0) -> None:
        """Take a value: a latency, or 1 for something that is only counted."""


class ProcessorMetrics(Protocol):
    """The metrics of the application, and new ones of a processor's own."""

    def metrics(self) -> Mapping[Any, Any]:
        """All of them, by Kafka's names."""

    def add_rate_total_sensor(
        self, scope: str, entity: str, operation: str, *, level: Level = "INFO", **tags: str
    ) -> ProcessorSensor:
        """Counts: add_rate_total_sensor("shop", "prague", "refund") makes `refund-rate` and
        `refund-total` in the group `stream-shop-metrics`, with the tag `shop-id=prague`."""

    def add_latency_rate_total_sensor(
        self, scope: str, entity: str, operation: str, *, level: Level = "INFO", **tags: str
    ) -> ProcessorSensor:
        """Counts, and takes a latency with each: also `refund-latency-avg` and `-max`."""

    def add_sensor(self, name: str, *, level: Level = "INFO") -> ProcessorSensor:
        """A sensor without metrics, which are added by its `add`."""

    def remove_sensor(self, sensor: ProcessorSensor) -> None:
        """The sensor and its metrics go."""
