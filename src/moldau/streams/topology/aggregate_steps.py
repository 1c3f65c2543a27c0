"""Aggregations of grouped streams."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from moldau.streams.machine.aggregates import StreamAggregate
from moldau.streams.machine.getters import TableSupplier
from moldau.streams.machine.tables import MergedTable
from moldau.streams.serdes import Serde, SessionWindowedSerde, TimeWindowedSerde
from moldau.streams.stores.base import StoreBuilder
from moldau.streams.stores.builders import session_store, window_store
from moldau.streams.topology.graph import GraphBuilder, GraphNode, repartition_node
from moldau.streams.topology.handles import (
    Handle,
    Materialized,
    TableHandle,
    chosen,
    materialized,
    processor_writer,
    table_store,
)
from moldau.streams.windows import (
    EmitStrategy,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    UnlimitedWindows,
)

Windows = TimeWindows | UnlimitedWindows | SlidingWindows | SessionWindows


class Grouped(NamedTuple):
    """A grouped stream: where it is, and the name of its repartition topic if one was given."""

    handle: Handle
    name: str | None


class Aggregation(NamedTuple):
    """What is computed: `initializer` None is a reduction; sessions also need a `merger`."""

    initializer: Callable[[], Any] | None
    aggregator: Callable[[Any, Any, Any], Any]
    merger: Callable[[Any, Any, Any], Any] | None = None
    windows: Windows | None = None
    emit: EmitStrategy = EmitStrategy.ON_WINDOW_UPDATE


def reduction(reducer: Callable[[Any, Any], Any]) -> dict[str, Any]:
    """A reduction as an aggregation: the first value stands for itself."""

    def add(key: Any, value: Any, total: Any) -> Any:
        return value if total is None else reducer(total, value)

    return {
        "initializer": None,
        "aggregator": add,
        "merger": lambda key, one, two: add(key, two, one),
    }


def _supplier(store_name: str, what: Aggregation) -> TableSupplier:
    windows = what.windows
    if windows is None:
        return StreamAggregate(store_name, what.initializer, what.aggregator)
    # Imported here: most programs have no windows.
    from moldau.streams.machine.sliding import SlidingAggregate
    from moldau.streams.machine.window_aggregates import SessionAggregate, WindowAggregate

    if isinstance(windows, SlidingWindows):
        return SlidingAggregate(store_name, windows, what.initializer, what.aggregator, what.emit)
    if isinstance(windows, SessionWindows):
        if what.merger is None:
            raise ValueError("an aggregation of sessions needs a merger")
        initializer = what.initializer or (lambda: None)
        return SessionAggregate(
            store_name, windows, initializer, what.aggregator, what.merger, what.emit
        )
    return WindowAggregate(store_name, windows, what.initializer, what.aggregator, what.emit)


def _window_store(
    name: str,
    spec: Materialized,
    windows: Windows,
    emit: EmitStrategy,
    handle: Handle,
) -> StoreBuilder:
    grace = windows.grace_ms
    if isinstance(windows, SessionWindows):
        needed, size = windows.inactivity_gap_ms + grace, 0
        message = f"The retention period of the session store {name} must be no smaller than the "
        message += f"session inactivity gap plus the grace period. Got gap=[{needed - grace}]"
    elif isinstance(windows, SlidingWindows):
        needed, size = 2 * windows.time_difference_ms + grace, windows.time_difference_ms
        message = f"The retention period of the window store {name} must be no smaller than "
        message += f"2 * time difference plus the grace period. Got time difference=[{size}]"
    else:
        needed, size = windows.size_ms + grace, windows.size_ms
        message = f"The retention period of the window store {name} must be no smaller than its "
        message += f"window size plus the grace period. Got size=[{size}]"
    retention = needed if spec.retention_ms is None else spec.retention_ms
    if retention < needed:
        raise ValueError(f"{message}, grace=[{grace}], retention=[{retention}]")
    caching = spec.caching and emit is not EmitStrategy.ON_WINDOW_CLOSE
    if isinstance(windows, SessionWindows):
        return session_store(
            name,
            key_serde=handle.keys,
            value_serde=handle.values,
            retention=retention,
            caching=caching,
            headers=spec.headers,
            **spec.options,
        )
    return window_store(
        name,
        key_serde=handle.keys,
        value_serde=handle.values,
        window_size=size,
        retention=retention,
        caching=caching,
        headers=spec.headers,
        **spec.options,
    )


def _make_store(
    name: str, spec: Materialized, what: Aggregation, handle: Handle
) -> StoreBuilder:
    if what.windows is None:
        return table_store(name, spec, handle.keys, handle.values)
    return _window_store(name, spec, what.windows, what.emit, handle)


def _grace_ms(windows: Windows | None) -> int | None:
    if isinstance(windows, SessionWindows):
        return windows.grace_ms + windows.inactivity_gap_ms
    return None if windows is None else windows.grace_ms


def _windowed_keys(handle: Handle, windows: Windows | None) -> Serde[Any] | None:
    if windows is None:
        return handle.key_serde
    if isinstance(windows, SessionWindows):
        return SessionWindowedSerde(handle.keys)
    sliding = isinstance(windows, SlidingWindows)
    size = windows.time_difference_ms if sliding else windows.size_ms  # type: ignore[union-attr]
    return TimeWindowedSerde(handle.keys, size)


def _parent(grouped: Grouped, store_name: str) -> tuple[GraphNode, frozenset[str]]:
    """The node before an aggregation: after a repartition topic, where the key has changed."""
    handle = grouped.handle
    if not handle.repartition_required:
        return handle.node, handle.sources
    prefix = grouped.name or store_name
    node = repartition_node(
        handle.builder, prefix, key_serde=handle.key_serde, value_serde=handle.value_serde
    )
    before = handle.repartitions.get(prefix)
    if before is not None and grouped.name is not None:
        node = before
    else:
        handle.repartitions[prefix] = node
        handle.builder.add(node, handle.node)
    return node, frozenset({node.name})


def aggregate_stream(
    grouped: Grouped,
    what: Aggregation,
    *,
    prefix: str,
    store: str | Materialized | None,
    name: str | None,
    value_serde: Serde[Any] | None,
    is_count: bool = False,
) -> TableHandle:
    """Count, reduce or aggregate a grouped stream, by windows or over all time."""
    handle, spec = grouped.handle, materialized(store) or Materialized()
    builder = handle.builder
    unnamed = store is not None and spec.name is None
    if is_count and unnamed and not isinstance(what.windows, SlidingWindows):
        # Kafka Streams lost a number here once, where a Materialized was given, and keeps the names
        # that followed from it. Its sliding windows came later.
        builder.new_store_name(prefix)
    store_name = spec.name or builder.new_store_name(prefix)
    step = builder.name_or_new(name, prefix)
    parent, sources = _parent(grouped, store_name)
    inner = replace(
        handle,
        name=step,
        key_serde=chosen(spec.key_serde, handle.key_serde),
        value_serde=chosen(spec.value_serde, value_serde),
        sources=sources,
        repartition_required=False,
        repartitions={},
    )
    supplier = _supplier(store_name, what)
    made = _make_store(store_name, spec, what, inner)
    node = GraphNode(step, processor_writer(step, supplier, stores=(made,)))
    node.output_versioned = spec.history is not None
    node.window_grace_ms = _grace_ms(what.windows)
    builder.add(node, parent)
    result = replace(inner, node=node, key_serde=_windowed_keys(inner, what.windows))
    return TableHandle(handle=result, supplier=supplier, store_name=spec.name)


def aggregate_cogroup(
    groups: list[tuple[Grouped, Callable[[Any, Any, Any], Any]]],
    what: Aggregation,
    *,
    store: str | Materialized | None,
    name: str | None,
) -> TableHandle:
    """Aggregate several grouped streams into one table."""
    spec = materialized(store) or Materialized()
    first = groups[0][0].handle
    builder: GraphBuilder = first.builder
    prefix = "COGROUPKSTREAM-AGGREGATE-"
    store_name = spec.name or builder.new_store_name(prefix)
    parents = [_parent(grouped, store_name) for grouped, _ in groups]
    sources = frozenset(name for _, names in parents for name in names)
    builder.assembly.copartitioned.append(set(sources))
    inner = replace(
        first,
        key_serde=chosen(spec.key_serde, first.key_serde),
        value_serde=chosen(spec.value_serde, None),
        sources=sources,
        repartition_required=False,
        repartitions={},
    )
    made = _make_store(store_name, spec, what, inner)
    suppliers, nodes = [], []
    for index, ((_, aggregator), (parent, _names)) in enumerate(zip(groups, parents, strict=True)):
        step = builder.suffixed_or_new(name, f"-cogroup-agg-{index}", prefix)
        supplier = _supplier(store_name, what._replace(aggregator=aggregator))
        if index == 0:
            writer = processor_writer(step, supplier, stores=(made,))
        else:
            writer = processor_writer(step, supplier, store_names=(store_name,))
        node = GraphNode(step, writer)
        node.window_grace_ms = _grace_ms(what.windows)
        node.output_versioned = spec.history is not None
        suppliers.append(supplier)
        nodes.append(builder.add(node, parent))
    merge_name = builder.suffixed_or_new(name, "-cogroup-merge", "COGROUPKSTREAM-MERGE-")
    merged = MergedTable(suppliers)
    writer = processor_writer(merge_name, merged)
    merge = builder.add(GraphNode(merge_name, writer), *nodes)
    result = replace(
        inner, name=merge_name, node=merge, key_serde=_windowed_keys(inner, what.windows)
    )
    return TableHandle(handle=result, supplier=merged, store_name=spec.name)
