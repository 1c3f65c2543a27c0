"""A table computed row by row with the record's time and place at hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from moldau.streams.machine.context import Processor, ProcessorContext
from moldau.streams.machine.getters import (
    Computed,
    Found,
    Materializer,
    TableSupplier,
    View,
    store_view,
)
from moldau.streams.records import Change, Record, RecordContext, ValueAndTimestamp
from moldau.streams.stores.base import StoreBuilder
from moldau.streams.topology.graph import GraphNode
from moldau.streams.topology.handles import (
    Materialized,
    TableHandle,
    chosen,
    processor_writer,
    table_store,
)

#: Key, row, timestamp, and where the record comes from (None when a store is read).
Compute = Callable[[Any, Any, int, RecordContext | None], Any]


class _ContextTable(TableSupplier):
    def __init__(self, parent: TableSupplier, compute: Compute, store_name: str | None) -> None:
        super().__init__()
        self.parent = parent
        self.compute = compute
        self.store_name = store_name

    def __call__(self) -> Processor:
        return _ContextProcessor(self)

    def enable_sending_old_values(self, force: bool) -> bool:
        if self.store_name is not None or self.parent.enable_sending_old_values(force):
            self.send_old = True
        return self.send_old

    def view(self) -> View:
        if self.store_name is not None:
            return store_view(self.store_name)
        parent = self.parent.view()

        def compute(key: Any, found: Found) -> Found:
            if found is None:
                return None
            value = self.compute(key, found.value, found.timestamp, None)
            return None if value is None else ValueAndTimestamp(value, found.timestamp)

        return View(parent.store_names, lambda context: Computed(parent.bind(context), compute))


class _ContextProcessor(Processor):
    def __init__(self, table: _ContextTable) -> None:
        self._of = table
        self._send_old = table.send_old

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        name = self._of.store_name
        self._table = None if name is None else Materializer(context, name, self._send_old)

    def process(self, record: Record[Any, Change[Any]]) -> None:
        change, compute, old = record.value, self._of.compute, None
        key, timestamp, where = record.key, record.timestamp, self.context.record_context
        new = None if change.new is None else compute(key, change.new, timestamp, where)
        if self._send_old:
            if self._table is not None:
                found = self._table.store.get(key)
                old = None if found is None else found.value
            elif change.old is not None:
                old = compute(key, change.old, timestamp, where)
        if self._table is not None:
            self._table.update(record, new=new, old=old, timestamp=timestamp)
        else:
            self.context.forward(record.with_value(Change(new, old, change.is_latest)))


def context_table(
    table: TableHandle, compute: Compute, store: Materialized | None = None
) -> TableHandle:
    """The table with computed rows, in a store of its own where one is given."""
    parent = table.handle
    builder = parent.builder
    step = builder.new_name("KTABLE-TRANSFORMVALUES-")
    store_name = None if store is None else store.name
    keys, values = parent.key_serde, None
    if store is not None:
        keys, values = chosen(store.key_serde, keys), chosen(store.value_serde, None)
    supplier = _ContextTable(table.supplier, compute, store_name)
    handle = replace(
        parent, name=step, node=parent.node, key_serde=keys, value_serde=values, repartitions={}
    )
    stores: tuple[StoreBuilder, ...] = ()
    if store is not None and store_name is not None:
        stores = (table_store(store_name, store, handle.keys, handle.values),)
    node = GraphNode(step, processor_writer(step, supplier, stores=stores))
    builder.add(node, parent.node)
    return TableHandle(handle=replace(handle, node=node), supplier=supplier, store_name=store_name)
