"""Decides which tasks a topology has, and the internal topics that they need.

A sub-topology is a part of the topology that runs by itself. Its tasks are as many as the largest
of its input topics has partitions: task `1_3` reads partition 3 of every input topic of
sub-topology 1 that has one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from moldau.streams.errors import MissingSourceTopicError, TopologyError

ADDITIONAL_LAG_MS = 24 * 60 * 60 * 1000
_LONG_MAX = 2**63 - 1
_CREATE_TIME = {"message.timestamp.type": "CreateTime"}


class TaskId(NamedTuple):
    """A task: the number of its sub-topology, and its partition."""

    subtopology: int
    partition: int

    def __str__(self) -> str:
        return f"{self.subtopology}_{self.partition}"

    @classmethod
    def parse(cls, text: str) -> TaskId:
        """The task of a text such as "1_3"."""
        subtopology, _, partition = text.partition("_")
        return cls(int(subtopology), int(partition))


class ChangelogTopic(NamedTuple):
    """What a store's changelog topic must be like; times are those that its store needs."""

    topic: str
    retention_ms: int | None = None
    history_ms: int | None = None
    #: The topic is one of the application's inputs, and is neither created nor written to.
    is_source: bool = False
    #: What the program sets for this topic; it counts before the application's settings.
    config: Mapping[str, str] = {}


class SubTopology(NamedTuple):
    """The topics of one sub-topology, by their names on the cluster."""

    number: int
    nodes: tuple[str, ...]
    topics: frozenset[str] = frozenset()
    patterns: tuple[re.Pattern[str], ...] = ()
    #: Internal topics that it reads and writes, and input topics that it writes to.
    repartition_topics: frozenset[str] = frozenset()
    sinks: frozenset[str] = frozenset()
    #: The names of all its stores, and the changelogs of those that have one.
    stores: frozenset[str] = frozenset()
    changelogs: Mapping[str, ChangelogTopic] = {}

    @property
    def is_stateful(self) -> bool:
        """Whether a task of it has something to restore."""
        return bool(self.changelogs)

    def reads(self, topic: str) -> bool:
        return (
            topic in self.topics
            or topic in self.repartition_topics
            or any(pattern.fullmatch(topic) for pattern in self.patterns)
        )

    def inputs(self, known: Iterable[str]) -> set[str]:
        """Its input topics; `known` are those that a pattern may match."""
        found = set(self.topics | self.repartition_topics)
        if self.patterns:
            found.update(topic for topic in known if self.reads(topic))
        return found


class Plan(NamedTuple):
    """A topology as its hosts see it."""

    application_id: str
    subtopologies: Sequence[SubTopology]
    #: Internal topics that are read, with the number of partitions where the program gives it.
    repartition_counts: Mapping[str, int | None]
    #: Topics whose partitions are joined one by one.
    copartitioned: Sequence[frozenset[str]]
    global_topics: frozenset[str] = frozenset()

    def subtopology_of(self, topic: str) -> SubTopology | None:
        """The sub-topology that reads a topic: there is at most one."""
        for each in self.subtopologies:
            if each.reads(topic):
                return each
        return None

    def task_of(self, topic: str, partition: int) -> TaskId | None:
        found = self.subtopology_of(topic)
        return None if found is None else TaskId(found.number, partition)

    def tasks(self, counts: Mapping[str, int]) -> dict[TaskId, frozenset[tuple[str, int]]]:
        """All tasks with their partitions, by the partition counts of the cluster's topics."""
        found: dict[TaskId, frozenset[tuple[str, int]]] = {}
        for each in self.subtopologies:
            inputs = {topic: counts.get(topic, 0) for topic in each.inputs(counts)}
            for number in range(max(inputs.values(), default=0)):
                found[TaskId(each.number, number)] = frozenset(
                    (topic, number) for topic, count in inputs.items() if number < count
                )
        return found

    def stateful(self, task: TaskId) -> bool:
        return any(
            each.is_stateful for each in self.subtopologies if each.number == task.subtopology
        )


