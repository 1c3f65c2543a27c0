"""`Topology`: what a builder makes, or what is put together by hand."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from moldau.streams.errors import TopologyError
from moldau.streams.machine.context import Processor, check_supplier
from moldau.streams.machine.definitions import Partitioner, TimestampExtractor, TopicChooser
from moldau.streams.serdes import SerdeLike, serde
from moldau.streams.stores.base import StoreBuilder
from moldau.streams.topology.assembly import Assembly
from moldau.streams.topology.describe import describe


class Topology:
    """Sources, processors, sinks and stores.

    topology = (
        Topology()
        .add_source("in", ["text"], key_serde="string", value_serde="string")
        .add_processor("shout", Shout, "in")
        .add_sink("out", "shouted", "shout", key_serde="string", value_serde="string")
    )
    """

    def __init__(self, assembly: Assembly | None = None) -> None:
        self.assembly = Assembly() if assembly is None else assembly

    def add_source(
        self,
        name: str,
        topics: Iterable[str] | re.Pattern[str],
        *,
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
        offset_reset: str | None = None,
    ) -> Topology:
        """Read topics: topology.add_source("in", ["text"])."""
        pattern = topics if isinstance(topics, re.Pattern) else None
        self.assembly.add_source(
            name,
            [] if isinstance(topics, re.Pattern) else topics,
            pattern=pattern,
            key_serde=serde(key_serde),
            value_serde=serde(value_serde),
            timestamp_extractor=timestamp_extractor,
            offset_reset=offset_reset,
        )
        return self

    def add_processor(
        self, name: str, supplier: Callable[[], Processor], *parents: str
    ) -> Topology:
        """Add a processor after its parents: topology.add_processor("shout", Shout, "in").

        Stores that `supplier.stores()` returns, if there is one, are added and connected, too.
        """
        self.assembly.add_processor(name, check_supplier(supplier), parents)
        return self

    def add_sink(
        self,
        name: str,
        topic: str | TopicChooser,
        *parents: str,
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        partitioner: Partitioner | None = None,
    ) -> Topology:
        """Write to a topic: topology.add_sink("out", "shouted", "shout")."""
        self.assembly.add_sink(
            name,
            topic,
            parents,
            key_serde=serde(key_serde),
            value_serde=serde(value_serde),
            partitioner=partitioner,
        )
        return self

    def add_state_store(self, builder: StoreBuilder, *processors: str) -> Topology:
        """Add a store: topology.add_state_store(key_value_store("seen"), "counter")."""
        self.assembly.add_state_store(builder, *processors)
        return self

    def connect_processor_and_state_stores(self, processor: str, *stores: str) -> Topology:
        """Let a processor use stores: connect_processor_and_state_stores("counter", "seen")."""
        if not stores:
            raise TopologyError("stateStoreNames cannot be empty")
        for store in stores:
            self.assembly.connect(processor, store)
        return self

    def add_global_store(
        self,
        builder: StoreBuilder,
        *,
        source: str,
        topic: str,
        processor: str,
        supplier: Callable[[], Processor],
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
    ) -> Topology:
        """Add a store that holds a whole topic in every instance; `supplier` fills it.

        topology.add_global_store(key_value_store("rates"), source="rates-in", topic="rates",
                                  processor="rates-update", supplier=UpdateRates)
        """
        self.assembly.add_global_store(
            builder,
            source=source,
            topic=topic,
            processor=processor,
            supplier=check_supplier(supplier),
            key_serde=serde(key_serde),
            value_serde=serde(value_serde),
            timestamp_extractor=timestamp_extractor,
        )
        return self

    def add_read_only_state_store(
        self,
        builder: StoreBuilder,
        *,
        source: str,
        topic: str,
        processor: str,
        supplier: Callable[[], Processor],
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
    ) -> Topology:
        """Add a store of which a topic, written by others, is the changelog; `supplier` fills it.

        topology.add_read_only_state_store(key_value_store("rates"), source="rates-in",
                                           topic="rates", processor="update", supplier=Update)
        """
        check_supplier(supplier)
        builder.logging = False
        self.assembly.add_source(
            source,
            [topic],
            key_serde=serde(key_serde),
            value_serde=serde(value_serde),
            timestamp_extractor=timestamp_extractor,
        )
        self.assembly.add_processor(processor, supplier, [source])
        self.assembly.add_state_store(builder, processor)
        self.assembly.source_changelogs[builder.name] = topic
        return self

    def svg(self, rates: Mapping[str, float] | None = None) -> str:
        """A picture of the topology: Path("topology.svg").write_text(topology.svg()).

        `rates` are records per second by the name of a node; `KafkaStreams.svg` has them.
        """
        # Here, since hardly anybody draws.
        from moldau.streams.topology.picture import draw

        return draw(self.assembly, rates or {})

    def describe(self) -> str:
        """Sub-topologies, nodes, stores and topics, as Kafka Streams prints them."""
        return describe(self.assembly)

    def __repr__(self) -> str:
        return f"Topology({len(self.assembly.nodes)} nodes, {len(self.assembly.stores)} stores)"

    def set_default_serdes(self, *, key: Any, value: Any) -> None:
        """The serdes of steps that name none. Hosts call it."""
        self.assembly.default_key_serde.inner = serde(key)
        self.assembly.default_value_serde.inner = serde(value)
