"""What a streams application gives to a member of a streams group (KIP-1071), and learns from it.

An object with `make_membership` in `partition.assignment.strategy` takes the place of an assignor:
`StreamsGroupProtocol` is the one there is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from moldau.client.consumer.assignors.interface import PartitionAssignor
from moldau.client.topics import TopicPartition

__all__ = [
    "GroupStatus",
    "InternalTopic",
    "StreamsApplication",
    "StreamsGroupProtocol",
    "SubtopologyInfo",
    "TasksByEndpoint",
]

#: Sub-topology and partition.
Task = tuple[str, int]
#: The partitions that each endpoint has, active and standby.
TasksByEndpoint = Mapping[str, tuple[frozenset[TopicPartition], frozenset[TopicPartition]]]


class GroupStatus(NamedTuple):
    """What the coordinator says about the group, by Kafka's numbers."""

    code: int
    detail: str


STALE_TOPOLOGY, MISSING_SOURCE_TOPICS, INCORRECTLY_PARTITIONED = 0, 1, 2
MISSING_INTERNAL_TOPICS, SHUTDOWN_APPLICATION, ASSIGNMENT_DELAYED = 3, 4, 5


class InternalTopic(NamedTuple):
    """A topic that the coordinator creates; 0 partitions leave the number to it."""

    name: str
    partitions: int = 0
    replication_factor: int = -1
    configs: Mapping[str, str] = {}


class SubtopologyInfo(NamedTuple):
    """A sub-topology, as the coordinator has to know it."""

    id: str
    source_topics: Sequence[str] = ()
    source_patterns: Sequence[str] = ()
    repartition_sinks: Sequence[str] = ()
    repartition_sources: Sequence[InternalTopic] = ()
    changelogs: Sequence[InternalTopic] = ()
    #: Names of source and repartition topics that are joined.
    copartitioned: Sequence[frozenset[str]] = ()


class StreamsApplication(Protocol):
    """The application. Its methods are called on the consumer's thread."""

    @property
    def member_id(self) -> str: ...

    @property
    def process_id(self) -> str: ...

    @property
    def endpoint(self) -> str:
        """host:port, or empty."""
        ...

    @property
    def subtopologies(self) -> Sequence[SubtopologyInfo]: ...

    @property
    def shutdown_requested(self) -> bool: ...

    def partitions_of(
        self, task: Task, counts: Mapping[str, int]
    ) -> frozenset[TopicPartition] | None:
        """The partitions that a task reads; `None` while one of its topics is not known."""
        ...

    def on_tasks(self, active: frozenset[Task], standby: frozenset[Task]) -> None:
        """What the coordinator wants this member to run."""
        ...

    def on_endpoints(self, tasks: TasksByEndpoint) -> None: ...

    def on_status(self, status: Sequence[GroupStatus]) -> None: ...


class StreamsGroupProtocol(PartitionAssignor):
    """Makes the consumer a member of a streams group."""

    name = "streams"

    def __init__(self, application: StreamsApplication) -> None:
        self.application = application

    def make_membership(self, host: Any, make: Callable[[Any, StreamsApplication], Any]) -> Any:
        return make(host, self.application)
