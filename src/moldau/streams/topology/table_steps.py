"""Operators of tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from moldau.streams.errors import TopologyError
from moldau.streams.machine.getters import TableSupplier
from moldau.streams.machine.stateless import ToStream
from moldau.streams.machine.table_joins import (
    JoinKind,
    SuppressTable,
    TableJoinMerge,
    TableJoinSide,
)
from moldau.streams.machine.tables import DerivedTable, GroupTable, TableAggregate, TableSource
from moldau.streams.records import Change
from moldau.streams.serdes import Serde, SerdeLike, serde
from moldau.streams.stores.base import StoreBuilder
from moldau.streams.stores.buffers import SuppressBuffer
from moldau.streams.stores.formats import change_value, read_change_value
from moldau.streams.topology.assembly import Assembly
from moldau.streams.topology.graph import GraphBuilder, GraphNode
from moldau.streams.topology.handles import (
    Handle,
    Materialized,
    TableHandle,
    add_step,
    chosen,
    materialized,
    processor_writer,
    table_store,
)
from moldau.streams.windows import Suppressed


def source_table(
    builder: GraphBuilder,
    topic: str,
    *,
    key_serde: SerdeLike | None,
    value_serde: SerdeLike | None,
    store: str | Materialized | None,
    name: str | None,
    extractor: Any,
    offset_reset: str | None,
) -> TableHandle:
    """A table from a topic."""
    spec = materialized(store) or Materialized()
    store_name = spec.name or builder.new_store_name(f"{topic}-")
    source = builder.suffixed_or_new(name, "-source", "KSTREAM-SOURCE-")
    table_name = builder.name_or_new(name, "KTABLE-SOURCE-")
    keys = chosen(spec.key_serde, serde(key_serde))
    values = chosen(spec.value_serde, serde(value_serde))
    supplier = TableSource(store_name, queryable=spec.name is not None)
    reuse: list[bool] = []

    def write(assembly: Assembly, parents: list[str]) -> None:
        assembly.add_source(
            source,
            [topic],
            key_serde=keys,
            value_serde=values,
            timestamp_extractor=extractor,
            offset_reset=offset_reset,
        )
        assembly.add_processor(table_name, supplier, [source])
        if supplier.materialized:
            made = table_store(
                store_name,
                spec,
                keys or assembly.default_key_serde,
                values or assembly.default_value_serde,
            )
            if reuse:
                made.logging = False
                assembly.source_changelogs[store_name] = topic
            assembly.add_state_store(made, table_name)

    node = GraphNode(table_name, write)
    node.output_versioned = spec.history is not None
    node.reuse_source_topic = lambda: reuse.append(True)
    builder.add(node)
    handle = Handle(
        builder=builder,
        name=table_name,
        node=node,
        key_serde=keys,
        value_serde=values,
        sources=frozenset({source}),
    )
    return TableHandle(handle=handle, supplier=supplier, store_name=spec.name)


def derive(
    table: TableHandle,
    prefix: str,
    compute: Callable[[Any, Any], Any],
    *,
    name: str | None,
    store: str | Materialized | None,
    keeps_values: bool,
    is_same: bool = False,
) -> TableHandle:
    """A filter (which keeps values) or mapped values; `is_same`: under other names only."""
    parent, spec = table.handle, materialized(store)
    builder = parent.builder
    if spec is not None and spec.name is None:
        builder.new_store_name(prefix)
    step = builder.name_or_new(name, prefix)
    keys, values = parent.key_serde, parent.value_serde if keeps_values else None
    if spec is not None:
        keys, values = chosen(spec.key_serde, keys), chosen(spec.value_serde, values)
    store_name = None if spec is None else spec.name
    supplier = DerivedTable(
        table.supplier, compute, store_name, skips_nothing=keeps_values, is_same=is_same
    )
    handle = replace(
        parent, name=step, node=parent.node, key_serde=keys, value_serde=values, repartitions={}
    )
    stores: tuple[StoreBuilder, ...] = ()
    if spec is not None and store_name is not None:
        stores = (table_store(store_name, spec, handle.keys, handle.values),)
    node = GraphNode(step, processor_writer(step, supplier, stores=stores))
    if spec is not None:
        node.output_versioned = spec.history is not None
    if keeps_values:
        node.on_versioned_parent = lambda _: setattr(supplier, "versioned", True)
    builder.add(node, parent.node)
    return TableHandle(handle=replace(handle, node=node), supplier=supplier, store_name=store_name)


def to_stream(table: TableHandle, name: str | None) -> Handle:
    """A table's updates as a stream."""
    parent = table.handle
    step = parent.builder.name_or_new(name, "KTABLE-TOSTREAM-")
    node = add_step(parent, step, ToStream)
    return replace(parent, name=step, node=node, repartitions={})


