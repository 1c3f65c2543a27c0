"""The metrics of a client as the performance tools print them: one line each, in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moldau.client.metrics.registry import KafkaMetric, MetricName

__all__ = ["metric_lines"]


def metric_lines(metrics: Mapping[MetricName, KafkaMetric]) -> Iterator[str]:
    """`group:name:{tag=value} : 1.000`, under a header; nothing where there are no metrics."""
    values = {}
    for name, metric in metrics.items():
        tags = ", ".join(f"{tag}={value}" for tag, value in name.tags.items())
        values[f"{name.group}:{name.name}:{{{tags}}}"] = metric.value
    if not values:
        return
    width = max(map(len, values))
    yield ""
    yield f"{'Metric Name':<{width}}   Value"
    for shown, value in sorted(values.items()):
        yield f"{shown:<{width}} : {_value(value)}"


def _value(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    if value != value:
        return "NaN"
    return f"{value:.3f}".replace("-inf", "-Infinity").replace("inf", "Infinity")
