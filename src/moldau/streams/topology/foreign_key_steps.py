"""Joins of tables by a foreign key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from moldau.streams.machine.definitions import Partitioner
from moldau.streams.machine.foreign_key import (
    ForeignTable,
    ResponseJoin,
    SubscriptionJoin,
    SubscriptionReceive,
    SubscriptionSend,
)
from moldau.streams.machine.tables import TableSource
from moldau.streams.serdes import BYTES, Serde, serde
from moldau.streams.stores.base import StoreBuilder
from moldau.streams.stores.formats import (
    Subscription,
    read_response_value,
    read_subscription_value,
    response_value,
    subscription_value,
)
from moldau.streams.stores.key_value import TimestampedKeyValueStore
from moldau.streams.topology.assembly import Assembly
from moldau.streams.topology.graph import GraphNode
from moldau.streams.topology.handles import (
    Materialized,
    TableHandle,
    chosen,
    materialized,
    processor_writer,
    table_store,
)


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


def _by_key(partitioner: Partitioner | None) -> Partitioner | None:
    """A table's partitioner for an internal topic: it sees no value, and chooses one partition."""
    if partitioner is None:
        return None

    def partition(topic: str, key: Any, value: Any, count: int) -> int | None:
        found = partitioner(topic, key, None, count)
        if found is None or isinstance(found, int):
            return found
        if len(found) != 1:
            raise ValueError(
                "The partitions returned by StreamPartitioner#partitions method when used for FK "
                "join should be a singleton set"
            )
        return next(iter(found))

    return partition


def _to_sender(topic: str, key: Any, value: Any, count: int) -> int | None:
    """A response goes to the partition that has asked."""
    return value[2] if 0 <= value[2] < count else None


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
        partitioners: tuple[Partitioner | None, Partitioner | None],
    ) -> None:
        self._left, self._right = left, right
        self._partitioner, self._other_partitioner = map(_by_key, partitioners)
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
        source = self._through(
            topic,
            [send_node],
            names,
            right.keys,
            _SubscriptionSerde(),
            self._other_partitioner,
        )
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
            logs_headers=True,
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
            self._partitioner or _to_sender,
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
