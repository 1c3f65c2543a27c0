"""Metrics that a connector or a task measures itself (KIP-877), shown with the worker's own.

    self.context.plugin_metrics.add_metric("queue-size", lambda: len(self._queue))

They end with their connector or task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from moldau.connect.api.errors import ConnectError

__all__ = ["PluginMetric", "PluginMetrics"]


@dataclass(frozen=True, slots=True)
class PluginMetric:
    name: str
    measure: Callable[[], float]
    description: str = ""
    tags: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def key(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        return self.name, tuple(sorted(self.tags.items()))


class PluginMetrics:
    """Of one connector or task; its methods may be called from any thread."""

    def __init__(self) -> None:
        self._metrics: dict[object, PluginMetric] = {}

    def add_metric(
        self,
        name: str,
        measure: Callable[[], float],
        *,
        description: str = "",
        tags: Mapping[str, str] | None = None,
    ) -> PluginMetric:
        """Have a number measured when metrics are read. A name may be there once for its tags."""
        metric = PluginMetric(name, measure, description, MappingProxyType(dict(tags or {})))
        # Each of these is one step of a dictionary, so threads need no lock.
        if self._metrics.setdefault(metric.key, metric) is not metric:
            raise ConnectError(f"A metric named {name} with these tags already exists")
        return metric

    def remove_metric(self, metric: PluginMetric) -> None:
        if self._metrics.pop(metric.key, None) is None:
            raise ConnectError(f"There is no metric named {metric.name} with these tags")

    def all(self) -> list[PluginMetric]:
        return list(self._metrics.values())
