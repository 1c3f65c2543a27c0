"""Nodes: the real thing, each on a machine of its own.

A `Layout` says how many there are and which roles they have. They are formatted as
`moldau storage format` does it: one node as a standalone quorum, several with the same initial
controllers or with static voters, and a broker that comes later with neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from moldau.broker.app import Node as BrokerNode
from moldau.broker.config import BrokerConfig
from moldau.broker.environment import Environment
from moldau.broker.metadata.formatting import format_storage
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.raft.node import RaftNode
from moldau.broker.replication.manager import ReplicaManager
from moldau.sim.background import SimBackground
from moldau.sim.disk import SimDisk
from moldau.sim.listening import SimNetwork
from moldau.sim.machine import Fleet, Machine, SimClock
from moldau.sim.process import Process
from moldau.sim.world import World
from moldau.wire.uuids import uuid_to_text

__all__ = ["Cluster", "Layout", "Node", "SimClock"]

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
BROKER_PORT = 9092
CONTROLLER_PORT = 9093


@dataclass(frozen=True, slots=True)
class Layout:
    """Which nodes there are; ids count from 1, controllers first."""

    name: str
    controllers: int = 1
    brokers: int = 1
    combined: bool = True
    """Whether the first brokers are the controllers."""
    static: bool = False
    """controller.quorum.voters instead of a quorum whose voters may change."""

    @property
    def controller_ids(self) -> range:
        return range(1, self.controllers + 1)

    @property
    def node_count(self) -> int:
        if self.combined:
            return max(self.controllers, self.brokers)
        return self.controllers + self.brokers

    def roles(self, node_id: int) -> str:
        if node_id > self.controllers:
            return "broker"
        return "broker,controller" if self.combined else "controller"


ALONE = Layout("one node")
THREE = Layout("three combined nodes", controllers=3, brokers=3)
THREE_STATIC = Layout("three nodes of a static quorum", controllers=3, brokers=3, static=True)
APART = Layout("three controllers and three brokers", controllers=3, brokers=3, combined=False)


@lru_cache(maxsize=256)
def _config(layout: Layout, node_id: int, properties: tuple[tuple[str, str], ...]) -> BrokerConfig:
    host, roles = f"node{node_id}", layout.roles(node_id)
    listeners = []
    if "broker" in roles:
        listeners.append(f"PLAINTEXT://{host}:{BROKER_PORT}")
    if "controller" in roles:
        listeners.append(f"CONTROLLER://{host}:{CONTROLLER_PORT}")
    own = {
        "process.roles": roles,
        "node.id": str(node_id),
        "listeners": ",".join(listeners),
        "controller.listener.names": "CONTROLLER",
        "log.dirs": "/data",
    }
    quorum = [f"node{each}:{CONTROLLER_PORT}" for each in layout.controller_ids]
    if layout.static:
        own["controller.quorum.voters"] = ",".join(
            f"{number + 1}@{address}" for number, address in enumerate(quorum)
        )
    else:
        own["controller.quorum.bootstrap.servers"] = ",".join(quorum)
    return BrokerConfig.from_properties({**own, **dict(properties)})


class Node(Machine):
    """A machine with the whole node on it."""

    def __init__(
        self, cluster: Cluster, node_id: int, layout: Layout, properties: Mapping[str, str]
    ) -> None:
        super().__init__(cluster, node_id)
        self._layout = layout
        self.config = _config(layout, node_id, tuple(sorted(properties.items())))
        self.directory_id = UUID(int=0)
        """Of a controller, as it was formatted."""
        self._node: BrokerNode | None = None

    @property
    def address(self) -> tuple[str, int]:
        return (self.host, BROKER_PORT)

    @property
    def is_broker(self) -> bool:
        return "broker" in self._layout.roles(self.node_id)

    @property
    def is_controller(self) -> bool:
        return "controller" in self._layout.roles(self.node_id)

    @property
    def metadata(self) -> MetadataShell | None:
        """While its process runs and has it."""
        return getattr(self._node, "metadata", None) if self.running else None

    @property
    def raft(self) -> RaftNode | None:
        return getattr(self.metadata, "_raft", None)

    @property
    def replicas(self) -> ReplicaManager | None:
        broker = getattr(self._node, "broker", None)
        return getattr(broker, "replicas", None) if self.running else None

    def format(self, voters: str | None) -> None:
        """`voters` are the initial controllers, None where the configuration names them."""
        alone = self._layout.node_count == 1
        format_storage(
            self.config,
            CLUSTER_ID,
            standalone=alone,
            initial_controllers=voters if self.is_controller and not alone else None,
            random_uuid=self.new_uuid,
            disk=self.platter.start(),
            now_ms=self.clock.now_ms(),
        )

    def new_uuid(self) -> UUID:
        return UUID(bytes=self.random.randbytes(16), version=4)

    async def boot(self, process: Process, disk: SimDisk, background: SimBackground) -> BrokerNode:
        transport, clock = self.transport(), self.clock
        environment = Environment(
            disk=disk,
            background=background,
            network=SimNetwork(
                self._fleet.net, process, self.config.listeners, self.config.network
            ),
            transport=transport,
            clock=clock,
            random=self.random,
            random_bytes=self.random.randbytes,
            host_name=lambda: self.host,
            close=transport.close,
            # Handling takes no virtual time; real time would differ from run to run.
            cpu_ns=lambda: 0,
        )
        node = self._node = BrokerNode(self.config, environment, on_failure=self.on_failure)
        await node.start()
        return node


class Cluster(Fleet):
    def __init__(
        self, world: World, properties: Mapping[str, str], *, layout: Layout = ALONE
    ) -> None:
        super().__init__(world)
        if layout.node_count > 1:
            self.straggling, self.straggle_s = 0.01, 0.5
        self.layout = layout
        self._properties = properties
        self.leader_changes: Callable[[], int] = lambda: 0
        self.nodes = [
            Node(self, number + 1, layout, properties) for number in range(layout.node_count)
        ]

    @property
    def machines(self) -> Sequence[Node]:
        return self.nodes

    @property
    def boots(self) -> int:
        """Rises also whenever a partition gets another leader."""
        return super().boots + self.leader_changes()

    @property
    def brokers(self) -> list[Node]:
        return [node for node in self.nodes if node.is_broker]

    @property
    def controllers(self) -> list[Node]:
        return [node for node in self.nodes if node.is_controller]

    @property
    def addresses(self) -> list[tuple[str, int]]:
        return [node.address for node in self.brokers]

    def format(self) -> None:
        voters = None
        if not self.layout.static:
            for node in self.controllers:
                node.directory_id = node.new_uuid()
            voters = ",".join(
                f"{node.node_id}@{node.host}:{CONTROLLER_PORT}:{uuid_to_text(node.directory_id)}"
                for node in self.controllers
            )
        for node in self.nodes:
            node.format(voters)

    def add_broker(self) -> Node:
        """A broker that was not there from the beginning."""
        node = Node(self, len(self.nodes) + 1, self.layout, self._properties)
        node.format(None)
        self.nodes.append(node)
        return node

    def reign(self, topic: str, partition: int = 0) -> tuple[str, int]:
        """The host that leads a partition by the newest metadata, and its epoch.

        Clients do not know this. It tells an answer of who leads from one of a node that does not
        know yet that it leads no more, which may be outdated, as in Kafka.
        """
        if len(self.nodes) == 1:
            return self.nodes[0].host, 0
        image = self.newest_image()
        found = None if image is None else image.topics_by_name.get(topic)
        state = None if found is None else found.partitions.get(partition)
        return ("", -1) if state is None else (f"node{state.leader}", state.leader_epoch)

    def newest_image(self) -> MetadataImage | None:
        """The metadata of the node with the newest."""
        known = [node.metadata for node in self.nodes]
        newest = max(
            (each for each in known if each is not None), key=lambda m: m.offset, default=None
        )
        return None if newest is None else newest.image
