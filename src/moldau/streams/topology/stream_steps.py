"""Operators of streams."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from moldau.streams.machine.context import Processor
from moldau.streams.machine.definitions import Partitioner, TopicChooser
from moldau.streams.machine.stateless import Branch, PassThrough
from moldau.streams.machine.tables import TableSource
from moldau.streams.serdes import SerdeLike
from moldau.streams.topology.assembly import Assembly, check_name
from moldau.streams.topology.graph import GraphNode, repartition_node
from moldau.streams.topology.handles import (
    Handle,
    Materialized,
    TableHandle,
    add_step,
    chosen,
    materialized,
    processor_writer,
    repartitioned,
    table_store,
)

#: What a step forgets: the serde of what it changes.
KEY = {"key_serde": None, "repartition_required": True}
VALUE = {"value_serde": None}


def step(
    at: Handle, prefix: str, name: str | None, supplier: Callable[[], Processor], **changes: Any
) -> Handle:
    """An operator of one processor."""
    new = at.builder.name_or_new(name, prefix)
    node = add_step(
        at,
        new,
        supplier,
        is_key_changing="key_serde" in changes,
        is_value_changing="value_serde" in changes,
    )
    return replace(at, name=new, node=node, repartitions={}, **changes)


def merge(mine: Handle, theirs: Handle, name: str | None) -> Handle:
    new = mine.builder.name_or_new(name, "KSTREAM-MERGE-")
    node = GraphNode(new, processor_writer(new, PassThrough))
    node.is_merge = True
    mine.builder.add(node, mine.node, theirs.node)
    return replace(
        mine,
        name=new,
        node=node,
        sources=mine.sources | theirs.sources,
        repartition_required=mine.repartition_required or theirs.repartition_required,
        repartitions={},
    )


def repartition(
    at: Handle,
    *,
    name: str | None,
    partitions: int | None,
    key_serde: SerdeLike | None,
    value_serde: SerdeLike | None,
    partitioner: Partitioner | None,
) -> Handle:
    prefix = at.builder.new_name("KSTREAM-REPARTITION-") if name is None else check_name(name)
    keys, values = chosen(key_serde, at.key_serde), chosen(value_serde, at.value_serde)
    node = repartition_node(
        at.builder,
        prefix,
        key_serde=keys,
        value_serde=values,
        optimizable=False,
        partitions=partitions,
        partitioner=partitioner,
    )
    at.builder.add(node, at.node)
    return replace(
        at,
        name=node.name,
        node=node,
        key_serde=keys,
        value_serde=values,
        sources=frozenset({node.name}),
        repartition_required=False,
        repartitions={},
    )


def to(
    at: Handle,
    topic: str | TopicChooser,
    *,
    key_serde: SerdeLike | None,
    value_serde: SerdeLike | None,
    partitioner: Partitioner | None,
    name: str | None,
) -> None:
    new = at.builder.name_or_new(name, "KSTREAM-SINK-")
    keys, values = chosen(key_serde, at.key_serde), chosen(value_serde, at.value_serde)

    def write(assembly: Assembly, parents: list[str]) -> None:
        assembly.add_sink(
            new, topic, parents, key_serde=keys, value_serde=values, partitioner=partitioner
        )

    at.builder.add(GraphNode(new, write), at.node)


def to_table(at: Handle, store: str | Materialized | None, name: str | None) -> TableHandle:
    spec = materialized(store) or Materialized()
    new = at.builder.name_or_new(name, "KSTREAM-TOTABLE-")
    store_name = spec.name or at.builder.new_store_name("KSTREAM-TOTABLE-")
    keys, values = chosen(spec.key_serde, at.key_serde), chosen(spec.value_serde, at.value_serde)
    if at.repartition_required:
        at = repartitioned(at, new, key_serde=keys, value_serde=values)
    supplier = TableSource(store_name, queryable=spec.name is not None)
    result = replace(at, name=new, key_serde=keys, value_serde=values, repartitions={})

    def write(assembly: Assembly, parents: list[str]) -> None:
        assembly.add_processor(new, supplier, parents)
        if supplier.materialized:
            made = table_store(store_name, spec, result.keys, result.values)
            assembly.add_state_store(made, new)

    node = GraphNode(new, write)
    node.output_versioned = spec.history is not None
    at.builder.add(node, at.node)
    handle = replace(result, node=node)
    return TableHandle(handle=handle, supplier=supplier, store_name=spec.name)


def process(
    at: Handle,
    prefix: str,
    supplier: Callable[[], Processor],
    stores: tuple[str, ...],
    name: str | None,
) -> Handle:
    """A processor of the user's. Here, and only here, a given name takes no number.

    The optimiser takes it for one that changes neither key nor value, as Kafka Streams' does
    (KAFKA-19668) unless told otherwise: names of topics depend on it.
    """
    new = at.builder.new_name(prefix) if name is None else check_name(name)
    node = GraphNode(new, processor_writer(new, supplier, store_names=stores))
    changes = VALUE if prefix == "KSTREAM-PROCESSVALUES-" else VALUE | KEY
    at.builder.add(node, at.node)
    return replace(at, name=new, node=node, repartitions={}, **changes)


class Split:
    """A stream that is being split."""

    def __init__(self, at: Handle, name: str | None) -> None:
        self._at = at
        self._name = at.builder.name_or_new(name, "KSTREAM-BRANCH-")
        self._predicates: list[Callable[[Any, Any], bool]] = []
        self.branches: dict[str, Handle] = {}
        children = self.branches
        self._node = add_step(at, self._name, lambda: Branch(self._predicates, list(children)))

    def add(self, predicate: Callable[[Any, Any], bool] | None, name: str | None) -> str:
        """A branch, or the default where there is no predicate; its name."""
        if predicate is not None:
            self._predicates.append(predicate)
        number = "0" if predicate is None else str(len(self._predicates))
        builder = self._at.builder
        builder.new_name("KSTREAM-BRANCHCHILD-")
        child = check_name(self._name + (number if name is None else name))
        node = builder.add(GraphNode(child, processor_writer(child, PassThrough)), self._node)
        self.branches[child] = replace(self._at, name=child, node=node, repartitions={})
        return child
