"""The throttles of reassignments: set before replicas are copied, removed afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moldau.balance.machine.moves import (
    Move,
    follower_throttles,
    leader_throttles,
    reassigning_brokers,
)
from moldau.client.admin import Admin, AlterConfigOp, ConfigResource
from moldau.client.topics import TopicPartition

__all__ = [
    "FOLLOWER_RATE",
    "FOLLOWER_REPLICAS",
    "LEADER_RATE",
    "LEADER_REPLICAS",
    "clear_throttles",
    "set_rate",
    "set_throttles",
]

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"


def set_throttles(admin: Admin, moving: Mapping[TopicPartition, Move], rate: int) -> None:
    """Limit what each broker sends and receives for these moves, in bytes per second."""
    leaders, followers = leader_throttles(moving), follower_throttles(moving)
    admin.incremental_alter_configs(
        {
            ConfigResource.topic(topic): [
                AlterConfigOp.set(LEADER_REPLICAS, leaders[topic]),
                AlterConfigOp.set(FOLLOWER_REPLICAS, followers[topic]),
            ]
            for topic in leaders
        }
    )
    set_rate(admin, reassigning_brokers(moving), (LEADER_RATE, FOLLOWER_RATE), rate)


def set_rate(admin: Admin, brokers: Iterable[int], keys: Iterable[str], rate: int) -> None:
    names = list(keys)
    admin.incremental_alter_configs(
        {
            ConfigResource.broker(broker): [AlterConfigOp.set(key, str(rate)) for key in names]
            for broker in brokers
        }
    )


def clear_throttles(
    admin: Admin,
    brokers: Iterable[int],
    topics: Iterable[str],
    *,
    rates: Iterable[str] = (LEADER_RATE, FOLLOWER_RATE),
    check: bool = True,
) -> None:
    """Without `check` a topic that has been deleted meanwhile does not matter."""
    names = list(rates)
    on_brokers = {
        ConfigResource.broker(broker): [AlterConfigOp.delete(key) for key in names]
        for broker in sorted(brokers)
    }
    on_topics = {
        ConfigResource.topic(topic): [
            AlterConfigOp.delete(LEADER_REPLICAS),
            AlterConfigOp.delete(FOLLOWER_REPLICAS),
        ]
        for topic in sorted(topics)
    }
    for changes in (on_brokers, on_topics):
        if changes:
            admin.incremental_alter_configs(changes, check=check)
