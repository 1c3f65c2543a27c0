"""Measures how long calls of the application take, for Kafka's `*-time-ns-total` metrics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter_ns

from moldau.client.metrics import ProducerMetrics

__all__ = ["spent"]


@contextmanager
def spent(metrics: ProducerMetrics, what: str) -> Iterator[None]:
    start_ns = perf_counter_ns()
    try:
        yield
    finally:
        metrics.spent(what, perf_counter_ns() - start_ns)