def partition_counts(plan: Plan, known: Mapping[str, int]) -> dict[str, int]:
    """The partition counts of all internal topics, as Kafka Streams computes them.

    A repartition topic has as many as the largest input of what writes to it; topics that are
    joined have the same count; a changelog has as many as its sub-topology has tasks.
    """
    _check_sources(plan, known)
    counts = dict(known)
    pending: set[str] = set()
    for topic, fixed in plan.repartition_counts.items():
        if fixed is None:
            counts.pop(topic, None)
            pending.add(topic)
        else:
            counts[topic] = fixed
    while pending:
        found = {topic: _written_count(plan, topic, counts) for topic in pending}
        found = {topic: count for topic, count in found.items() if count}
        if not found:
            names = ", ".join(sorted(pending))
            raise TopologyError(
                f"Failed to compute number of partitions for all repartition topics: {names}"
            )
        counts.update(found)
        pending.difference_update(found)
    for group in plan.copartitioned:
        _copartition(plan, group, counts)
    internal = {topic: counts[topic] for topic in plan.repartition_counts}
    for each in plan.subtopologies:
        tasks = max((counts.get(topic, 0) for topic in each.inputs(known)), default=0)
        for changelog in each.changelogs.values():
            if not changelog.is_source:
                internal[changelog.topic] = tasks
    return internal


def missing_sources(plan: Plan, known: Collection[str]) -> list[str]:
    """Input topics that the plan names and that do not exist."""
    wanted = {topic for each in plan.subtopologies for topic in each.topics}
    return sorted(topic for topic in wanted if topic not in known)


def _check_sources(plan: Plan, known: Mapping[str, int]) -> None:
    missing = missing_sources(plan, known)
    missing += sorted(topic for topic in plan.global_topics if topic not in known)
    if missing:
        raise MissingSourceTopicError(
            f"Missing source topics: {', '.join(missing)}. Create them before the application "
            f"starts."
        )


def _written_count(plan: Plan, topic: str, counts: Mapping[str, int]) -> int:
    """The largest count among the inputs of what writes to a topic; 0 while it is not known."""
    most = 0
    for each in plan.subtopologies:
        if topic in each.sinks:
            for source in each.inputs(counts):
                most = max(most, counts.get(source, 0))
    return most


def _copartition(plan: Plan, group: frozenset[str], counts: dict[str, int]) -> None:
    """Give repartition topics that are joined with others the same count, or refuse."""
    sources = {topic: counts[topic] for topic in group if topic not in plan.repartition_counts}
    internal = {topic: plan.repartition_counts[topic] for topic in group if topic not in sources}
    if len(set(sources.values())) > 1:
        raise TopologyError(f"Topics not co-partitioned: {_listed(sources)}")
    fixed = {topic: count for topic, count in internal.items() if count is not None}
    if len(set(fixed.values())) > 1:
        raise TopologyError(
            f"Following topics do not have the same number of partitions: {_listed(fixed)}"
        )
    count = next(iter(sources.values()), None)
    if fixed:
        given = next(iter(fixed.values()))
        if count is not None and given != count:
            raise TopologyError(
                f"Number of partitions [{given}] of repartition topic [{min(fixed)}] doesn't match "
                f"number of partitions [{count}] of the source topic."
            )
        count = given
    if count is None:
        count = max((counts[topic] for topic in internal), default=0)
    for topic in internal:
        counts[topic] = count


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{topic}={counts[topic]}" for topic in sorted(counts))


def repartition_config(overrides: Mapping[str, str]) -> dict[str, str]:
    """The configuration of a repartition topic."""
    return {
        **_CREATE_TIME,
        "cleanup.policy": "delete",
        "segment.bytes": "52428800",
        "retention.ms": "-1",
        **overrides,
    }


def changelog_config(
    changelog: ChangelogTopic, overrides: Mapping[str, str], *, additional_retention_ms: int
) -> dict[str, str]:
    """The configuration of a changelog topic: compacted, and for windows also deleted by time.

    How long windows and versions are kept follows from their store, unless the program says
    it for this topic.
    """
    if changelog.retention_ms is not None:
        retention_ms = min(_LONG_MAX, changelog.retention_ms + additional_retention_ms)
        return {
            **_CREATE_TIME,
            "cleanup.policy": "compact,delete",
            **overrides,
            "retention.ms": str(retention_ms),
            **changelog.config,
        }
    config = {**_CREATE_TIME, "cleanup.policy": "compact", **overrides}
    if changelog.history_ms is not None:
        lag_ms = min(_LONG_MAX, changelog.history_ms + ADDITIONAL_LAG_MS)
        config["min.compaction.lag.ms"] = str(lag_ms)
    return {**config, **changelog.config}
