"""Joins of streams, and which join of tables it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from moldau.streams.errors import StreamsError, TopologyError
from moldau.streams.machine._join_steps import own_key
from moldau.streams.machine.definitions import Partitioner
from moldau.streams.machine.getters import View
from moldau.streams.machine.stateless import PassThrough
from moldau.streams.machine.stream_joins import (
    Joiner,
    JoinWindow,
    SelfJoin,
    SharedClock,
    StreamJoin,
    StreamJoinSpec,
    StreamTableJoin,
    TableJoinSpec,
)
from moldau.streams.serdes import Serde, SerdeLike
from moldau.streams.stores.base import StoreBuilder, StoreOptions
from moldau.streams.stores.buffers import JoinBuffer
from moldau.streams.stores.builders import window_store
from moldau.streams.stores.lists import ListStore
from moldau.streams.topology.assembly import Assembly
from moldau.streams.topology.foreign_key_steps import ForeignKeyJoinStep
from moldau.streams.topology.graph import GraphNode
from moldau.streams.topology.handles import (
    Handle,
    Materialized,
    TableHandle,
    chosen,
    processor_writer,
    repartitioned,
)
from moldau.streams.topology.join_options import StreamJoined, StreamJoinOptions
from moldau.streams.topology.table_steps import join_tables
from moldau.streams.windows import JoinWindows, millis

_DEFAULT_STORES = StreamJoined()
_NOT_VERSIONED = "KTable must be versioned to use a grace period in a stream table join."


def _window_store(
    name: str, keys: Serde[Any], values: Serde[Any], windows: JoinWindows, options: StoreOptions
) -> StoreBuilder:
    made = window_store(
        name,
        key_serde=keys,
        value_serde=values,
        window_size=windows.size_ms,
        retention=windows.size_ms + windows.grace_ms,
        retain_duplicates=True,
        timestamped=False,
        **options,
    )
    made.logs_headers = True
    return made


def _join_stores(
    left: Handle,
    right: Handle,
    windows: JoinWindows,
    stores: StreamJoined,
    names: tuple[str, str],
) -> tuple[StoreBuilder, StoreBuilder]:
    """The two window stores of a join of streams; `names` are for those that have none."""
    retention_ms = windows.size_ms + windows.grace_ms
    given = [each.name for each in (stores.this, stores.other) if each is not None]
    if None in given:
        raise TopologyError("the store of a side of a join needs a name")
    if len(given) > len(set(given)):
        raise StreamsError(
            "Both StoreSuppliers have the same name.  StoreSuppliers must provide unique names"
        )
    made = []
    for spec, name, values in (
        (stores.this, names[0], left.values),
        (stores.other, names[1], right.values),
    ):
        options = stores.options
        if spec is not None:
            if spec.retention_ms not in (None, retention_ms):
                raise StreamsError(
                    f"Window settings mismatch. The retention [{spec.retention_ms}] of store "
                    f"{spec.name} must match JoinWindows settings "
                    f"JoinWindows{{beforeMs={windows.before_ms}, afterMs={windows.after_ms}, "
                    f"graceMs={windows.grace_ms}}} "
                    f"for the window size and retention period"
                )
            if spec.headers is not None:
                raise TopologyError(f"store {spec.name} of a join of streams keeps no headers")
            name, options = spec.name or name, spec.options
        made.append(_window_store(name, left.keys, values, windows, options))
    return made[0], made[1]


class StreamJoinStep:
    """A join of two streams. Names and numbers are taken in Kafka Streams' order."""

    def __init__(
        self,
        left: Handle,
        right: Handle,
        joiner: Joiner,
        windows: JoinWindows,
        *,
        left_outer: bool,
        right_outer: bool,
        name: str | None,
        store_name: str | None,
        stores: StreamJoined = _DEFAULT_STORES,
        waits_for_grace: bool = True,
    ) -> None:
        """`waits_for_grace` False emits records without a match at once, as before KIP-633."""
        self._builder = left.builder
        if left.repartition_required:
            prefix = left.name if name is None else f"{name}-left"
            left = repartitioned(left, prefix, reuse=prefix == left.name)
        if right.repartition_required:
            prefix = right.name if name is None else f"{name}-right"
            right = repartitioned(right, prefix, reuse=prefix == right.name)
        self._left, self._right = left, right
        self._windows, self._joiner = windows, joiner
        self._left_outer, self._right_outer = left_outer, right_outer
        new, suffixed = self._builder.new_name, self._builder.suffixed_or_new
        self._windowed = (
            suffixed(name, "-this-windowed", "KSTREAM-WINDOWED-"),
            suffixed(name, "-other-windowed", "KSTREAM-WINDOWED-"),
        )
        this_new = new("KSTREAM-OUTERTHIS-" if right_outer else "KSTREAM-JOINTHIS-")
        other_new = new("KSTREAM-OUTEROTHER-" if left_outer else "KSTREAM-JOINOTHER-")
        this_suffix = "-outer-this-join" if right_outer else "-this-join"
        other_suffix = "-outer-other-join" if left_outer else "-other-join"
        self._this = this_new if name is None else name + this_suffix
        self._other = other_new if name is None else name + other_suffix
        self._merge = suffixed(name, "-merge", "KSTREAM-MERGE-")
        this_store = this_new if store_name is None else store_name + this_suffix
        other_store = other_new if store_name is None else store_name + other_suffix
        names = f"{this_store}-store", f"{other_store}-store"
        self._stores = _join_stores(left, right, windows, stores, names)
        self._shared: StoreBuilder | None = None
        if left_outer and waits_for_grace:
            shared = f"KSTREAM-OUTERSHARED-{this_new[-10:]}-store"
            base = store_name if stores.this is None else stores.this.name
            if base is not None:
                kind = "outer" if right_outer else "left"
                shared = f"{base}-{kind}-shared-join-store"
            self._shared = StoreBuilder(
                shared, lambda at: ListStore(shared, at.log), **stores.options
            )
        self._is_self_join = False

    def add(self) -> Handle:
        builder, left, right = self._builder, self._left, self._right
        for name, store, parent in (
            (self._windowed[0], self._stores[0], left),
            (self._windowed[1], self._stores[1], right),
        ):
            writer = processor_writer(name, lambda made=store: JoinWindow(made.name))  # type: ignore[misc]
            builder.add(GraphNode(name, writer), parent.node)
        node = GraphNode(self._merge, self._write)
        node.is_value_changing = True
        node.wants_null_keys = self._left_outer or self._right_outer
        node.windowed_names = self._windowed
        # A record always matches itself, so left and outer self joins are inner ones.
        node.make_self_join = self._make_self_join
        builder.add(node, left.node)
        builder.add(node, right.node)
        sources = left.sources | right.sources
        builder.assembly.copartitioned.append(set(sources))
        return replace(
            left,
            name=self._merge,
            node=node,
            value_serde=None,
            sources=sources,
            repartition_required=False,
            repartitions={},
        )

    def _make_self_join(self) -> None:
        self._is_self_join = True

    def _write(self, assembly: Assembly, parents: list[str]) -> None:
        this_store, other_store = self._stores
        if self._is_self_join:
            assembly.add_processor(
                self._merge,
                lambda: SelfJoin(this_store.name, self._windows, self._joiner),
                [self._windowed[0]],
            )
            assembly.add_state_store(this_store, self._windowed[0], self._merge)
            return
        clock = SharedClock()
        for name, parent, is_left in (
            (self._this, self._windowed[0], True),
            (self._other, self._windowed[1], False),
        ):
            spec = StreamJoinSpec(
                is_left=is_left,
                outer=self._left_outer if is_left else self._right_outer,
                other_store=(other_store if is_left else this_store).name,
                shared_store=None if self._shared is None else self._shared.name,
                windows=self._windows,
                joiner=self._joiner,
                key_serde=self._left.keys,
                left_serde=self._left.values,
                right_serde=self._right.values,
                clock=clock,
            )
            assembly.add_processor(name, lambda made=spec: StreamJoin(made), [parent])  # type: ignore[misc]
        assembly.add_processor(self._merge, PassThrough, [self._this, self._other])
        assembly.add_state_store(this_store, self._windowed[0], self._other)
        assembly.add_state_store(other_store, self._windowed[1], self._this)
        if self._shared is not None:
            assembly.add_state_store(self._shared, self._this, self._other)