def suppress(table: TableHandle, suppressed: Suppressed) -> TableHandle:
    """Hold updates back."""
    parent = table.handle
    builder = parent.builder
    if parent.node.output_versioned:
        raise TopologyError("suppress() is only supported for non-versioned KTables")
    step = suppressed.name
    if step is None:
        step = builder.new_name("KTABLE-SUPPRESS-")
    wait_ms = suppressed.limit_ms
    if suppressed.until == "window_closes":
        wait_ms = builder.grace_of(parent.node)
    store_name = f"{suppressed.name}-store"
    if suppressed.name is None:
        store_name = builder.new_store_name("KTABLE-SUPPRESS-")
    table.supplier.enable_sending_old_values(True)
    supplier = SuppressTable(table.supplier, suppressed, store_name, wait_ms)
    buffer = StoreBuilder(
        store_name,
        lambda at: SuppressBuffer(store_name, parent.keys, parent.values, at.log, at.topic),
        logging=suppressed.logging,
        changelog_config=suppressed.changelog_config,
    )
    node = GraphNode(step, processor_writer(step, supplier, stores=(buffer,)))
    node.output_versioned = False
    node.is_suppress = True
    builder.add(node, parent.node)
    handle = replace(parent, name=step, node=node, repartitions={})
    return TableHandle(handle=handle, supplier=supplier)


def _sides(
    left: TableSupplier,
    right: TableSupplier,
    joiner: Callable[[Any, Any], Any],
    outer: tuple[bool, bool],
) -> tuple[TableJoinSide, TableJoinSide]:
    """The two processors of a join; the right one sees the values the other way round."""
    kind: JoinKind = "inner"
    other: JoinKind = "inner"
    if outer[0]:
        kind, other = ("outer", "outer") if outer[1] else ("left", "right")
    return (
        TableJoinSide(left, right, joiner, kind),
        TableJoinSide(right, left, lambda a, b: joiner(b, a), other),
    )


def join_tables(
    left: TableHandle,
    right: TableHandle,
    joiner: Callable[[Any, Any], Any],
    *,
    left_outer: bool,
    right_outer: bool,
    name: str | None,
    store: str | Materialized | None,
) -> TableHandle:
    """A join of two tables by their keys."""
    this, other = left.handle, right.handle
    builder, spec = this.builder, materialized(store)
    merge_name = builder.name_or_new(name, "KTABLE-MERGE-")
    if left_outer:
        left.supplier.enable_sending_old_values(True)
    if right_outer:
        right.supplier.enable_sending_old_values(True)
    mine, theirs = _sides(left.supplier, right.supplier, joiner, (left_outer, right_outer))
    this_name = builder.suffixed_or_new(name, "-join-this", "KTABLE-JOINTHIS-")
    other_name = builder.suffixed_or_new(name, "-join-other", "KTABLE-JOINOTHER-")
    store_name = None
    if spec is not None:
        store_name = spec.name or builder.new_store_name("KTABLE-MERGE-")
    merge = TableJoinMerge(mine, theirs, store_name)
    handle = replace(
        this,
        name=merge_name,
        key_serde=this.key_serde if spec is None else chosen(spec.key_serde, this.key_serde),
        value_serde=None if spec is None else serde(spec.value_serde),
        sources=this.sources | other.sources,
        repartitions={},
    )
    this_stores, other_stores = left.supplier.view(), right.supplier.view()

    def write(assembly: Assembly, parents: list[str]) -> None:
        assembly.add_processor(this_name, mine, [this.name])
        assembly.add_processor(other_name, theirs, [other.name])
        assembly.add_processor(merge_name, merge, [this_name, other_name])
        for each in other_stores.store_names:
            assembly.connect(this_name, each)
        for each in this_stores.store_names:
            assembly.connect(other_name, each)
        if spec is not None and store_name is not None:
            made = table_store(store_name, spec, handle.keys, handle.values)
            assembly.add_state_store(made, merge_name)

    def on_versioned_parent(parent: str) -> None:
        if parent == this.node.name:
            mine.versioned = True
        if parent == other.node.name:
            theirs.versioned = True

    node = GraphNode(merge_name, write)
    node.output_versioned = spec is not None and spec.history is not None
    node.on_versioned_parent = on_versioned_parent
    builder.add(node, this.node)
    builder.add(node, other.node)
    builder.assembly.copartitioned.append(set(handle.sources))
    return TableHandle(handle=replace(handle, node=node), supplier=merge, store_name=store_name)


