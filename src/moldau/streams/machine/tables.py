"""The processors of tables: sources, filters, mapped values, groupings and their aggregates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.streams.errors import StreamsError
from moldau.streams.machine.context import Processor, ProcessorContext
from moldau.streams.machine.getters import (
    Computed,
    Found,
    Materializer,
    NotVersioned,
    TableSupplier,
    View,
    store_view,
)
from moldau.streams.records import Change, Record, ValueAndTimestamp, aggregation

Mapper = Callable[[Any, Any], Any]


class TableSource(TableSupplier):
    """A table from a topic, or from a stream. It has a store only where a step needs one."""

    def __init__(self, store_name: str, queryable: bool) -> None:
        super().__init__()
        self.store_name = store_name
        self.materialized = queryable

    def __call__(self) -> Processor:
        return _Source(self.store_name if self.materialized else None, self.send_old)

    def enable_sending_old_values(self, force: bool) -> bool:
        if not force and not self.materialized:
            return False
        self.send_old = self.materialized = True
        return True

    def view(self) -> View:
        self.materialized = True
        return store_view(self.store_name)


class _Source(Processor):
    def __init__(self, store_name: str | None, send_old: bool) -> None:
        self._store_name = store_name
        self._send_old = send_old

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        name = self._store_name
        self._table = None if name is None else Materializer(context, name, self._send_old)

    def process(self, record: Record[Any, Any]) -> None:
        if record.key is None:
            self.context.drop()
            return
        if self._table is None:
            self.context.forward(record.with_value(Change(record.value, None)))
            return
        found = self._table.store.get(record.key)
        old = None if found is None else found.value
        self._table.update(record, new=record.value, old=old, timestamp=record.timestamp)


class DerivedTable(TableSupplier):
    """A table computed value by value from another: filter and map_values.

    `compute` is never given null, and may return it.
    """

    def __init__(
        self,
        parent: TableSupplier,
        compute: Mapper,
        store_name: str | None,
        *,
        skips_nothing: bool,
        is_same: bool = False,
    ) -> None:
        """`is_same`: `compute` returns what it is given, so that readers need not call it."""
        super().__init__()
        self._is_same = is_same
        self.parent = parent
        self.compute = compute
        self.store_name = store_name
        #: A filter forwards nothing where a row was and stays invisible. To see that, it asks for
        #: old values where the table before it has them anyway.
        self.skips_nothing = skips_nothing
        if skips_nothing:
            self.send_old = parent.enable_sending_old_values(False)

    def __call__(self) -> Processor:
        return _Derived(self)

    def enable_sending_old_values(self, force: bool) -> bool:
        if self.store_name is not None or self.parent.enable_sending_old_values(force):
            self.send_old = True
        return self.send_old

    def value(self, key: Any, value: Any) -> Any:
        return None if value is None else self.compute(key, value)

    def view(self) -> View:
        if self.store_name is not None:
            return store_view(self.store_name)
        parent = self.parent.view()
        if self._is_same:
            return parent

        def compute(key: Any, found: Found) -> Found:
            value = None if found is None else self.compute(key, found.value)
            if found is None or value is None:
                return None
            return ValueAndTimestamp(value, found.timestamp)

        return View(parent.store_names, lambda context: Computed(parent.bind(context), compute))


class _Derived(Processor):
    def __init__(self, table: DerivedTable) -> None:
        self._derived = table
        self._send_old = table.send_old

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        name = self._derived.store_name
        self._table = None if name is None else Materializer(context, name, self._send_old)

    def process(self, record: Record[Any, Change[Any]]) -> None:
        derived, change, old = self._derived, record.value, None
        new = derived.value(record.key, change.new)
        if self._send_old:
            if self._table is not None:
                found = self._table.store.get(record.key)
                old = None if found is None else found.value
            else:
                old = derived.value(record.key, change.old)
            if derived.skips_nothing and not derived.versioned and old is None and new is None:
                return
        if self._table is not None:
            self._table.update(record, new=new, old=old, timestamp=record.timestamp)
        else:
            self.context.forward(record.with_value(Change(new, old, change.is_latest)))


class GroupTable(TableSupplier):
    """Re-keys a table's updates for an aggregation: the old value under its key, then the new."""

    def __init__(self, selector: Callable[[Any, Any], tuple[Any, Any]]) -> None:
        super().__init__()
        self.selector = selector

    def __call__(self) -> Processor:
        return _GroupTable(self)


