"""What the engine needs of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from moldau.sql.errors import KsqlException

_RETENTION = "retention.ms"


@dataclass(frozen=True, slots=True)
class TopicShape:
    """A topic that exists. `retention_ms`: None where it is not known."""

    partitions: int
    replicas: int = 1
    retention_ms: int | None = None

    def check(self, name: str, partitions: int, replicas: int, config: Mapping[str, str]) -> None:
        """Raise if it is not the topic that a statement wants; -1 replicas are any number."""
        wanted_ms = int(config[_RETENTION]) if _RETENTION in config else None
        same_time = wanted_ms is None or self.retention_ms in (None, wanted_ms)
        if self.partitions == partitions and self.replicas >= replicas and same_time:
            return
        what, end = "partition/replica", "."
        if wanted_ms is not None and self.retention_ms is not None:
            what += "/retention"
            end = f", and {wanted_ms} retention (topic has {self.retention_ms})."
        raise KsqlException(
            f"A Kafka topic with the name '{name}' already exists, with different {what} "
            f"configuration than required. KSQL expects {partitions} partitions (topic has "
            f"{self.partitions}), {replicas} replication factor (topic has {self.replicas}){end}"
        )


class Topics(Protocol):
    """The topics of the cluster that the engine reads and writes."""

    @property
    def default_partitions(self) -> int | None:
        """Of topics that CREATE statements leave out PARTITIONS for; None: they must not."""

    def partitions(self, name: str) -> int | None:
        """How many partitions a topic has; None if it does not exist."""

    def create(self, name: str, partitions: int, replicas: int, config: Mapping[str, str]) -> None:
        """Create a topic, or check that the one that exists is the same."""

    def delete(self, name: str) -> None: ...

    def counts(self) -> dict[str, int]:
        """Partitions of all topics."""


@dataclass(slots=True)
class MemoryTopics:
    """Topics without a cluster; without default partitions they are as strict as a cluster's."""

    default_partitions: int | None = 1
    _shapes: dict[str, TopicShape] = field(default_factory=dict)

    def partitions(self, name: str) -> int | None:
        found = self._shapes.get(name)
        return None if found is None else found.partitions

    def create(self, name: str, partitions: int, replicas: int, config: Mapping[str, str]) -> None:
        found = self._shapes.setdefault(name, TopicShape(partitions, max(replicas, 1)))
        if self.default_partitions is None:
            found.check(name, partitions, replicas, config)

    def delete(self, name: str) -> None:
        self._shapes.pop(name, None)

    def counts(self) -> dict[str, int]:
        return {name: each.partitions for name, each in self._shapes.items()}
