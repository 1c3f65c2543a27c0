"""`StreamsBuilder`: where a program starts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, overload

from moldau.streams.machine.context import Processor, check_supplier
from moldau.streams.machine.definitions import TimestampExtractor
from moldau.streams.machine.getters import store_view
from moldau.streams.machine.tables import TableSource
from moldau.streams.serdes import Serde, SerdeLike, serde
from moldau.streams.stores.base import StoreBuilder
from moldau.streams.topology import table_steps
from moldau.streams.topology.assembly import Assembly
from moldau.streams.topology.dsl import GlobalKTable, KStream, KTable, Name, Store
from moldau.streams.topology.graph import GraphBuilder, GraphNode
from moldau.streams.topology.handles import Handle, Materialized, chosen, materialized, table_store
from moldau.streams.topology.topology import Topology

K = TypeVar("K")
V = TypeVar("V")


class StreamsBuilder:
    """Builds a topology from streams and tables.

    builder = StreamsBuilder()
    builder.stream("in").filter(lambda key, value: value is not None).to("out")
    topology = builder.build()

    Serdes as objects (`serdes.STRING`) give typed streams; names ("string") give untyped ones.
    """

    def __init__(self) -> None:
        self._builder = GraphBuilder()

    @overload
    def stream(
        self,
        topics: str | Iterable[str] | re.Pattern[str],
        *,
        key_serde: Serde[K],
        value_serde: Serde[V],
        timestamp_extractor: TimestampExtractor | None = None,
        offset_reset: str | None = None,
        name: Name = None,
    ) -> KStream[K, V]: ...

    @overload
    def stream(
        self,
        topics: str | Iterable[str] | re.Pattern[str],
        *,
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
        offset_reset: str | None = None,
        name: Name = None,
    ) -> KStream[Any, Any]: ...

    def stream(
        self,
        topics: str | Iterable[str] | re.Pattern[str],
        *,
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
        offset_reset: str | None = None,
        name: Name = None,
    ) -> KStream[Any, Any]:
        """A stream of one or more topics, or of all whose name matches: builder.stream("text")."""
        builder = self._builder
        step = builder.name_or_new(name, "KSTREAM-SOURCE-")
        pattern = topics if isinstance(topics, re.Pattern) else None
        names: list[str] = []
        if not isinstance(topics, re.Pattern):
            names = [topics] if isinstance(topics, str) else list(topics)
        keys, values = serde(key_serde), serde(value_serde)

        def write(assembly: Assembly, parents: list[str]) -> None:
            assembly.add_source(
                step,
                names,
                pattern=pattern,
                key_serde=keys,
                value_serde=values,
                timestamp_extractor=timestamp_extractor,
                offset_reset=offset_reset,
            )

        node = GraphNode(step, write)
        node.source_of = tuple(names) if pattern is None else (pattern.pattern,)
        node.is_pattern = pattern is not None
        builder.add(node)
        return KStream(
            Handle(
                builder=builder,
                name=step,
                node=node,
                key_serde=keys,
                value_serde=values,
                sources=frozenset({step}),
            )
        )

    @overload
    def table(
        self,
        topic: str,
        *,
        key_serde: Serde[K],
        value_serde: Serde[V],
        store: Store = None,
        timestamp_extractor: TimestampExtractor | None = None,
        offset_reset: str | None = None,
        name: Name = None,
    ) -> KTable[K, V]: ...

    @overload
    def table(
        self,
        topic: str,
        *,
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        store: Store = None,
        timestamp_extractor: TimestampExtractor | None = None,
        offset_reset: str | None = None,
        name: Name = None,
    ) -> KTable[Any, Any]: ...

    def table(
        self,
        topic: str,
        *,
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        store: Store = None,
        timestamp_extractor: TimestampExtractor | None = None,
        offset_reset: str | None = None,
        name: Name = None,
    ) -> KTable[Any, Any]:
        """A table of the latest value of each key of a topic: builder.table("users")."""
        return KTable(
            table_steps.source_table(
                self._builder,
                topic,
                key_serde=key_serde,
                value_serde=value_serde,
                store=store,
                name=name,
                extractor=timestamp_extractor,
                offset_reset=offset_reset,
            )
        )

    def global_table(
        self,
        topic: str,
        *,
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        store: Store = None,
        timestamp_extractor: TimestampExtractor | None = None,
        name: Name = None,
    ) -> GlobalKTable[Any, Any]:
        """A table that every instance holds whole: builder.global_table("rates")."""
        builder, spec = self._builder, materialized(store) or Materialized()
        if spec.history is not None:
            raise ValueError("GlobalTables cannot be versioned.")
        store_name = spec.name or builder.new_store_name(f"{topic}-")
        source = builder.suffixed_or_new(name, "-source", "KSTREAM-SOURCE-")
        step = builder.name_or_new(name, "KTABLE-SOURCE-")
        supplier = TableSource(store_name, queryable=True)
        keys = chosen(spec.key_serde, serde(key_serde))
        values = chosen(spec.value_serde, serde(value_serde))

        def write(assembly: Assembly, parents: list[str]) -> None:
            made = table_store(
                store_name,
                spec,
                keys or assembly.default_key_serde,
                values or assembly.default_value_serde,
            )
            assembly.add_global_store(
                made,
                source=source,
                topic=topic,
                processor=step,
                supplier=supplier,
                key_serde=keys,
                value_serde=values,
                timestamp_extractor=timestamp_extractor,
            )

        builder.add(GraphNode(step, write))
        return GlobalKTable(store_view(store_name))

    def add_state_store(self, store: StoreBuilder) -> StreamsBuilder:
        """Add a store for processors: builder.add_state_store(key_value_store("seen"))."""

        def write(assembly: Assembly, parents: list[str]) -> None:
            assembly.add_state_store(store)

        self._builder.add(GraphNode(store.name, write))
        return self

    def add_global_store(
        self,
        store: StoreBuilder,
        topic: str,
        supplier: Callable[[], Processor],
        *,
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
        name: Name = None,
    ) -> StreamsBuilder:
        """Add a global store that a processor fills: add_global_store(store, "in", Fill)."""
        check_supplier(supplier)
        source = self._builder.suffixed_or_new(name, "-source", "KSTREAM-SOURCE-")
        step = self._builder.name_or_new(name, "KTABLE-SOURCE-")

        def write(assembly: Assembly, parents: list[str]) -> None:
            assembly.add_global_store(
                store,
                source=source,
                topic=topic,
                processor=step,
                supplier=supplier,
                key_serde=serde(key_serde),
                value_serde=serde(value_serde),
                timestamp_extractor=timestamp_extractor,
            )

        self._builder.add(GraphNode(step, write))
        return self

    def build(self, *, optimization: str = "none") -> Topology:
        """The topology. `optimization` takes the values of Kafka's `topology.optimization`.

        topology = builder.build(optimization="all")
        """
        return Topology(self._builder.build(optimization))
