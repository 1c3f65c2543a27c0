"""What a reassignment copies from where to where, and the throttles that slow only these copies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from moldau.client.admin.partition_values import PartitionReassignment
from moldau.client.topics import TopicPartition

__all__ = ["Move", "follower_throttles", "leader_throttles", "moves", "reassigning_brokers"]


class Move(NamedTuple):
    """From which brokers a partition is copied, and to which."""

    sources: frozenset[int]
    destinations: frozenset[int]


def moves(
    ongoing: Mapping[TopicPartition, PartitionReassignment],
    proposed: Mapping[TopicPartition, Sequence[int]],
    current: Mapping[TopicPartition, Sequence[int]],
) -> dict[TopicPartition, Move]:
    """All moves: those in progress, and those proposed in their place or in addition."""
    found = {
        key: Move(
            frozenset(each.replicas) - frozenset(each.adding_replicas),
            frozenset(each.adding_replicas),
        )
        for key, each in ongoing.items()
    }
    for key, replicas in proposed.items():
        # A partition that is moving already is still copied from where it came from.
        sources = found[key].sources if key in found else frozenset(current[key])
        found[key] = Move(sources, frozenset(replicas) - sources)
    return found


def leader_throttles(moving: Mapping[TopicPartition, Move]) -> dict[str, str]:
    """By topic the value of leader.replication.throttled.replicas."""
    return _throttles({key: move.sources for key, move in moving.items()})


def follower_throttles(moving: Mapping[TopicPartition, Move]) -> dict[str, str]:
    """By topic the value of follower.replication.throttled.replicas."""
    return _throttles({key: move.destinations - move.sources for key, move in moving.items()})


def _throttles(brokers: Mapping[TopicPartition, Iterable[int]]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for key, ids in brokers.items():
        found.setdefault(key.topic, []).extend(f"{key.partition}:{each}" for each in ids)
    # As texts, as Kafka's tool sorts them.
    return {topic: ",".join(sorted(each)) for topic, each in found.items()}


def reassigning_brokers(moving: Mapping[TopicPartition, Move]) -> list[int]:
    return sorted({each for move in moving.values() for each in move.sources | move.destinations})
