"""What the classes of the language wrap: a place in the graph with its serdes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from moldau.streams.machine.context import Processor
from moldau.streams.machine.getters import TableSupplier
from moldau.streams.serdes import Serde, SerdeLike, serde
from moldau.streams.stores.base import Storage, StoreBuilder, StoreOptions
from moldau.streams.stores.builders import timestamped_key_value_store, versioned_key_value_store
from moldau.streams.topology.assembly import Assembly, check_name
from moldau.streams.topology.graph import GraphBuilder, GraphNode, repartition_node
from moldau.streams.windows import Duration, millis


@dataclass(frozen=True, slots=True, kw_only=True)
class Materialized:
    """The store of a table: its name, serdes, how long it keeps windows, whether it is logged.

    Materialized(name="counts", value_serde="long"); `history` makes a table versioned; `caching`
    forwards only the last of several updates of a key between commits; `persistent` keeps the store
    on disk or in memory, instead of what `default.dsl.store` says; `changelog_config` has settings
    of the changelog topic; `storage` makes a place of its own for the entries, by the store's name;
    `headers` keeps headers beside the values or not, instead of what `dsl.store.format` says.
    """

    name: str | None = None
    key_serde: SerdeLike | None = None
    value_serde: SerdeLike | None = None
    retention: Duration | None = None
    history: Duration | None = None
    logging: bool = True
    changelog_config: Mapping[str, str] = field(default_factory=dict)
    caching: bool = True
    persistent: bool | None = None
    storage: Callable[[str], Storage] | None = None
    headers: bool | None = None

    def __post_init__(self) -> None:
        if self.name is not None:
            check_name(self.name)
        if self.retention_ms is not None and self.retention_ms < 0:
            raise ValueError("Retention must not be negative.")
        if self.headers and self.history is not None:
            raise ValueError("a versioned store keeps no headers: give `history` or `headers`")

    @property
    def retention_ms(self) -> int | None:
        return None if self.retention is None else millis(self.retention)

    @property
    def options(self) -> StoreOptions:
        """What all kinds of stores have in common."""
        return {
            "logging": self.logging,
            "changelog_config": self.changelog_config,
            "persistent": self.persistent,
            "storage": self.storage,
        }


def materialized(store: str | Materialized | None) -> Materialized | None:
    """A bare name stands for a store with defaults."""
    return Materialized(name=store) if isinstance(store, str) else store


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """A stream or a table in the graph. Serdes that are None are the application's defaults."""

    builder: GraphBuilder
    name: str
    node: GraphNode
    key_serde: Serde[Any] | None
    value_serde: Serde[Any] | None
    #: The source nodes that feed it, which a join requires to be co-partitioned.
    sources: frozenset[str]
    #: The key may have changed since the last topic.
    repartition_required: bool = False
    #: Repartitions for joins under a name that was given.
    repartitions: dict[str, GraphNode] = field(default_factory=dict, compare=False)

    @property
    def keys(self) -> Serde[Any]:
        return self.key_serde or self.builder.assembly.default_key_serde

    @property
    def values(self) -> Serde[Any]:
        return self.value_serde or self.builder.assembly.default_value_serde


class TableHandle(NamedTuple):
    """A table in the graph, with what makes its processor."""

    handle: Handle
    supplier: TableSupplier
    store_name: str | None = None


def processor_writer(
    name: str,
    supplier: Callable[[], Processor],
    *,
    stores: tuple[StoreBuilder, ...] = (),
    store_names: Callable[[], tuple[str, ...]] | tuple[str, ...] = (),
) -> Callable[[Assembly, list[str]], None]:
    """Adds one processor, with stores of its own and connections to others."""

    def write(assembly: Assembly, parents: list[str]) -> None:
        assembly.add_processor(name, supplier, parents)
        for builder in stores:
            assembly.add_state_store(builder, name)
        for store in store_names() if callable(store_names) else store_names:
            assembly.connect(name, store)

    return write


def add_step(
    handle: Handle, name: str, supplier: Callable[[], Processor], **labels: bool
) -> GraphNode:
    """Add an operator of one processor."""
    node = GraphNode(name, processor_writer(name, supplier))
    for label, value in labels.items():
        setattr(node, label, value)
    return handle.builder.add(node, handle.node)


def repartitioned(
    handle: Handle,
    prefix: str,
    *,
    key_serde: Serde[Any] | None = None,
    value_serde: Serde[Any] | None = None,
    reuse: bool = False,
) -> Handle:
    """The stream after a repartition topic. `reuse`: the same name twice means the same topic."""
    keys, values = key_serde or handle.key_serde, value_serde or handle.value_serde
    node = repartition_node(handle.builder, prefix, key_serde=keys, value_serde=values)
    before = handle.repartitions.get(prefix)
    if reuse and before is not None:
        node = before
    else:
        handle.repartitions[prefix] = node
        handle.builder.add(node, handle.node)
    return replace(
        handle,
        name=node.name,
        node=node,
        key_serde=keys,
        value_serde=values,
        sources=frozenset({node.name}),
        repartition_required=False,
        repartitions={},
    )


def table_store(
    name: str, store: Materialized, keys: Serde[Any], values: Serde[Any]
) -> StoreBuilder:
    """The key-value store of a table: timestamped, or versioned."""
    serdes = {"key_serde": keys, "value_serde": values}
    if store.history is not None:
        return versioned_key_value_store(name, history=store.history, **serdes, **store.options)
    return timestamped_key_value_store(
        name, caching=store.caching, headers=store.headers, **serdes, **store.options
    )


def chosen(like: SerdeLike | None, otherwise: Serde[Any] | None) -> Serde[Any] | None:
    """The serde that was given, or the other."""
    return otherwise if like is None else serde(like)
