"""Joins of streams, and of tables by a foreign key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from moldau.streams.errors import TopologyError
from moldau.streams.machine._join_steps import own_key
from moldau.streams.machine.foreign_key import (
    ForeignTable,
    ResponseJoin,
    SubscriptionJoin,
    SubscriptionReceive,
    SubscriptionSend,
)
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
from moldau.streams.machine.tables import TableSource
from moldau.streams.serdes import BYTES, Serde, serde
from moldau.streams.stores.base import StoreBuilder
from moldau.streams.stores.buffers import JoinBuffer
from moldau.streams.stores.formats import (
    Subscription,
    read_response_value,
    read_subscription_value,
    response_value,
    subscription_value,
)
from moldau.streams.stores.key_value import TimestampedKeyValueStore
from moldau.streams.stores.lists import ListStore
from moldau.streams.stores.windowed import WindowStore
from moldau.streams.topology.assembly import Assembly
from moldau.streams.topology.graph import GraphNode
from moldau.streams.topology.handles import (
    Handle,
    Materialized,
    TableHandle,
    chosen,
    materialized,
    processor_writer,
    repartitioned,
    table_store,
)
from moldau.streams.topology.table_steps import join_tables
from moldau.streams.windows import Duration, JoinWindows, millis

_NOT_VERSIONED = "KTable must be versioned to use a grace period in a stream table join."


def _window_store(
    name: str, keys: Serde[Any], values: Serde[Any], windows: JoinWindows
) -> StoreBuilder:
    return StoreBuilder(
        name,
        lambda at: WindowStore(
            name,
            keys,
            values,
            retention_ms=windows.size_ms + windows.grace_ms,
            window_size_ms=windows.size_ms,
            retain_duplicates=True,
            timestamped=False,
            log=at.log,
            drop=at.drop,
            storage=at.storage,
            cache=at.cache,
            topic=at.topic,
        ),
        retention_ms=windows.size_ms + windows.grace_ms,
    )


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
        self._stores = (
            _window_store(f"{this_store}-store", left.keys, left.values, windows),
            _window_store(f"{other_store}-store", left.keys, right.values, windows),
        )
        self._shared: StoreBuilder | None = None
        if left_outer and waits_for_grace:
            shared = f"KSTREAM-OUTERSHARED-{this_new[-10:]}-store"
            if store_name is not None:
                kind = "outer" if right_outer else "left"
                shared = f"{store_name}-{kind}-shared-join-store"
            self._shared = StoreBuilder(shared, lambda at: ListStore(shared, at.log))
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
    spec = TableJoinSpec(
        view=view, joiner=joiner, left=left, key=own_key, buffer_name=buffer_name
    )

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
    return StoreBuilder(name, lambda at: JoinBuffer(
            name, keys, values, grace_ms, at.log, at.topic
        ))


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


class _SubscriptionSerde:
    def serialize(self, topic: str, value: Subscription | None) -> bytes | None:
        return None if value is None else subscription_value(value)

    def deserialize(self, topic: str, data: bytes | None) -> Subscription | None:
        return None if data is None else read_subscription_value(data)


class _ResponseSerde:
    def __init__(self, inner: Serde[Any]) -> None:
        self._inner = inner

    def serialize(self, topic: str, value: Any) -> bytes | None:
        return response_value(value[0], self._inner.serialize(topic, value[1]))

    def deserialize(self, topic: str, data: bytes | None) -> Any:
        if data is None:
            return None
        found, row = read_response_value(data)
        return found, self._inner.deserialize(topic, row)


class ForeignKeyJoinStep:
    """A join of a table with the rows of another that its values point to."""

    def __init__(
        self,
        left: TableHandle,
        right: TableHandle,
        foreign_key: Callable[[Any, Any], Any],
        joiner: Callable[[Any, Any], Any],
        *,
        left_outer: bool,
        name: str | None,
        store: str | Materialized | None,
    ) -> None:
        self._left, self._right = left, right
        self._foreign_key, self._joiner = foreign_key, joiner
        self._left_outer = left_outer
        self._name = name
        self._spec = materialized(store) or Materialized()
        self._builder = left.handle.builder

    def _new(self, suffix: str, prefix: str) -> str:
        return self._builder.suffixed_or_new(self._name, suffix, f"KTABLE-{prefix}-")

    def _through(
        self,
        topic: str,
        parents: list[GraphNode],
        names: tuple[str, str],
        keys: Serde[Any],
        values: Serde[Any],
        partitioner: Any = None,
    ) -> GraphNode:
        """A sink, an internal topic and a source."""

        def write_sink(assembly: Assembly, before: list[str]) -> None:
            assembly.internal_topics[topic] = None
            assembly.add_sink(
                names[0],
                topic,
                before,
                key_serde=keys,
                value_serde=values,
                partitioner=partitioner,
            )

        def write_source(assembly: Assembly, before: list[str]) -> None:
            assembly.add_source(names[1], [topic], key_serde=keys, value_serde=values)

        sink = self._builder.add(GraphNode(names[0], write_sink), *parents)
        return self._builder.add(GraphNode(names[1], write_source), sink)

    def _step(self, name: str, supplier: Any, parent: GraphNode, *stores: str) -> GraphNode:
        writer = processor_writer(name, supplier, store_names=stores)
        return self._builder.add(GraphNode(name, writer), parent)

    def add(self) -> TableHandle:
        builder, left, right = self._builder, self._left.handle, self._right.handle
        self._right.supplier.enable_sending_old_values(True)
        self._left.supplier.enable_sending_old_values(True)
        fk = "FK-JOIN-SUBSCRIPTION"
        topic = self._new("-subscription-registration", f"{fk}-REGISTRATION") + "-topic"
        send = SubscriptionSend(
            self._foreign_key,
            primary_serde=left.keys,
            foreign_serde=right.keys,
            value_serde=left.values,
            left=self._left_outer,
        )
        send_name = self._new("-subscription-registration-processor", f"{fk}-REGISTRATION")
        send_node = self._step(send_name, send, left.node)
        send_node.on_versioned_parent = lambda _: setattr(send, "versioned", True)
        names = (
            self._new("-subscription-registration-sink", "SINK"),
            self._new("-subscription-registration-source", "SOURCE"),
        )
        source = self._through(topic, [send_node], names, right.keys, _SubscriptionSerde())
        store_name = self._new("-subscription-store", f"{fk}-STATE-STORE")
        receive = self._receive(store_name, source)
        right_view = self._right.supplier.view()
        join_name = self._new("-subscription-join-foreign", f"{fk}-PROCESSOR")
        join = self._step(
            join_name,
            lambda: SubscriptionJoin(right_view, left.keys),
            receive,
            *right_view.store_names,
        )
        foreign = ForeignTable(store_name, primary_serde=left.keys, foreign_serde=right.keys)
        foreign_name = self._new("-foreign-join-subscription", f"{fk}-PROCESSOR")
        foreign_node = self._step(foreign_name, foreign, right.node, store_name)
        foreign_node.on_versioned_parent = lambda _: setattr(foreign, "versioned", True)
        response = self._respond([join, foreign_node])
        builder.assembly.copartitioned.append({source.name, *right.sources})
        return self._result(response)

    def _receive(self, store_name: str, source: GraphNode) -> GraphNode:
        keys = self._right.handle.keys
        store = StoreBuilder(
            store_name,
            lambda at: TimestampedKeyValueStore(
                store_name, BYTES, BYTES, at.log, at.storage.map()
            ),
        )
        receive_name = self._new("-subscription-receive", "FK-JOIN-SUBSCRIPTION-PROCESSOR")
        return self._builder.add(
            GraphNode(
                receive_name,
                processor_writer(
                    receive_name,
                    lambda: SubscriptionReceive(store_name, keys),
                    stores=(store,),
                ),
            ),
            source,
        )

    def _respond(self, parents: list[GraphNode]) -> GraphNode:
        left, fk = self._left.handle, "FK-JOIN-SUBSCRIPTION"
        topic = self._new("-subscription-response", f"{fk}-RESPONSE") + "-topic"
        names = (
            self._new("-subscription-response-sink", "SINK"),
            self._new("-subscription-response-source", "SOURCE"),
        )
        return self._through(
            topic,
            parents,
            names,
            left.keys,
            _ResponseSerde(self._right.handle.values),
            lambda topic, key, value, count: value[2] if 0 <= value[2] < count else None,
        )

    def _result(self, response: GraphNode) -> TableHandle:
        builder, left, spec = self._builder, self._left.handle, self._spec
        view = self._left.supplier.view()
        resolve_name = self._new(
            "-subscription-response-resolver", "FK-JOIN-SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR"
        )
        resolve = self._step(
            resolve_name,
            lambda: ResponseJoin(view, left.values, self._joiner, left=self._left_outer),
            response,
            *view.store_names,
        )
        result_name = self._new("-result", "FK-JOIN-OUTPUT")
        store_name = spec.name or builder.new_store_name("KTABLE-FK-JOIN-OUTPUT-")
        supplier = TableSource(store_name, queryable=spec.name is not None)
        sources = left.sources | {response.name}
        handle = replace(
            left,
            name=result_name,
            key_serde=chosen(spec.key_serde, left.key_serde),
            value_serde=serde(spec.value_serde),
            sources=sources,
            repartitions={},
        )

        def write(assembly: Assembly, parents: list[str]) -> None:
            assembly.add_processor(result_name, supplier, parents)
            if supplier.materialized:
                made = table_store(store_name, spec, handle.keys, handle.values)
                assembly.add_state_store(made, result_name)

        node = builder.add(GraphNode(result_name, write), resolve)
        node.output_versioned = spec.history is not None
        builder.assembly.copartitioned.append(set(sources))
        return TableHandle(
            handle=replace(handle, node=node), supplier=supplier, store_name=spec.name
        )


def join_stream(
    at: Handle,
    target: Handle | TableHandle | View,
    joiner: Callable[..., Any],
    outer: tuple[bool, bool],
    windows: JoinWindows | None,
    key: Callable[[Any, Any], Any] | None,
    grace: Duration | None,
    store: str | None,
    name: str | None,
    with_key: bool = False,
) -> Handle:
    """Join a stream with whatever it is."""

    def without_key(record_key: Any, left: Any, right: Any) -> Any:
        return joiner(left, right)

    join: Joiner = joiner if with_key else without_key

    if isinstance(target, View):
        lookup = key or (lambda record_key, value: record_key)
        return join_global(at, target, lookup, join, left=outer[0], name=name)
    if isinstance(target, TableHandle):
        grace_ms = None if grace is None else millis(grace)
        return join_stream_table(at, target, join, left=outer[0], name=name, grace_ms=grace_ms)
    if windows is None:
        raise TopologyError("a join of two streams needs windows=JoinWindows(...)")
    return StreamJoinStep(
        at,
        target,
        join,
        windows,
        left_outer=outer[0],
        right_outer=outer[1],
        name=name,
        store_name=store,
    ).add()


def join_table(
    mine: TableHandle,
    theirs: TableHandle,
    joiner: Callable[[Any, Any], Any],
    outer: tuple[bool, bool],
    foreign_key: Callable[[Any, Any], Any] | None,
    store: str | Materialized | None,
    name: str | None,
) -> TableHandle:
    """Join two tables by key, or by a foreign key."""
    if foreign_key is not None:
        return ForeignKeyJoinStep(
            mine, theirs, foreign_key, joiner, left_outer=outer[0], name=name, store=store
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
