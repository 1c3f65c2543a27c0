"""Resolves a topology against the topics that exist: task counts, and which topics to create.

Repartition topics without a partition count get the largest count among what feeds them;
topics of a copartition group get one common count; changelogs get the task count of
their subtopology. Invariant: a topology is ready only if every topic that it needs exists with the
partitions that it needs. A topology that contradicts itself is rejected (STREAMS_INVALID_TOPOLOGY);
one that the present topics contradict is stored, with a status that gives the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

from moldau.broker.coordinator.group.machine.streams.events import InternalTopic
from moldau.broker.coordinator.group.machine.streams.topology import (
    StreamsTopology,
    Subtopology,
    TopicInfo,
)
from moldau.broker.coordinator.machine.topics import ClusterTopics
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import StreamsGroupDescribeResponse, StreamsGroupHeartbeatResponse

T = TypeVar("T")
PartitionCount = Callable[[str], int | None]
_TOPICS_SHOWN_MAX = 3
_DEFAULT_REPLICATION_FACTOR = -1


class Status(IntEnum):
    """What the response to a heartbeat reports about the group."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5

    def saying(self, detail: str) -> StreamsGroupHeartbeatResponse.Status:
        return StreamsGroupHeartbeatResponse.Status(status_code=self, status_detail=detail)


@dataclass(frozen=True, slots=True)
class ConfiguredSubtopology:
    subtopology: Subtopology
    task_count: int
    repartition_source_topics: tuple[TopicInfo, ...]
    state_changelog_topics: tuple[TopicInfo, ...]

    @property
    def is_stateful(self) -> bool:
        return bool(self.state_changelog_topics)


@dataclass(frozen=True, slots=True)
class ConfiguredTopology:
    epoch: int
    subtopologies: Mapping[str, ConfiguredSubtopology] | None
    """By id, in order of ids; None if partition counts could not be decided."""
    missing_topics: tuple[InternalTopic, ...] = ()
    problem: tuple[Status, str] | None = None

    @property
    def is_ready(self) -> bool:
        return self.problem is None

    def described(self) -> StreamsGroupDescribeResponse.Topology:
        return StreamsGroupDescribeResponse.Topology(
            epoch=self.epoch,
            subtopologies=[
                each.subtopology.described(
                    each.state_changelog_topics, each.repartition_source_topics
                )
                for each in (self.subtopologies or {}).values()
            ],
        )


class _MustWait(Exception):
    def __init__(self, status: Status, detail: str) -> None:
        super().__init__(detail)
        self.problem = (status, detail)


def configure(topology: StreamsTopology, topics: ClusterTopics) -> ConfiguredTopology:
    def existing(name: str) -> int | None:
        facts = topics.topic(name)
        return None if facts is None else facts.partition_count

    copartition_groups = [
        group
        for subtopology in topology.subtopologies.values()
        for group in _copartition_groups(subtopology)
    ]
    try:
        _check_source_topics(topology, existing)
        counts = _decide_counts(topology, copartition_groups, existing)
        subtopologies = {
            key: _configured(subtopology, existing, counts)
            for key, subtopology in sorted(topology.subtopologies.items())
        }
        missing = _missing_topics(topology, subtopologies, existing)
    except _MustWait as wait:
        return ConfiguredTopology(topology.epoch, None, problem=wait.problem)
    problem = None
    if missing:
        detail = f"internal topics are missing: {_shown(topic.name for topic in missing)}"
        problem = (Status.MISSING_INTERNAL_TOPICS, detail)
    return ConfiguredTopology(topology.epoch, subtopologies, missing, problem)


def _check_source_topics(topology: StreamsTopology, existing: PartitionCount) -> None:
    missing = {
        topic
        for subtopology in topology.subtopologies.values()
        for topic in subtopology.source_topics
        if existing(topic) is None
    }
    if missing:
        raise _MustWait(
            Status.MISSING_SOURCE_TOPICS, f"source topics are missing: {_shown(sorted(missing))}"
        )


def _decide_counts(
    topology: StreamsTopology,
    copartition_groups: Iterable[frozenset[str]],
    existing: PartitionCount,
) -> dict[str, int]:
    """Partition counts of internal topics, by name."""
    decided: dict[str, int] = {}

    def count(name: str) -> int | None:
        # A topic that exists keeps its count, whatever it ought to have.
        found = existing(name)
        return decided.get(name) if found is None else found

    decided.update(_repartition_counts(topology, count))
    repartitions = [
        info
        for subtopology in topology.subtopologies.values()
        for info in subtopology.repartition_source_topics
    ]
    internal = {info.name for info in repartitions}
    fixed = {info.name for info in repartitions if info.partitions != 0}
    for group in copartition_groups:
        decided.update(_copartitioned(group, internal, fixed, count))
    for subtopology in topology.subtopologies.values():
        task_count = _task_count(subtopology, count)
        decided.update((info.name, task_count) for info in subtopology.state_changelog_topics)
    return decided