class _GroupTable(Processor):
    def __init__(self, group: GroupTable) -> None:
        self._select = group.selector
        self._versioned = group.versioned

    def process(self, record: Record[Any, Change[Any]]) -> None:
        change = record.value
        if record.key is None:
            raise StreamsError("Record key for the grouping KTable should not be null.")
        if self._versioned and not change.is_latest:
            return
        new = None if change.new is None else self._select(record.key, change.new)
        old = None if change.old is None else self._select(record.key, change.old)
        if new is not None and (new[0] is None or new[1] is None):
            new = None
        if old is not None and (old[0] is None or old[1] is None):
            old = None
        if old is not None and new is not None and old[0] == new[0]:
            self._send(record, old[0], Change(new[1], old[1], change.is_latest))
            return
        if old is not None:
            self._send(record, old[0], Change(None, old[1], change.is_latest))
        if new is not None:
            self._send(record, new[0], Change(new[1], None, change.is_latest))

    def _send(self, record: Record[Any, Any], key: Any, change: Change[Any]) -> None:
        self.context.forward(Record(key, change, record.timestamp, record.headers))


class TableAggregate(TableSupplier):
    """An aggregate over a grouped table; `initializer` None makes it a reduction."""

    def __init__(
        self,
        store_name: str,
        initializer: Callable[[], Any] | None,
        adder: Callable[[Any, Any, Any], Any],
        subtractor: Callable[[Any, Any, Any], Any],
    ) -> None:
        super().__init__()
        self.store_name = store_name
        self.initializer = initializer
        self.adder = adder
        self.subtractor = subtractor

    def __call__(self) -> Processor:
        return _TableAggregate(self)

    def view(self) -> View:
        return store_view(self.store_name)


class _TableAggregate(Processor):
    def __init__(self, aggregate: TableAggregate) -> None:
        self._aggregate = aggregate

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._table = Materializer(context, self._aggregate.store_name, self._aggregate.send_old)

    def process(self, record: Record[Any, Change[Any]]) -> None:
        if record.key is None:
            raise StreamsError(
                f"Record key for KTable aggregate operator with state "
                f"{self._aggregate.store_name} should not be null."
            )
        key, change, timestamp = record.key, record.value, record.timestamp
        found = self._table.store.get(key)
        old = value = None if found is None else found.value
        if change.old is not None and old is not None:
            value = self._aggregate.subtractor(key, change.old, old)
            timestamp = max(timestamp, found.timestamp)
        if change.new is not None:
            initializer = self._aggregate.initializer
            if value is None and initializer is None:
                value = change.new
            else:
                start = initializer() if value is None and initializer is not None else value
                value = self._aggregate.adder(key, change.new, start)
                if found is not None:
                    timestamp = max(timestamp, found.timestamp)
        self._table.update(record, new=value, old=old, timestamp=timestamp)


class MergedTable(TableSupplier):
    """The one table of a cogroup's aggregates, which share a store."""

    def __init__(self, parents: list[TableSupplier]) -> None:
        super().__init__()
        self._parents = parents

    def __call__(self) -> Processor:
        return _PassOn()

    def enable_sending_old_values(self, force: bool) -> bool:
        for parent in self._parents:
            parent.enable_sending_old_values(force)
        return True

    def view(self) -> View:
        return self._parents[0].view()


class _PassOn(Processor):
    def process(self, record: Record[Any, Any]) -> None:
        self.context.forward(record)


def session_view(store_name: str) -> View:
    """The view of a table of sessions."""

    def bind(context: ProcessorContext) -> NotVersioned:
        store = context.state_store(store_name)

        def get(key: Any) -> Found:
            value = aggregation(store.get(key.key, key.window.start, key.window.end))
            return None if value is None else ValueAndTimestamp(value, key.window.end)

        return NotVersioned(get)

    return View((store_name,), bind)


def window_view(store_name: str) -> View:
    """The view of a table of windows."""

    def bind(context: ProcessorContext) -> NotVersioned:
        store = context.state_store(store_name)

        def get(key: Any) -> Found:
            found = store.get(key.key, key.window.start)
            return None if found is None else ValueAndTimestamp(found[0], found[1])

        return NotVersioned(get)

    return View((store_name,), bind)