def join_stream_table(
    stream: Handle,
    table: TableHandle,
    joiner: Joiner,
    *,
    left: bool,
    name: str | None,
    grace_ms: int | None,
) -> Handle:
    """A join of a stream with a table."""
    if stream.repartition_required:
        prefix = stream.name if name is None else name
        stream = repartitioned(stream, prefix, reuse=prefix == stream.name)
    builder, view = stream.builder, table.supplier.view()
    prefix = "KSTREAM-LEFTJOIN-" if left else "KSTREAM-JOIN-"
    step = builder.name_or_new(name, prefix)
    buffer_name = None
    stores: tuple[StoreBuilder, ...] = ()
    if grace_ms is not None:
        if table.handle.node.output_versioned is False:
            raise ValueError(_NOT_VERSIONED)
        buffer_name = f"{step}-Buffer"
        stores = (_join_buffer(buffer_name, stream, grace_ms),)
    spec = TableJoinSpec(view=view, joiner=joiner, left=left, key=own_key, buffer_name=buffer_name)

    def write(assembly: Assembly, parents: list[str]) -> None:
        assembly.add_processor(step, lambda: StreamTableJoin(spec), parents)
        for made in stores:
            assembly.add_state_store(made, step)
        for store in view.store_names:
            assembly.connect(step, store)
            if grace_ms is not None:
                _check_history(assembly.stores[store], grace_ms)

    node = GraphNode(step, write)
    node.is_value_changing = True
    node.wants_null_keys = left
    builder.add(node, stream.node)
    sources = stream.sources | table.handle.sources
    builder.assembly.copartitioned.append(set(sources))
    return replace(stream, name=step, node=node, value_serde=None, sources=sources, repartitions={})


