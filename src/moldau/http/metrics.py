"""Counters of a service, printed as Prometheus reads them.

The one place that services count in until moldau.metrics takes over: `counter` and `gauge` are all
that they use. Labels are bounded by the caller: route templates, not paths.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

__all__ = ["Counter", "Metrics"]

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Counter:
    """A number that only grows, per combination of label values."""

    __slots__ = ("help", "labels", "name", "values")

    def __init__(self, name: str, help: str, labels: tuple[str, ...]) -> None:
        self.name = name
        self.help = help
        self.labels = labels
        self.values: dict[tuple[str, ...], float] = {}

    def add(self, *labels: str, amount: float = 1) -> None:
        self.values[labels] = self.values.get(labels, 0) + amount


class Metrics:
    """All metrics of one service."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._counters: dict[str, Counter] = {}
        self._gauges: dict[str, tuple[str, Callable[[], float]]] = {}

    def counter(self, name: str, help: str, *labels: str) -> Counter:
        """The counter of this name; made when it is first asked for."""
        return self._counters.setdefault(name, Counter(name, help, labels))

    def gauge(self, name: str, help: str, read: Callable[[], float]) -> None:
        """A number that is read when it is printed."""
        self._gauges[name] = (help, read)

    def render(self) -> str:
        lines: list[str] = []
        for counter in self._counters.values():
            name = f"{self._prefix}_{counter.name}"
            lines += [f"# HELP {name} {counter.help}", f"# TYPE {name} counter"]
            for values, amount in sorted(counter.values.items()):
                pairs = zip(counter.labels, values, strict=True)
                text = ",".join(f'{label}="{_escaped(value)}"' for label, value in pairs)
                lines.append(f"{name}{{{text}}} {amount:g}" if text else f"{name} {amount:g}")
        for name, (help, read) in self._gauges.items():
            full = f"{self._prefix}_{name}"
            lines += [f"# HELP {full} {help}", f"# TYPE {full} gauge", f"{full} {read():g}"]
        return "\n".join(lines) + "\n"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
