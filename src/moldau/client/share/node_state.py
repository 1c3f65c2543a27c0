"""What waits to be sent to a node that leads partitions of a share group."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import NamedTuple

from moldau.client.deadline import Deadline
from moldau.client.errors import KafkaError
from moldau.client.share.machine.acknowledgements import Acknowledgements, TopicIdPartition
from moldau.client.share.machine.session import ShareSession
from moldau.clock import Alarm

__all__ = ["Commit", "NodeState", "Outcome", "PartitionAcks", "merge"]

PartitionAcks = dict[TopicIdPartition, Acknowledgements]


class Outcome(NamedTuple):
    """What a node, or nobody, answered to the acknowledgements of a partition."""

    partition: TopicIdPartition
    acknowledgements: Acknowledgements
    error: KafkaError | None
    lock_timeout_ms: int | None


class Commit:
    """Acknowledgements of one call, for one node."""

    def __init__(self, acks: PartitionAcks, deadline: Deadline) -> None:
        self.acks = acks
        self.deadline = deadline
        self.results: dict[TopicIdPartition, KafkaError | None] = {}
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def finish(self) -> None:
        """Everything has its outcome."""
        if not self.done.done():
            self.done.set_result(None)


class NodeState:
    """One node: its session, and what waits to be sent to it."""

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.session = ShareSession()
        self.task: asyncio.Task[None] | None = None
        #: For the next ShareFetch.
        self.waiting: PartitionAcks = {}
        self.commits: deque[Commit] = deque()
        self.failures = 0
        self.not_before_ms = 0
        self.alarm: Alarm | None = None


def merge(acks: PartitionAcks, more: PartitionAcks) -> None:
    """Add acknowledgements to those that are there."""
    for partition, acknowledgements in more.items():
        if partition in acks:
            acks[partition].merge(acknowledgements)
        else:
            acks[partition] = acknowledgements
