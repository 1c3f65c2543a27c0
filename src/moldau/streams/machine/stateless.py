"""Steps without state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from moldau.streams.machine.context import Processor
from moldau.streams.records import Change, Record

Predicate = Callable[[Any, Any], bool]


class PassThrough(Processor):
    """A merge: records of all parents go on as they are."""

    def process(self, record: Record[Any, Any]) -> None:
        self.context.forward(record)


class Filter(Processor):
    def __init__(self, predicate: Predicate, negate: bool = False) -> None:
        self._predicate = predicate
        self._wanted = not negate

    def process(self, record: Record[Any, Any]) -> None:
        if bool(self._predicate(record.key, record.value)) is self._wanted:
            self.context.forward(record)


class Map(Processor):
    def __init__(self, mapper: Callable[[Any, Any], tuple[Any, Any]]) -> None:
        self._mapper = mapper

    def process(self, record: Record[Any, Any]) -> None:
        key, value = self._mapper(record.key, record.value)
        self.context.forward(Record(key, value, record.timestamp, record.headers))


class SelectKey(Processor):
    def __init__(self, mapper: Callable[[Any, Any], Any]) -> None:
        self._mapper = mapper

    def process(self, record: Record[Any, Any]) -> None:
        self.context.forward(record.with_key(self._mapper(record.key, record.value)))


class MapValues(Processor):
    def __init__(self, mapper: Callable[[Any, Any], Any]) -> None:
        self._mapper = mapper

    def process(self, record: Record[Any, Any]) -> None:
        self.context.forward(record.with_value(self._mapper(record.key, record.value)))


class FlatMap(Processor):
    def __init__(self, mapper: Callable[[Any, Any], Iterable[tuple[Any, Any]]]) -> None:
        self._mapper = mapper

    def process(self, record: Record[Any, Any]) -> None:
        for key, value in self._mapper(record.key, record.value):
            self.context.forward(Record(key, value, record.timestamp, record.headers))


class FlatMapValues(Processor):
    def __init__(self, mapper: Callable[[Any, Any], Iterable[Any]]) -> None:
        self._mapper = mapper

    def process(self, record: Record[Any, Any]) -> None:
        for value in self._mapper(record.key, record.value):
            self.context.forward(record.with_value(value))


class Peek(Processor):
    """Calls an action; passes the record on unless it is the last step."""

    def __init__(self, action: Callable[[Any, Any], object], passes_on: bool = True) -> None:
        self._action = action
        self._passes_on = passes_on

    def process(self, record: Record[Any, Any]) -> None:
        self._action(record.key, record.value)
        if self._passes_on:
            self.context.forward(record)


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


class ToStream(Processor):
    """A table's updates as a stream of its new values."""

    def process(self, record: Record[Any, Change[Any]]) -> None:
        self.context.forward(record.with_value(record.value.new))
