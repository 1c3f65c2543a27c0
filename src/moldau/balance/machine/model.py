"""A cluster as the planner sees it: brokers, partitions, what each replica costs, and a plan.

A partition's leader is its preferred leader, the first of its replicas: a plan ends with the
election of preferred leaders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

__all__ = [
    "Broker",
    "Cluster",
    "Constraints",
    "Impossible",
    "Loads",
    "Partition",
    "Plan",
    "Reassignment",
    "Resource",
    "replica_loads",
]


class Impossible(Exception):
    """No plan can do what was asked; the message says why and what to do."""


class Resource(IntEnum):
    """What replicas use of a broker; the last two are counts."""

    DISK = 0
    NETWORK_IN = 1
    NETWORK_OUT = 2
    CPU = 3
    REPLICAS = 4
    LEADERS = 5

    @property
    def label(self) -> str:
        return _LABELS[self]


_LABELS = {
    Resource.DISK: "disk",
    Resource.NETWORK_IN: "network in",
    Resource.NETWORK_OUT: "network out",
    Resource.CPU: "CPU",
    Resource.REPLICAS: "replicas",
    Resource.LEADERS: "leaders",
}

Loads = tuple[float, ...]
"""One number per resource."""


@dataclass(frozen=True, slots=True)
class Broker:
    id: int
    rack: str | None = None
    alive: bool = True
    capacity: Mapping[Resource, float] = field(default_factory=dict)
    """Without an entry a resource has no limit."""


@dataclass(frozen=True, slots=True)
class Partition:
    topic: str
    number: int
    replicas: tuple[int, ...]
    disk: float = 0.0
    bytes_in: float = 0.0
    """Produced bytes per second; each replica receives them."""
    bytes_out: float = 0.0
    """Consumed bytes per second, without what followers fetch."""
    cpu: float = 0.0
    """The leader's share of its broker's CPU."""
    fixed: bool = False
    """It must stay as it is: no leader is there to copy from."""


@dataclass(frozen=True, slots=True)
class Cluster:
    brokers: Sequence[Broker]
    partitions: Sequence[Partition]


@dataclass(frozen=True, slots=True)
class Constraints:
    """What makes `add-broker` and `drain-broker` of the planner."""

    drained: frozenset[int] = frozenset()
    """These brokers give all replicas away and receive none."""
    others_too: bool = False
    """Whether the others are balanced as well; without it only what drained brokers hold moves."""
    added: frozenset[int] = frozenset()
    """Only these brokers receive replicas, if any are named."""


@dataclass(frozen=True, slots=True)
class Reassignment:
    topic: str
    partition: int
    before: tuple[int, ...]
    after: tuple[int, ...]
    disk: float
    """The size of one replica."""
    reason: str

    @property
    def adding(self) -> tuple[int, ...]:
        return tuple(each for each in self.after if each not in self.before)

    @property
    def bytes_moved(self) -> float:
        return self.disk * len(self.adding)


@dataclass(frozen=True, slots=True)
class Plan:
    reassignments: tuple[Reassignment, ...]
    before: Mapping[int, Loads]
    after: Mapping[int, Loads]
    unmet: tuple[str, ...]
    """Goals that no step could reach, each as a sentence."""
    steps: int
    """Candidates that were weighed: the planner's work, independent of the machine."""

    @property
    def bytes_moved(self) -> float:
        return sum(each.bytes_moved for each in self.reassignments)

    def seconds_at(self, bytes_per_second: float) -> float:
        """How long the copies take if each broker sends and receives at most this much.

        The busiest broker decides. A leader sends the copies of its partition.
        """
        sent: dict[int, float] = {}
        received: dict[int, float] = {}
        for each in self.reassignments:
            for broker in each.adding:
                received[broker] = received.get(broker, 0.0) + each.disk
                sent[each.before[0]] = sent.get(each.before[0], 0.0) + each.disk
        busiest = max([*sent.values(), *received.values()], default=0.0)
        return busiest / bytes_per_second


def replica_loads(partition: Partition) -> tuple[Loads, Loads]:
    """What the leader and what each follower of a partition uses."""
    followers = len(partition.replicas) - 1
    sent = partition.bytes_out + partition.bytes_in * followers
    leader = (partition.disk, partition.bytes_in, sent, partition.cpu, 1.0, 1.0)
    follower = (partition.disk, partition.bytes_in, 0.0, 0.0, 1.0, 0.0)
    return leader, follower
