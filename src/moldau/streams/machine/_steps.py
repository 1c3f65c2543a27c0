# cython: annotation_typing=False
"""The steps that most records pass: those without state, and the aggregate of a grouped stream.

The file is plain Python, and with `_steps.pxd` beside it also the source of a compiled module with
the same names and results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

from moldau.streams._records import Record, new_change, new_record
from moldau.streams.machine._nodes import Processor, ProcessorContext
from moldau.streams.machine.getters import Forwarder, Materializer
from moldau.streams.stores._tables import TimestampedKeyValueStore

try:
    import cython
except ImportError:
    # Only the compiler needs the real one, and it does not let its name be assigned.
    globals()["cython"] = SimpleNamespace(compiled=False)

if not cython.compiled:
    # The compiler takes it from the .pxd, as C.
    from moldau.streams.longs import unpack_long

Predicate = Callable[[Any, Any], bool]


class PassThrough(Processor):
    """A merge: records of all parents go on as they are."""

    def process(self, record: Record[Any, Any]) -> None:
        self.context.forward(record)


class Filter(Processor):
    """Passes on the records for which a predicate holds, or does not."""

    def __init__(self, predicate: Predicate, negate: bool = False) -> None:
        self._predicate = predicate
        self._negate = negate

    def process(self, record: Record[Any, Any]) -> None:
        if bool(self._predicate(record.key, record.value)) != self._negate:
            self.context.forward(record)


class Map(Processor):
    """Computes a new key and a new value."""

    def __init__(self, mapper: Callable[[Any, Any], tuple[Any, Any]]) -> None:
        self._mapper = mapper

    def process(self, record: Record[Any, Any]) -> None:
        found = self._mapper(record.key, record.value)
        if found is None:
            raise ValueError("The provided KeyValueMapper returned null which is not allowed.")
        key, value = found
        self.context.forward(new_record(key, value, record.timestamp, record.headers))


class SelectKey(Processor):
    """Computes a new key."""

    def __init__(self, mapper: Callable[[Any, Any], Any]) -> None:
        self._mapper = mapper

    def process(self, record: Record[Any, Any]) -> None:
        self.context.forward(record.with_key(self._mapper(record.key, record.value)))


class MapValues(Processor):
    """Computes a new value, from the old one or from key and value."""

    def __init__(self, mapper: Callable[..., Any], with_key: bool = False) -> None:
        self._mapper = mapper
        self._with_key = with_key

    def process(self, record: Record[Any, Any]) -> None:
        if self._with_key:
            value = self._mapper(record.key, record.value)
        else:
            value = self._mapper(record.value)
        self.context.forward(record.with_value(value))


class FlatMap(Processor):
    """Computes any number of records."""

    def __init__(self, mapper: Callable[[Any, Any], Iterable[tuple[Any, Any]]]) -> None:
        self._mapper = mapper

    def process(self, record: Record[Any, Any]) -> None:
        for key, value in self._mapper(record.key, record.value):
            self.context.forward(new_record(key, value, record.timestamp, record.headers))


class FlatMapValues(Processor):
    """Computes any number of values."""

    def __init__(self, mapper: Callable[[Any], Iterable[Any]]) -> None:
        self._mapper = mapper

    def process(self, record: Record[Any, Any]) -> None:
        for value in self._mapper(record.value):
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


class ToStream(Processor):
    """A table's updates as a stream of its new values."""

    def process(self, record: Record[Any, Any]) -> None:
        change = record.value
        self.context.forward(record.with_value(change.new))


def count_one(key: Any, value: Any, count: int) -> int:
    """The aggregator of `count`."""
    return count + 1


class StreamAggregator(Processor):
    """Aggregates over all time; `initializer` None makes it a reduction of the values."""

    def __init__(
        self,
        store_name: str,
        initializer: Callable[[], Any] | None,
        aggregator: Callable[[Any, Any, Any], Any],
        send_old: bool,
    ) -> None:
        self._store_name = store_name
        self._initializer = initializer
        self._aggregator = aggregator
        self._counts = aggregator is count_one
        self._send_old = send_old
        self._cached = False
        self._store: Any = None
        self._table: Any = None

    def init(self, context: ProcessorContext) -> None:
        """Versioned stores, and those of others, have no direct way in."""
        self.context = context
        store = context.state_store(self._store_name)
        if isinstance(store, TimestampedKeyValueStore):
            self._store = store
            self._cached = Forwarder(context, store, self._send_old).cached
        else:
            self._table = Materializer(context, self._store_name, self._send_old)

    def process(self, record: Record[Any, Any]) -> None:
        if record.key is None or record.value is None:
            self.context.drop()
            return
        if self._table is not None:
            self._process_other(record)
            return
        store, timestamp = self._store, record.timestamp
        raw = store.raw_key(record.key)
        kept = store.find(raw)
        old: Any = None
        if kept is not None:
            old = store.value_of(kept)
            since = unpack_long(kept, 0)
            if since > timestamp:
                timestamp = since
        elif self._initializer is not None:
            old = self._initializer()
        new = old + 1 if self._counts else self._aggregator(record.key, record.value, old)
        store.write(raw, new, timestamp)
        if not self._cached:
            change = new_change(new, old if self._send_old else None)
            self.context.forward(new_record(record.key, change, timestamp, record.headers))

    def _process_other(self, record: Record[Any, Any]) -> None:
        timestamp, old = record.timestamp, None
        found = self._table.store.get(record.key)
        if found is not None:
            old = found[0]
            timestamp = max(timestamp, found[1])
        elif self._initializer is not None:
            old = self._initializer()
        new = self._aggregator(record.key, record.value, old)
        self._table.update(record, new=new, old=old, timestamp=timestamp)
