"""Somebody who changes the cluster while it is used: moves replicas, leaders and voters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.sim.clients.actor import Actor
from moldau.sim.clients.history import History
from moldau.sim.clients.rpc import Lost
from moldau.sim.cluster import Cluster
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
)

PREFERRED = 0


class Operator(Actor):
    def __init__(
        self, cluster: Cluster, history: History, name: str, topics: Mapping[str, int]
    ) -> None:
        super().__init__(cluster, history, name)
        self._topics = topics

    async def run(self) -> None:
        while not self.stopping:
            await self.rest(4.0)
            if self.stopping:
                return
            act = self.random.choices((self._reassign, self._cancel, self._elect), (6, 1, 3))[0]
            try:
                await act()
            except Lost:
                continue

    def _any(self) -> tuple[str, int]:
        topic = self.random.choice(sorted(self._topics))
        return topic, self.random.randrange(self._topics[topic])

    async def _reassign(self) -> None:
        """A new order of the replicas, so that another is preferred, or fewer or others of them."""
        topic, partition = self._any()
        ids = [node.node_id for node in self.cluster.brokers]
        count = 3 if len(ids) > 3 or self.random.random() < 0.6 else 2
        replicas = self.random.sample(ids, count)
        code = await self._alter(topic, partition, replicas)
        self.note(f"moves {topic}-{partition} to {replicas}: {code.name}")
        if code is ErrorCode.NONE:
            self.cluster.world.fault("reassignment")

    async def _cancel(self) -> None:
        topic, partition = self._any()
        code = await self._alter(topic, partition, None)
        self.note(f"moves {topic}-{partition} no more: {code.name}")

    async def _alter(self, topic: str, partition: int, replicas: list[int] | None) -> ErrorCode:
        request = AlterPartitionReassignmentsRequest
        response = await self.wire.call(
            self.wire.anybody(),
            request(
                timeout_ms=5_000,
                topics=[
                    request.ReassignableTopic(
                        name=topic,
                        partitions=[
                            request.ReassignablePartition(
                                partition_index=partition, replicas=replicas
                            )
                        ],
                    )
                ],
            ),
            AlterPartitionReassignmentsResponse,
        )
        if response.error_code != ErrorCode.NONE:
            return ErrorCode(response.error_code)
        return ErrorCode(response.responses[0].partitions[0].error_code)

    async def _elect(self) -> None:
        request: Any = ElectLeadersRequest(
            election_type=PREFERRED, topic_partitions=None, timeout_ms=5_000
        )
        response = await self.wire.call(self.wire.anybody(), request, ElectLeadersResponse)
        self.note(f"has the preferred leaders elected: {ErrorCode(response.error_code).name}")
        if response.error_code == ErrorCode.NONE:
            self.cluster.world.fault("election of preferred leaders")