class ChangeSerde:
    """A table's update in a repartition topic."""

    def __init__(self, inner: Serde[Any]) -> None:
        self._inner = inner

    def serialize(self, topic: str, value: Change[Any] | None) -> bytes | None:
        if value is None:
            return None
        new = self._inner.serialize(topic, value.new)
        return change_value(new, self._inner.serialize(topic, value.old))

    def deserialize(self, topic: str, data: bytes | None) -> Change[Any] | None:
        if data is None:
            return None
        new, old = read_change_value(data)
        return Change(self._inner.deserialize(topic, new), self._inner.deserialize(topic, old))


def group_table(
    table: TableHandle,
    selector: Callable[[Any, Any], tuple[Any, Any]],
    *,
    key_serde: SerdeLike | None,
    value_serde: SerdeLike | None,
    name: str | None,
) -> Handle:
    """Re-key a table for an aggregation."""
    parent = table.handle
    step = parent.builder.name_or_new(name, "KTABLE-SELECT-")
    supplier = GroupTable(selector)
    node = GraphNode(step, processor_writer(step, supplier))
    node.on_versioned_parent = lambda _: setattr(supplier, "versioned", True)
    parent.builder.add(node, parent.node)
    table.supplier.enable_sending_old_values(True)
    return replace(
        parent,
        name=step,
        node=node,
        key_serde=serde(key_serde),
        value_serde=serde(value_serde),
        repartitions={},
    )


def aggregate_table(
    grouped: Handle,
    group_name: str | None,
    *,
    prefix: str,
    initializer: Callable[[], Any] | None,
    adder: Callable[[Any, Any, Any], Any],
    subtractor: Callable[[Any, Any, Any], Any],
    store: str | Materialized | None,
    name: str | None,
    value_serde: Serde[Any] | None,
) -> TableHandle:
    """Count, reduce or aggregate a grouped table."""
    builder, spec = grouped.builder, materialized(store) or Materialized()
    # Kafka names the store of a reduction after an aggregation, too.
    store_name = spec.name or builder.new_store_name("KTABLE-AGGREGATE-")
    sink = builder.suffixed_or_new(name, "-sink", "KSTREAM-SINK-")
    source = builder.suffixed_or_new(name, "-source", "KSTREAM-SOURCE-")
    step = builder.name_or_new(name, prefix)
    topic = f"{group_name or store_name}-repartition"
    change = ChangeSerde(grouped.values)

    def write_topic(assembly: Assembly, parents: list[str]) -> None:
        assembly.internal_topics[topic] = None
        assembly.add_sink(sink, topic, parents, key_serde=grouped.keys, value_serde=change)
        assembly.add_source(source, [topic], key_serde=grouped.keys, value_serde=change)

    before = grouped.repartitions.get(topic)
    if before is None or group_name is None:
        before = grouped.repartitions[topic] = GraphNode(source, write_topic)
        builder.add(before, grouped.node)
    supplier = TableAggregate(store_name, initializer, adder, subtractor)
    handle = replace(
        grouped,
        name=step,
        key_serde=chosen(spec.key_serde, grouped.key_serde),
        value_serde=chosen(spec.value_serde, value_serde),
        sources=frozenset({source}),
        repartitions={},
    )
    made = table_store(store_name, spec, handle.keys, handle.values)
    node = GraphNode(step, processor_writer(step, supplier, stores=(made,)))
    node.output_versioned = spec.history is not None
    builder.add(node, before)
    return TableHandle(handle=replace(handle, node=node), supplier=supplier, store_name=spec.name)
