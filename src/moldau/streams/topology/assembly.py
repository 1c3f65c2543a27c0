"""A topology as nodes and stores with names: what is added by hand, and what the language writes.

Invariants: names are unique, a parent exists before its child, a topic has one source, a store is
connected only to processors. Nodes that share a parent or a store are in one sub-topology.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from moldau.config.durations import parse_duration_ms
from moldau.streams._serdes import DefaultSerde
from moldau.streams.errors import TopologyError
from moldau.streams.machine.context import Processor, provided_stores
from moldau.streams.machine.definitions import (
    Definition,
    Partitioner,
    ProcessorDefinition,
    SinkDefinition,
    SourceDefinition,
    TimestampExtractor,
    TopicChooser,
)
from moldau.streams.serdes import Serde
from moldau.streams.stores.base import StoreBuilder

_NAME = re.compile(r"[a-zA-Z0-9._-]+")
NAME_LENGTH_MAX = 249


def check_name(name: str) -> str:
    """A name of an operator, which becomes part of topic names."""
    if not name:
        raise TopologyError("Name is illegal, it can't be empty")
    if name in (".", ".."):
        raise TopologyError('Name cannot be "." or ".."')
    if len(name) > NAME_LENGTH_MAX:
        raise TopologyError(
            f"Name is illegal, it can't be longer than {NAME_LENGTH_MAX} characters, name: {name}"
        )
    if not _NAME.fullmatch(name):
        raise TopologyError(
            f'Name "{name}" is illegal, it contains a character other than ASCII alphanumerics, '
            f"'.', '_' and '-'"
        )
    return name


def _check_reset(policy: str | None) -> None:
    """Where a source begins that has no committed offset; raises TopologyError."""
    if policy is None or policy in ("earliest", "latest", "none"):
        return
    kind, _, duration = policy.partition(":")
    if kind != "by_duration" or parse_duration_ms(duration) is None:
        raise TopologyError(
            f"offset_reset is {policy!r}: use earliest, latest, none or by_duration:PnDTnHnMn.nS"
        )


class Assembly:
    """The nodes and stores of a topology, in the order in which they were added."""

    def __init__(self) -> None:
        self.nodes: dict[str, Definition] = {}
        self.stores: dict[str, StoreBuilder] = {}
        #: Stores that every task reads, with the names of their source and processor.
        self.global_stores: dict[str, StoreBuilder] = {}
        self.global_sources: set[str] = set()
        #: Topics that the application creates, with their partition count where it is fixed.
        self.internal_topics: dict[str, int | None] = {}
        #: Stores whose changelog is their source's topic.
        self.source_changelogs: dict[str, str] = {}
        self.copartitioned: list[set[str]] = []
        self.default_key_serde = DefaultSerde("key")
        self.default_value_serde = DefaultSerde("value")
        self._topics: dict[str, str] = {}
        self._patterns: list[re.Pattern[str]] = []
        self._group: dict[str, str] = {}
        #: The processors of each store, in the order in which they were connected.
        self._users: dict[str, list[str]] = {}

    # Groups of nodes that run together.

    def _root(self, name: str) -> str:
        while self._group[name] != name:
            name = self._group[name]
        return name

    def _unite(self, first: str, second: str) -> None:
        self._group[self._root(second)] = self._root(first)

    def _add(self, definition: Definition) -> None:
        name = definition.name
        if name in self.nodes:
            raise TopologyError(f"Processor {name} is already added.")
        for parent in definition.parents:
            if parent == name:
                raise TopologyError(f"Parent node {name} is unknown (self-reference).")
            if parent not in self.nodes:
                raise TopologyError(f"Parent node {parent} is unknown.")
            if isinstance(self.nodes[parent], SinkDefinition):
                raise TopologyError(f"Sink {parent} cannot be used a parent.")
        self.nodes[name] = definition
        self._group[name] = name
        for parent in definition.parents:
            self._unite(parent, name)

    def add_source(
        self,
        name: str,
        topics: Iterable[str],
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        pattern: re.Pattern[str] | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
        offset_reset: str | None = None,
    ) -> None:
        topics = list(topics)
        if not topics and pattern is None:
            raise TopologyError("topics cannot be empty")
        if name in self.nodes:
            raise TopologyError(f"Processor {name} is already added.")
        for topic in topics:
            self._check_topic(topic)
        _check_reset(offset_reset)
        if pattern is not None:
            for topic in self._topics:
                if pattern.fullmatch(topic):
                    raise TopologyError(
                        f"Pattern {pattern.pattern} will match a topic that has already been "
                        f"registered by another source."
                    )
            self._patterns.append(pattern)
        self._topics.update(dict.fromkeys(topics, name))
        self._add(
            SourceDefinition(
                name=name,
                topics=topics,
                pattern=pattern,
                key_serde=key_serde or self.default_key_serde,
                value_serde=value_serde or self.default_value_serde,
                parents=[],
                timestamp_extractor=timestamp_extractor,
                offset_reset=offset_reset,
            )
        )

    def _check_topic(self, topic: str) -> None:
        if topic in self._topics:
            raise TopologyError(f"Topic {topic} has already been registered by another source.")
        for pattern in self._patterns:
            if pattern.fullmatch(topic):
                raise TopologyError(
                    f"Topic {topic} matches a Pattern already registered by another source."
                )

    def add_processor(
        self, name: str, supplier: Callable[[], Processor], parents: Iterable[str]
    ) -> None:
        parents = list(parents)
        if name not in self.nodes and not parents:
            raise TopologyError("predecessorNames cannot be empty")
        self._add(ProcessorDefinition(name=name, supplier=supplier, parents=parents, stores=[]))
        for builder in provided_stores(supplier):
            self.add_state_store(builder, name)

    def add_sink(
        self,
        name: str,
        topic: str | TopicChooser,
        parents: Iterable[str],
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        partitioner: Partitioner | None = None,
    ) -> None:
        parents = list(parents)
        if not parents:
            raise TopologyError("predecessorNames cannot be empty")
        self._add(
            SinkDefinition(
                name=name,
                topic=topic,
                key_serde=key_serde or self.default_key_serde,
                value_serde=value_serde or self.default_value_serde,
                partitioner=partitioner,
                parents=parents,
            )
        )

    def add_state_store(self, builder: StoreBuilder, *processors: str) -> None:
        if self.stores.get(builder.name) is not builder:
            self._check_store_name(builder.name)
        self.stores[builder.name] = builder
        for processor in processors:
            self.connect(processor, builder.name)

    def _check_store_name(self, name: str) -> None:
        for kind, stores in (("StateStore", self.stores), ("GlobalStateStore", self.global_stores)):
            if name in stores:
                raise TopologyError(
                    f"A different {kind} has already been added with the name {name}"
                )

    def add_global_store(
        self,
        builder: StoreBuilder,
        *,
        source: str,
        topic: str,
        processor: str,
        supplier: Callable[[], Processor],
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
    ) -> None:
        self._check_store_name(builder.name)
        if source == processor:
            raise TopologyError("sourceName and processorName must be different.")
        builder.logging = False
        self.add_source(
            source,
            [topic],
            key_serde=key_serde,
            value_serde=value_serde,
            timestamp_extractor=timestamp_extractor,
        )
        # It uses this store only: what its supplier brings is left out, as in Kafka Streams.
        self._add(
            ProcessorDefinition(
                name=processor, supplier=supplier, parents=[source], stores=[builder.name]
            )
        )
        self.global_stores[builder.name] = builder
        self.global_sources.add(source)

    def connect(self, processor: str, store: str) -> None:
        """Let a processor use a store; all processors of a store run in one task."""
        if store in self.global_stores:
            raise TopologyError(
                f"Global StateStore {store} can be used by a Processor without being specified; "
                f"it should not be explicitly passed."
            )
        if store not in self.stores:
            raise TopologyError(f"StateStore {store} is not added yet.")
        if processor not in self.nodes:
            raise TopologyError(f"Processor {processor} is not added yet.")
        definition = self.nodes[processor]
        if not isinstance(definition, ProcessorDefinition):
            raise TopologyError(
                f"cannot connect a state store {store} to a source node or a sink node."
            )
        users = self._users.setdefault(store, [])
        if users:
            self._unite(users[0], processor)
        if processor not in users:
            users.append(processor)
        if store not in definition.stores:
            definition.stores.append(store)

    def groups(self) -> list[list[str]]:
        """The nodes of each sub-topology, numbered by their first node."""
        found: dict[str, list[str]] = {}
        for name in self.nodes:
            found.setdefault(self._root(name), []).append(name)
        return list(found.values())

    def check_copartition(self) -> None:
        """Topics that are joined must have the same number of partitions, where it is fixed."""
        for group in self.copartitioned:
            counts = {}
            for topic, source in self._topics.items():
                count = self.internal_topics.get(topic)
                if source in group and count is not None:
                    counts[topic] = count
            if len(set(counts.values())) > 1:
                listed = ", ".join(f"{topic}={counts[topic]}" for topic in sorted(counts))
                raise TopologyError(
                    f"Following topics do not have the same number of partitions: [{{{listed}}}]"
                )

    def is_global(self, group: list[str]) -> bool:
        """Whether a group only fills a global store, and makes no tasks."""
        return any(name in self.global_sources for name in group)
