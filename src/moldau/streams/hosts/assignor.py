"""The assignor of a consumer group whose members run tasks: the leader places whole tasks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from moldau.client.consumer.assignors.interface import (
    Assignment,
    GroupSubscription,
    PartitionAssignor,
    RebalanceProtocol,
)
from moldau.client.machine.metadata import ClusterMetadata
from moldau.client.topics import TopicPartition
from moldau.streams.machine.placement import MemberState, Placed, Rules, place
from moldau.streams.machine.subtopologies import Plan, TaskId, missing_sources

#: Not Kafka Streams' name: its members exchange other bytes, and must not meet these in a group.
NAME = "moldau-streams"


class TaskAssignor(PartitionAssignor):
    """Of one thread. Called on the consumer's thread; `placed` is read by the stream thread."""

    name = NAME
    supported_protocols = (RebalanceProtocol.COOPERATIVE,)
    version = 1

    def __init__(
        self,
        plan: Plan,
        *,
        rules: Rules,
        state: Callable[[], MemberState],
        on_placed: Callable[[Placed], None],
    ) -> None:
        self._plan = plan
        self._rules = rules
        self._state = state
        self._on_placed = on_placed
        self._lock = threading.Lock()
        self._placed = Placed()

    @property
    def strategy(self) -> TaskAssignor:
        """What goes into `partition.assignment.strategy`."""
        return self

    def subscription_user_data(self, topics: frozenset[str]) -> bytes:
        return self._state().encode()

    @property
    def placed(self) -> Placed:
        """What the leader gave this member last."""
        with self._lock:
            return self._placed

    def assign(
        self, metadata: ClusterMetadata, subscriptions: GroupSubscription
    ) -> dict[str, Assignment]:
        counts = {name: len(view.partitions) for name, view in metadata.topics.items()}
        missing = missing_sources(self._plan, counts)
        if missing:
            nothing = Assignment((), Placed(missing=tuple(missing)).encode())
            return dict.fromkeys(subscriptions, nothing)
        tasks = self._plan.tasks(counts)
        # Who was in an older generation has lost its partitions, whatever it says.
        newest = max((each.generation_id or -1 for each in subscriptions.values()), default=-1)
        members = {}
        for member_id, subscription in subscriptions.items():
            owned: set[TaskId] = set()
            if (subscription.generation_id or -1) == newest:
                for key in subscription.owned_partitions:
                    task = self._plan.task_of(key.topic, key.partition)
                    if task is not None:
                        owned.add(task)
            members[member_id] = MemberState.decode(subscription.user_data, owned, member_id)
        placed = place(
            members,
            tasks.keys(),
            stateful=[task for task in tasks if self._plan.stateful(task)],
            rules=self._rules,
        )
        return {
            member_id: Assignment(
                tuple(
                    TopicPartition(*key)
                    for task in sorted(each.active)
                    for key in sorted(tasks[task])
                ),
                each.encode(),
            )
            for member_id, each in placed.items()
        }

    def on_assignment(self, assignment: Assignment, group_metadata: Any) -> None:
        placed = Placed.decode(assignment.user_data)
        with self._lock:
            self._placed = placed
        self._on_placed(placed)
