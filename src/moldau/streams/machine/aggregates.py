"""Aggregates of grouped streams over all time; `window_aggregates` has the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.streams.machine._steps import StreamAggregator
from moldau.streams.machine.context import Processor
from moldau.streams.machine.getters import TableSupplier, View, store_view

Initializer = Callable[[], Any]
Aggregator = Callable[[Any, Any, Any], Any]
Merger = Callable[[Any, Any, Any], Any]


class StreamAggregate(TableSupplier):
    """Over all time; `initializer` None makes it a reduction, whose first value stands alone."""

    def __init__(
        self, store_name: str, initializer: Initializer | None, aggregator: Aggregator
    ) -> None:
        super().__init__()
        self.store_name = store_name
        self.initializer = initializer
        self.aggregator = aggregator

    def __call__(self) -> Processor:
        return StreamAggregator(
            self.store_name, self.initializer, self.aggregator, self.send_old
        )

    def view(self) -> View:
        return store_view(self.store_name)
