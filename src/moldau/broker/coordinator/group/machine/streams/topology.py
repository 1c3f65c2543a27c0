"""The topology of a streams application as its members describe it: subtopologies and topics.

Made from a heartbeat or from its record, compared as a whole: a group keeps the topology
that its first member brought. Names and indexes in it are checked when it is resolved
against the topics that exist (`internal_topics.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from moldau.broker.coordinator.group.machine.streams.hash_order import hash_order
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import StreamsGroupDescribeResponse, StreamsGroupTopologyValue

_Value = StreamsGroupTopologyValue
_Described = StreamsGroupDescribeResponse


class TopicInfo(NamedTuple):
    name: str
    partitions: int
    """0: as many as follow from the rest of the topology."""
    replication_factor: int
    """0: the broker's default."""
    configs: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, info: Any) -> TopicInfo:
        return cls(
            info.name,
            info.partitions,
            info.replication_factor,
            tuple((config.key, config.value) for config in info.topic_configs),
        )

    def to_value(self) -> StreamsGroupTopologyValue.TopicInfo:
        return _Value.TopicInfo(
            name=self.name,
            partitions=self.partitions,
            replication_factor=self.replication_factor,
            topic_configs=[_Value.TopicConfig(key=key, value=value) for key, value in self.configs],
        )

    def described(self) -> StreamsGroupDescribeResponse.TopicInfo:
        return _Described.TopicInfo(
            name=self.name,
            partitions=self.partitions,
            replication_factor=self.replication_factor,
            topic_configs=[
                _Described.KeyValue(key=key, value=value) for key, value in self.configs
            ],
        )


class CopartitionGroup(NamedTuple):
    """Indexes into the topics of the subtopology: these must have equally many partitions."""

    source_topics: tuple[int, ...]
    source_topic_regex: tuple[int, ...]
    repartition_source_topics: tuple[int, ...]


@dataclass(frozen=True)
class Subtopology:
    subtopology_id: str
    source_topics: tuple[str, ...]
    source_topic_regex: tuple[str, ...]
    state_changelog_topics: tuple[TopicInfo, ...]
    repartition_sink_topics: tuple[str, ...]
    repartition_source_topics: tuple[TopicInfo, ...]
    copartition_groups: tuple[CopartitionGroup, ...]

    @classmethod
    def of(cls, message: Any) -> Subtopology:
        return cls(
            message.subtopology_id,
            tuple(message.source_topics),
            tuple(message.source_topic_regex),
            tuple(TopicInfo.of(info) for info in message.state_changelog_topics),
            tuple(message.repartition_sink_topics),
            tuple(TopicInfo.of(info) for info in message.repartition_source_topics),
            tuple(
                CopartitionGroup(
                    tuple(group.source_topics),
                    tuple(group.source_topic_regex),
                    tuple(group.repartition_source_topics),
                )
                for group in message.copartition_groups
            ),
        )

    @cached_property
    def input_topics(self) -> tuple[str, ...]:
        """All topics whose partitions become tasks."""
        return (*self.source_topics, *(info.name for info in self.repartition_source_topics))

    def to_value(self) -> StreamsGroupTopologyValue.Subtopology:
        return _Value.Subtopology(
            subtopology_id=self.subtopology_id,
            source_topics=list(self.source_topics),
            source_topic_regex=list(self.source_topic_regex),
            state_changelog_topics=[info.to_value() for info in self.state_changelog_topics],
            repartition_sink_topics=list(self.repartition_sink_topics),
            repartition_source_topics=[info.to_value() for info in self.repartition_source_topics],
            copartition_groups=[
                _Value.CopartitionGroup(
                    source_topics=list(group.source_topics),
                    source_topic_regex=list(group.source_topic_regex),
                    repartition_source_topics=list(group.repartition_source_topics),
                )
                for group in self.copartition_groups
            ],
        )

    def described(
        self, changelogs: Iterable[TopicInfo], repartitions: Iterable[TopicInfo]
    ) -> StreamsGroupDescribeResponse.Subtopology:
        return _Described.Subtopology(
            subtopology_id=self.subtopology_id,
            source_topics=sorted(self.source_topics),
            repartition_sink_topics=sorted(self.repartition_sink_topics),
            state_changelog_topics=[info.described() for info in sorted(changelogs)],
            repartition_source_topics=[info.described() for info in sorted(repartitions)],
        )


@dataclass(frozen=True)
class StreamsTopology:
    epoch: int
    listed: tuple[Subtopology, ...]
    """In the order of the record, which is stored unchanged."""

    @classmethod
    def of(cls, message: Any) -> StreamsTopology:
        """From a heartbeat's topology or from its record: both spell it alike."""
        topology = cls(message.epoch, tuple(Subtopology.of(each) for each in message.subtopologies))
        if topology.epoch < 0 or len(topology.subtopologies) < len(topology.listed):
            raise ApiError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                "a topology has an epoch of 0 or more and each subtopology id once, "
                f"unlike epoch {topology.epoch} with "
                f"{[each.subtopology_id for each in topology.listed]}",
            )
        return topology

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, StreamsTopology)
            and self.epoch == other.epoch
            and self.subtopologies == other.subtopologies
        )

    def __hash__(self) -> int:
        return hash((self.epoch, frozenset(self.subtopologies)))

    @cached_property
    def subtopologies(self) -> dict[str, Subtopology]:
        """In Kafka's order of iteration, on which resolved partition counts may depend."""
        by_id = {each.subtopology_id: each for each in self.listed}
        return {key: by_id[key] for key in hash_order(by_id)}

    @cached_property
    def subtopology_of_source(self) -> dict[str, str]:
        """The subtopology that reads a topic, by topic name."""
        return {
            topic: subtopology.subtopology_id
            for subtopology in self.subtopologies.values()
            for topic in subtopology.input_topics
        }

    @cached_property
    def required_topics(self) -> frozenset[str]:
        return frozenset(self.subtopology_of_source) | {
            info.name
            for subtopology in self.subtopologies.values()
            for info in subtopology.state_changelog_topics
        }

    def to_value(self) -> StreamsGroupTopologyValue:
        return _Value(epoch=self.epoch, subtopologies=[each.to_value() for each in self.listed])

    def described(self) -> StreamsGroupDescribeResponse.Topology:
        return _Described.Topology(
            epoch=self.epoch,
            subtopologies=[
                each.described(each.state_changelog_topics, each.repartition_source_topics)
                for _, each in sorted(self.subtopologies.items())
            ],
        )
