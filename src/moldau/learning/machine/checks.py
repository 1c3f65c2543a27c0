"""What an exercise demands of the reader's cluster, and whether what was seen there satisfies it.

A check is data. The shell looks (`learning/observing.py`) and passes what it saw to `verdict`,
which returns None if the demand is met, else what is missing, in words for the reader.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

__all__ = [
    "Check",
    "Compacted",
    "ConnectorRuns",
    "FileHolds",
    "GroupHasRead",
    "HoldsRecords",
    "LeaderMoved",
    "PartitionSeen",
    "SqlHas",
    "SubjectHas",
    "TopicHas",
    "TopicSeen",
]

Record = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class PartitionSeen:
    """Replicas of a partition, those in sync, and the epoch of its leader."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader_epoch: int = 0


@dataclass(frozen=True, slots=True)
class TopicSeen:
    partitions: tuple[PartitionSeen, ...]
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicHas:
    """A topic with these partitions, replicas and configurations."""

    topic: str
    partitions: int = 1
    replicas: int = 1
    configs: Mapping[str, str] = field(default_factory=dict)
    on_cluster: bool = False

    def verdict(self, seen: TopicSeen | None) -> str | None:
        if seen is None:
            return f"there is no topic {self.topic}"
        if len(seen.partitions) != self.partitions:
            found = _count(len(seen.partitions), "partition")
            return f"{self.topic} has {found}, not {self.partitions}"
        fewest = min(len(each.replicas) for each in seen.partitions)
        if fewest < self.replicas:
            return f"{self.topic} has {_count(fewest, 'replica')}, not {self.replicas}"
        for name, wanted in self.configs.items():
            if seen.configs.get(name) != wanted:
                return f"{self.topic} has {name}={seen.configs.get(name)}, not {wanted}"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldsRecords:
    """At least `count` records, among them `values` and `pairs` of key and value."""

    topic: str
    count: int
    values: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    value_deserializer: str = "string"
    on_cluster: bool = False

    @property
    def only_counts(self) -> bool:
        return not self.values and not self.pairs

    def verdict(self, seen: int | Sequence[Record] | None) -> str | None:
        if seen is None:
            return f"there is no topic {self.topic}"
        count = seen if isinstance(seen, int) else len(seen)
        if count < self.count:
            return f"{self.topic} has {_count(count, 'record')}, not {self.count}"
        if isinstance(seen, int):
            return None
        there = {value for _, value in seen}
        for value in self.values:
            if value not in there:
                return f"{self.topic} has no record {value!r}"
        for key, value in self.pairs:
            if (key, value) not in seen:
                return f"{self.topic} has no record with the key {key!r} and the value {value!r}"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHasRead:
    """A group that has committed offsets of a topic and is not behind."""

    group: str
    topic: str

    def verdict(self, lags: Sequence[int] | None) -> str | None:
        if lags is None:
            return f"the group {self.group} has committed no offsets of {self.topic}"
        behind = sum(lags)
        if behind:
            return f"the group {self.group} is {_count(behind, 'record')} behind in {self.topic}"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderMoved:
    """A partition whose leader has changed and all of whose replicas are in sync again."""

    topic: str

    def verdict(self, seen: TopicSeen | None) -> str | None:
        if seen is None:
            return f"there is no topic {self.topic}"
        partition = seen.partitions[0]
        if partition.leader_epoch < 1:
            return f"the leader of {self.topic} has not changed yet: kill the node that leads it"
        if len(partition.isr) < len(partition.replicas):
            return (
                f"only {len(partition.isr)} of {len(partition.replicas)} replicas are in sync: "
                "start the nodes again that you killed"
            )
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """A log whose older values of a key are gone, with these as the latest."""

    topic: str
    latest: Mapping[str, str | None]

    def verdict(self, seen: tuple[int, Sequence[Record]] | None) -> str | None:
        """`seen` is how many offsets the log has, and the records that are left."""
        if seen is None:
            return f"there is no topic {self.topic}"
        offsets, records = seen
        last = dict(records)
        for key, value in self.latest.items():
            found = last.get(key)
            if found != value:
                return f"the latest value of {key!r} in {self.topic} is {found!r}, not {value!r}"
        if len(records) >= offsets:
            return (
                f"all {offsets} records of {self.topic} are still there: nothing is compacted yet"
            )
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectHas:
    """A subject with so many versions, the latest of which has a field."""

    subject: str
    versions: int
    field: str

    def verdict(self, seen: tuple[int, str] | None) -> str | None:
        """`seen` is how many versions there are, and the latest schema."""
        if seen is None:
            return f"the registry has no subject {self.subject}"
        count, schema = seen
        if count < self.versions:
            return f"{self.subject} has {_count(count, 'version')}, not {self.versions}"
        if f'"{self.field}"' not in schema:
            return f"the latest version of {self.subject} has no field {self.field}"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorRuns:
    """A connector that runs, with its tasks."""

    name: str

    def verdict(self, states: Sequence[str] | None) -> str | None:
        if states is None:
            return f"there is no connector {self.name}"
        if wrong := [state for state in states if state != "RUNNING"]:
            return f"the connector {self.name} is {wrong[0]}: moldau connect explain {self.name}"
        return None if len(states) > 1 else f"the connector {self.name} has no task yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHolds:
    """A file of the exercise's folder with these lines."""

    name: str
    lines: tuple[str, ...]

    def verdict(self, seen: Sequence[str] | None) -> str | None:
        if seen is None:
            return f"there is no file {self.name}"
        missing = [line for line in self.lines if line not in seen]
        return f"{self.name} has no line {missing[0]!r}" if missing else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlHas:
    """A stream or table of the SQL server."""

    name: str

    def verdict(self, names: Sequence[str]) -> str | None:
        if self.name in names:
            return None
        return f"the SQL server has no stream or table {self.name}"


Check = (
    TopicHas
    | HoldsRecords
    | GroupHasRead
    | LeaderMoved
    | Compacted
    | SubjectHas
    | ConnectorRuns
    | FileHolds
    | SqlHas
)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