def _join_buffer(name: str, stream: Handle, grace_ms: int) -> StoreBuilder:
    keys, values = stream.keys, stream.values
    return StoreBuilder(name, lambda at: JoinBuffer(name, keys, values, grace_ms, at.log, at.topic))


def _check_history(store: StoreBuilder, grace_ms: int) -> None:
    if store.history_ms is None:
        raise ValueError(_NOT_VERSIONED)
    if grace_ms > store.history_ms:
        raise ValueError("History retention must be at least grace period.")


def join_global(
    stream: Handle,
    view: View,
    key: Callable[[Any, Any], Any],
    joiner: Joiner,
    *,
    left: bool,
    name: str | None,
) -> Handle:
    """A join of a stream with a global table; the stream needs no repartition."""
    step = stream.builder.name_or_new(name, "KSTREAM-LEFTJOIN-")
    spec = TableJoinSpec(view=view, joiner=joiner, left=left, key=key)
    node = GraphNode(step, processor_writer(step, lambda: StreamTableJoin(spec)))
    node.is_value_changing = True
    node.wants_null_keys = left
    stream.builder.add(node, stream.node)
    return replace(stream, name=step, node=node, value_serde=None, repartitions={})


def join_stream(
    at: Handle,
    target: Handle | TableHandle | View,
    joiner: Callable[..., Any],
    outer: tuple[bool, bool],
    options: StreamJoinOptions,
) -> Handle:
    """Join a stream with whatever it is."""

    def without_key(record_key: Any, left: Any, right: Any) -> Any:
        return joiner(left, right)

    join: Joiner = joiner if options.get("with_key") else without_key
    name = options.get("name")
    if isinstance(target, View):
        lookup = options.get("key") or (lambda record_key, value: record_key)
        return join_global(at, target, lookup, join, left=outer[0], name=name)
    at = _with_serdes(at, options.get("key_serde"), options.get("value_serde"))
    if isinstance(target, TableHandle):
        grace = options.get("grace")
        grace_ms = None if grace is None else millis(grace)
        return join_stream_table(at, target, join, left=outer[0], name=name, grace_ms=grace_ms)
    windows, store = options.get("windows"), options.get("store")
    if windows is None:
        raise TopologyError("a join of two streams needs windows=JoinWindows(...)")
    stores = store if isinstance(store, StreamJoined) else StreamJoined(name=store)
    return StreamJoinStep(
        at,
        _with_serdes(target, options.get("key_serde"), options.get("other_value_serde")),
        join,
        windows,
        left_outer=outer[0],
        right_outer=outer[1],
        name=name,
        store_name=stores.name,
        stores=stores,
    ).add()


def _with_serdes(at: Handle, keys: SerdeLike | None, values: SerdeLike | None) -> Handle:
    return replace(
        at, key_serde=chosen(keys, at.key_serde), value_serde=chosen(values, at.value_serde)
    )


def join_table(
    mine: TableHandle,
    theirs: TableHandle,
    joiner: Callable[[Any, Any], Any],
    outer: tuple[bool, bool],
    foreign_key: Callable[[Any, Any], Any] | None,
    store: str | Materialized | None,
    name: str | None,
    partitioners: tuple[Partitioner | None, Partitioner | None] = (None, None),
) -> TableHandle:
    """Join two tables by key, or by a foreign key; `partitioners` are of their topics."""
    if foreign_key is not None:
        return ForeignKeyJoinStep(
            mine,
            theirs,
            foreign_key,
            joiner,
            left_outer=outer[0],
            name=name,
            store=store,
            partitioners=partitioners,
        ).add()
    return join_tables(
        mine,
        theirs,
        joiner,
        left_outer=outer[0],
        right_outer=outer[1],
        name=name,
        store=store,
    )
