"""The bytes in which members of the classic protocol exchange subscriptions and assignments.

A version of two bytes comes first. A newer version than is known here is read as the newest known
one, of which it is a continuation. What an assignment of no bytes means is the caller's to say.
"""

from __future__ import annotations

from collections.abc import Iterable

from moldau.client.consumer.assignors.interface import Assignment, Subscription
from moldau.client.topics import TopicPartition
from moldau.wire.codec import decode
from moldau.wire.errors import WireError
from moldau.wire.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from moldau.wire.record_values import encode_versioned

__all__ = ["read_assignment", "read_subscription", "write_assignment", "write_subscription"]

_VERSION_SIZE = 2


def write_subscription(subscription: Subscription) -> bytes:
    message = ConsumerProtocolSubscription(
        topics=sorted(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=[
            ConsumerProtocolSubscription.TopicPartition(topic=topic, partitions=indexes)
            for topic, indexes in _by_topic(sorted(subscription.owned_partitions))
        ],
        generation_id=-1 if subscription.generation_id is None else subscription.generation_id,
        rack_id=subscription.rack_id or None,
    )
    return encode_versioned(message, ConsumerProtocolSubscription.HIGHEST_VERSION)


def read_subscription(data: bytes, group_instance_id: str | None = None) -> Subscription:
    """Raises WireError for bytes that are none."""
    message = decode(ConsumerProtocolSubscription, _version(data), data, _VERSION_SIZE)
    return Subscription(
        tuple(message.topics),
        message.user_data,
        tuple(
            TopicPartition(each.topic, index)
            for each in message.owned_partitions
            for index in each.partitions
        ),
        None if message.generation_id < 0 else message.generation_id,
        message.rack_id or None,
        group_instance_id,
    )


def write_assignment(assignment: Assignment) -> bytes:
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=indexes)
            for topic, indexes in _by_topic(assignment.partitions)
        ],
        user_data=assignment.user_data,
    )
    return encode_versioned(message, ConsumerProtocolAssignment.HIGHEST_VERSION)


def read_assignment(data: bytes) -> Assignment:
    """Raises WireError for bytes that are none."""
    message = decode(ConsumerProtocolAssignment, _version(data), data, _VERSION_SIZE)
    return Assignment(
        tuple(
            TopicPartition(each.topic, index)
            for each in message.assigned_partitions
            for index in each.partitions
        ),
        message.user_data,
    )


def _by_topic(keys: Iterable[TopicPartition]) -> Iterable[tuple[str, list[int]]]:
    found: dict[str, list[int]] = {}
    for key in keys:
        found.setdefault(key.topic, []).append(key.partition)
    return found.items()


def _version(data: bytes) -> int:
    if len(data) < _VERSION_SIZE:
        raise WireError("the embedded consumer protocol begins with a version, which is missing")
    version = int.from_bytes(data[:_VERSION_SIZE], "big", signed=True)
    if version < 0:
        raise WireError(f"the embedded consumer protocol has no version {version}")
    return min(version, ConsumerProtocolSubscription.HIGHEST_VERSION)
