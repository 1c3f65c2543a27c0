"""The bytes that consumers of the classic protocol put into JoinGroup and SyncGroup.

A version of two bytes comes first. A newer version than is known here is read as the
newest known one, of which it is a continuation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from moldau.broker.coordinator.machine.topics import ClusterTopics
from moldau.wire.codec import decode
from moldau.wire.errors import WireError
from moldau.wire.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from moldau.wire.record_values import encode_versioned

_VERSION_SIZE = 2


def version_of(data: bytes) -> int:
    """The version in which to read it, and in which to answer."""
    if len(data) < _VERSION_SIZE:
        raise WireError("the embedded consumer protocol begins with a version, which is missing")
    version = int.from_bytes(data[:_VERSION_SIZE], "big", signed=True)
    if version < 0:
        raise WireError(f"the embedded consumer protocol has no version {version}")
    return min(version, ConsumerProtocolSubscription.HIGHEST_VERSION)


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    return decode(ConsumerProtocolSubscription, version_of(data), data, _VERSION_SIZE)


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    return decode(ConsumerProtocolAssignment, version_of(data), data, _VERSION_SIZE)


def write_assignment(
    assignment: Mapping[UUID, Iterable[int]], version: int, topics: ClusterTopics
) -> bytes:
    """Topics that are gone are left out: the client knows them by name only."""
    named = ((topics.topic_by_id(topic_id), each) for topic_id, each in assignment.items())
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignment.TopicPartition(topic=name, partitions=partitions)
            for name, partitions in sorted(
                (facts.name, sorted(each)) for facts, each in named if facts is not None
            )
        ]
    )
    return encode_versioned(message, version)


def by_topic_id(
    partitions: Iterable[
        ConsumerProtocolAssignment.TopicPartition | ConsumerProtocolSubscription.TopicPartition
    ],
    topics: ClusterTopics,
) -> dict[UUID, frozenset[int]]:
    """Partitions of the topics that exist."""
    found: dict[UUID, frozenset[int]] = {}
    for each in partitions:
        facts = topics.topic(each.topic)
        if facts is not None:
            indexes = frozenset(each.partitions) & frozenset(range(facts.partition_count))
            if indexes:
                found[facts.id] = found.get(facts.id, frozenset()) | indexes
    return found
