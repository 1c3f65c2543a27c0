"""The metrics of one node, as the parts of it use them."""

from __future__ import annotations

import time

from moldau.broker.metrics import controller_tables, tables
from moldau.broker.metrics.requests import RequestMetrics
from moldau.broker.metrics.topics import TopicMetrics
from moldau.metrics import Registry

__all__ = ["NodeMetrics"]


class NodeMetrics:
    """What is counted while it happens; what is read when metrics are collected is in
    `broker/gauges/`."""

    def __init__(self, registry: Registry | None = None) -> None:
        self.registry = registry if registry is not None else Registry(time.monotonic)
        registry = self.registry
        self.topics = TopicMetrics(registry)
        self.requests = RequestMetrics(registry)
        self.isr_shrinks = registry.meter(tables.ISR_SHRINKS)
        self.isr_expands = registry.meter(tables.ISR_EXPANDS)
        self.failed_isr_updates = registry.meter(tables.FAILED_ISR_UPDATES)
        self.flush = registry.timer(tables.LOG_FLUSH)
        self.unclean_elections = registry.meter(controller_tables.UNCLEAN_ELECTIONS)
        self.elr_elections = registry.meter(controller_tables.ELR_ELECTIONS)
        self.event_time = registry.histogram(controller_tables.EVENT_TIME)

    def isr_changed(self, before: frozenset[int], after: frozenset[int]) -> None:
        """The in-sync replicas of a partition that this node leads have changed."""
        if before - after:
            self.isr_shrinks.mark(1)
        if after - before:
            self.isr_expands.mark(1)
