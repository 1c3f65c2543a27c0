"""Steps without state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from moldau.streams.machine._steps import (
    Filter,
    FlatMap,
    FlatMapValues,
    Map,
    MapValues,
    PassThrough,
    Peek,
    SelectKey,
    ToStream,
)
from moldau.streams.machine.context import Processor
from moldau.streams.records import Record

__all__ = [
    "Branch",
    "Filter",
    "FlatMap",
    "FlatMapValues",
    "FlatMapValuesWithKey",
    "Map",
    "MapValues",
    "PassThrough",
    "Peek",
    "SelectKey",
    "ToStream",
]

Predicate = Callable[[Any, Any], bool]


class FlatMapValuesWithKey(Processor):
    """Computes any number of values from key and value."""

    def __init__(self, mapper: Callable[[Any, Any], Iterable[Any]]) -> None:
        self._mapper = mapper

    def process(self, record: Record[Any, Any]) -> None:
        for value in self._mapper(record.key, record.value):
            self.context.forward(record.with_value(value))


class Branch(Processor):
    """Passes a record to the child of the first predicate that holds."""

    def __init__(self, predicates: list[Predicate], children: list[str]) -> None:
        self._predicates = predicates
        self._children = children

    def process(self, record: Record[Any, Any]) -> None:
        for predicate, child in zip(self._predicates, self._children, strict=False):
            if predicate(record.key, record.value):
                self.context.forward(record, child)
                return
        if len(self._children) > len(self._predicates):
            self.context.forward(record, self._children[-1])
