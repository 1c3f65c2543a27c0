"""The input and the result of an assignor.

An assignor is a function of its arguments alone: the subscriptions of the members, the current
target assignment, and the partition counts of the topics. Every subscribed topic is in `topics`, or
does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol
from uuid import UUID

from moldau.broker.coordinator.machine.topics import TopicFacts
from moldau.wire.errors import ApiError, ErrorCode

_SIGN_BITS = 1 << 127 | 1 << 63

Assignment = Mapping[UUID, frozenset[int]]
"""The partitions of one member, by topic; a topic without partitions is left out."""


class MemberSubscription(NamedTuple):
    """A member as the assignor sees it; `assigned` is its current target assignment."""

    instance_id: str | None
    rack_id: str | None
    topic_ids: frozenset[UUID]
    assigned: Assignment


class GroupSpec(NamedTuple):
    """All members by id; homogeneous if every one subscribes to the same topics.

    `assignable` names the partitions that may be assigned, None means all: a share
    group assigns a partition only once its share state is initialised.
    """

    members: Mapping[str, MemberSubscription]
    homogeneous: bool
    assignable: Assignment | None = None


class Assignor(Protocol):
    @property
    def name(self) -> str: ...

    def assign(
        self, spec: GroupSpec, topics: Mapping[UUID, TopicFacts]
    ) -> dict[str, dict[UUID, frozenset[int]]]:
        """The new target assignment of every member of the spec."""


def topic_order(topic_id: UUID) -> int:
    """Sorts topic ids as Kafka does: by the two halves, each as a signed number."""
    return topic_id.int ^ _SIGN_BITS


def text_order(text: str) -> bytes:
    """Sorts text as Java does: by UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")


def partition_count(topic_id: UUID, topics: Mapping[UUID, TopicFacts]) -> int:
    """How many partitions a subscribed topic has; a topic that is gone stops the assignor."""
    facts = topics.get(topic_id)
    if facts is None:
        raise ApiError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"Members are subscribed to topic {topic_id}, which does not exist: "
            "resolve the subscriptions again before assigning.",
        )
    return facts.partition_count