def _repartition_counts(topology: StreamsTopology, count: PartitionCount) -> dict[str, int]:
    subtopologies = topology.subtopologies.values()
    counts = {
        info.name: info.partitions
        for subtopology in subtopologies
        for info in subtopology.repartition_source_topics
        if info.partitions != 0
    }
    waiting = True
    while waiting:
        waiting = progress = False
        for subtopology in subtopologies:
            for sink in subtopology.repartition_sink_topics:
                if sink in counts:
                    continue
                feeding = _largest_source(subtopology, counts, count)
                if feeding is None:
                    waiting = True
                else:
                    counts[sink] = feeding
                    progress = True
        if waiting and not progress:
            raise _invalid(
                "repartition topics feed each other in a circle: give one of them a partition count"
            )
    for subtopology in subtopologies:
        for info in subtopology.repartition_source_topics:
            if info.name not in counts:
                raise _invalid(
                    f"no subtopology writes to repartition topic {info.name}, so it is unknown how "
                    "many partitions it needs"
                )
    return counts


def _largest_source(
    subtopology: Subtopology, counts: Mapping[str, int], count: PartitionCount
) -> int | None:
    known = [counts.get(info.name) for info in subtopology.repartition_source_topics]
    known += [count(topic) for topic in subtopology.source_topics]
    return max((each for each in known if each is not None), default=None)


def _copartition_groups(subtopology: Subtopology) -> Iterable[frozenset[str]]:
    for group in subtopology.copartition_groups:
        try:
            yield frozenset(
                [
                    *(_at(subtopology.source_topics, index) for index in group.source_topics),
                    *(
                        _at(subtopology.repartition_source_topics, index).name
                        for index in group.repartition_source_topics
                    ),
                ]
            )
        except IndexError as error:
            raise ApiError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"a copartition group of subtopology {subtopology.subtopology_id} names a topic "
                f"that the subtopology does not list: {group}",
            ) from error


def _at(topics: tuple[T, ...], index: int) -> T:
    if index < 0:
        raise IndexError(index)
    return topics[index]


def _copartitioned(
    group: frozenset[str],
    repartitions: set[str],
    fixed: set[str],
    count: PartitionCount,
) -> dict[str, int]:
    """The common count for every repartition topic of a copartition group."""
    if not group:
        return {}
    counts = {topic: _known(topic, count) for topic in sorted(group)}
    internal = {topic: counts[topic] for topic in sorted(group & repartitions)}
    external = {topic: counts[topic] for topic in sorted(group - internal.keys())}
    if external:
        common = _same(external)
    elif fixed:
        _same({topic: _known(topic, count) for topic in sorted(fixed)}, shown=internal)
        common = _known(min(fixed), count)
    else:
        common = max(internal.values())
    for topic, partitions in internal.items():
        if topic in fixed and partitions != common:
            raise _MustWait(
                Status.INCORRECTLY_PARTITIONED_TOPICS,
                f"repartition topic {topic} is to have {partitions} partitions, but the topics it "
                f"is copartitioned with have {common}",
            )
    return dict.fromkeys(internal, common)


def _same(counts: Mapping[str, int], shown: Mapping[str, int] | None = None) -> int:
    if len(set(counts.values())) > 1:
        listed = ", ".join(
            f"{topic}={partitions}"
            for topic, partitions in (counts if shown is None else shown).items()
        )
        raise _MustWait(
            Status.INCORRECTLY_PARTITIONED_TOPICS,
            f"copartitioned topics differ in their number of partitions: {listed}",
        )
    return next(iter(counts.values()))


def _configured(
    subtopology: Subtopology, existing: PartitionCount, decided: Mapping[str, int]
) -> ConfiguredSubtopology:
    def count(name: str) -> int | None:
        found = existing(name)
        return decided.get(name) if found is None else found

    def resolved(info: TopicInfo) -> TopicInfo:
        partitions = info.partitions or decided[info.name]
        if partitions < 1:
            raise ApiError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"internal topic {info.name} cannot have {partitions} partitions",
            )
        return info._replace(partitions=partitions, configs=tuple(dict(info.configs).items()))

    return ConfiguredSubtopology(
        subtopology,
        _task_count(subtopology, count),
        tuple(resolved(info) for info in subtopology.repartition_source_topics),
        tuple(resolved(info) for info in subtopology.state_changelog_topics),
    )


def _missing_topics(
    topology: StreamsTopology,
    subtopologies: Mapping[str, ConfiguredSubtopology],
    existing: PartitionCount,
) -> tuple[InternalTopic, ...]:
    expected = {
        info.name: info
        for each in subtopologies.values()
        for info in (*each.repartition_source_topics, *each.state_changelog_topics)
    }
    missing = []
    for name, info in sorted(expected.items()):
        found = existing(name)
        if found is None:
            missing.append(
                InternalTopic(
                    name,
                    info.partitions,
                    info.replication_factor or _DEFAULT_REPLICATION_FACTOR,
                    info.configs,
                )
            )
        elif found != info.partitions:
            raise _MustWait(
                Status.INCORRECTLY_PARTITIONED_TOPICS,
                f"topic {name} exists with {found} partitions instead of {info.partitions}",
            )
    return tuple(missing)


def _task_count(subtopology: Subtopology, count: PartitionCount) -> int:
    if not subtopology.input_topics:
        raise _invalid(f"subtopology {subtopology.subtopology_id} reads no topics")
    return max(_known(topic, count) for topic in subtopology.input_topics)


def _known(topic: str, count: PartitionCount) -> int:
    found = count(topic)
    if found is None:
        raise ApiError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"the partition count of topic {topic} is unknown"
        )
    return found


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)


def _shown(topics: Iterable[str]) -> str:
    names = list(topics)
    text = ", ".join(names[:_TOPICS_SHOWN_MAX])
    more = len(names) - _TOPICS_SHOWN_MAX
    return f"{text} and {more} more" if more > 0 else text
