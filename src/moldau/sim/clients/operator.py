"""An operator that changes the cluster while it is in use.

Replicas move, also to a broker that comes later; preferred leaders are elected; controllers leave
the quorum and join it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moldau.sim.clients.actor import Actor
from moldau.sim.clients.history import History
from moldau.sim.clients.rpc import Lost
from moldau.sim.cluster import CLUSTER_ID, CONTROLLER_PORT, Cluster, Node
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)

PREFERRED = 0


class Operator(Actor):
    def __init__(
        self,
        cluster: Cluster,
        history: History,
        name: str,
        topics: Mapping[str, int],
        *,
        on_new: Callable[[Node], None],
    ) -> None:
        """`on_new` is called with a broker that is to be started."""
        super().__init__(cluster, history, name)
        self._topics = topics
        self._on_new = on_new
        self._first = list(cluster.brokers)
        self._removed: set[Node] = set()

    async def run(self) -> None:
        while not self.stopping:
            await self.rest(4.0)
            if self.stopping:
                return
            act = self.random.choices(
                (self._reassign, self._cancel, self._elect, self._change_voters, self._add_broker),
                (8, 1, 3, 0 if self.cluster.layout.static else 3, 1),
            )[0]
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

    async def _add_broker(self) -> None:
        if len(self.cluster.brokers) > len(self._first):
            return
        node = self.cluster.add_broker()
        self.note(f"adds {node.host}")
        self.cluster.world.fault("new broker")
        self._on_new(node)

    async def _change_voters(self) -> None:
        """A controller leaves the quorum, or comes back to it."""
        node = self.random.choice(self.cluster.controllers)
        if node in self._removed:
            code = await self._add_voter(node)
            if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_VOTER):
                self._removed.discard(node)
                self.cluster.world.fault("voter added")
            self.note(f"adds voter {node.node_id}: {code.name}")
            return
        if self._removed:
            return
        # Whatever the answer, it may be gone.
        self._removed.add(node)
        response = await self.wire.call(
            self.wire.anybody(),
            RemoveRaftVoterRequest(
                cluster_id=CLUSTER_ID,
                voter_id=node.node_id,
                voter_directory_id=node.directory_id,
            ),
            RemoveRaftVoterResponse,
        )
        code = ErrorCode(response.error_code)
        self.note(f"removes voter {node.node_id}: {code.name}")
        if code is ErrorCode.NONE:
            self.cluster.world.fault("voter removed")

    async def _add_voter(self, node: Node) -> ErrorCode:
        response = await self.wire.call(
            self.wire.anybody(),
            AddRaftVoterRequest(
                cluster_id=CLUSTER_ID,
                timeout_ms=4_000,
                voter_id=node.node_id,
                voter_directory_id=node.directory_id,
                listeners=[
                    AddRaftVoterRequest.Listener(
                        name="CONTROLLER", host=node.host, port=CONTROLLER_PORT
                    )
                ],
            ),
            AddRaftVoterResponse,
        )
        return ErrorCode(response.error_code)

    async def _elect(self) -> None:
        request: Any = ElectLeadersRequest(
            election_type=PREFERRED, topic_partitions=None, timeout_ms=5_000
        )
        response = await self.wire.call(self.wire.anybody(), request, ElectLeadersResponse)
        self.note(f"has the preferred leaders elected: {ErrorCode(response.error_code).name}")
        if response.error_code == ErrorCode.NONE:
            self.cluster.world.fault("election of preferred leaders")
