"""What the engine needs of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


class Topics(Protocol):
    """The topics of the cluster that the engine reads and writes."""

    def partitions(self, name: str) -> int | None:
        """How many partitions a topic has; None if it does not exist."""

    def create(
        self, name: str, partitions: int, replicas: int, config: Mapping[str, str]
    ) -> None: ...

    def delete(self, name: str) -> None: ...

    def counts(self) -> dict[str, int]:
        """Partitions of all topics."""


@dataclass(slots=True)
class MemoryTopics:
    """Topics without a cluster. `create_missing`: CREATE statements may leave out PARTITIONS."""

    create_missing: bool = True
    default_partitions: int = 1
    _counts: dict[str, int] = field(default_factory=dict)

    def partitions(self, name: str) -> int | None:
        return self._counts.get(name)

    def create(self, name: str, partitions: int, replicas: int, config: Mapping[str, str]) -> None:
        self._counts.setdefault(name, partitions)

    def delete(self, name: str) -> None:
        self._counts.pop(name, None)

    def counts(self) -> dict[str, int]:
        return dict(self._counts)
