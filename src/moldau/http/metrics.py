"""The metrics of a service: a registry of its own, printed as Prometheus reads it.

`counter` and `gauge` are what services use; `registry` is for whatever else is measured. Labels are
bounded by the caller: route templates, not paths.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from moldau.metrics import Kind, Registry, Spec, prometheus
from moldau.metrics.prometheus import CONTENT_TYPE as CONTENT_TYPE
from moldau.metrics.registry import Reading

__all__ = ["CONTENT_TYPE", "Counter", "Metrics"]


class Counter:
    """A number that only grows, per combination of label values."""

    __slots__ = ("spec", "values")

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.values: dict[tuple[str, ...], float] = {}

    def add(self, *labels: str, amount: float = 1) -> None:
        self.values[labels] = self.values.get(labels, 0) + amount


class Metrics:
    """All metrics of one service."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self.registry = Registry(time.monotonic)
        self._counters: dict[str, Counter] = {}
        self.registry.collector(self._collect)

    def counter(self, name: str, help: str, *labels: str) -> Counter:
        """The counter of this name; made when it is first asked for."""
        known = self._counters.get(name)
        if known is None:
            spec = Spec(self._prefix, "", name, Kind.COUNTER, help, labels)
            known = self._counters[name] = Counter(spec)
        return known

    def gauge(self, name: str, help: str, read: Callable[[], float]) -> None:
        """A number that is read when it is printed."""
        self.registry.gauge(Spec(self._prefix, "", name, Kind.GAUGE, help), read)

    def render(self) -> str:
        return "".join(prometheus.lines(self.registry.collect()))

    def _collect(self) -> Iterator[tuple[Spec, tuple[str, ...], Reading]]:
        for counter in self._counters.values():
            for values, amount in sorted(counter.values.items()):
                yield counter.spec, values, amount
