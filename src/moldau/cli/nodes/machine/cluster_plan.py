"""What `moldau cluster` runs: which nodes, on which ports, with which settings.

The first start chooses the cluster ID, fixes how many of its nodes are controllers and writes both
into cluster.properties. Later starts keep them: brokers may be added and ports may change, but a
set of voters that changed by itself could lose what the old one had committed. For the same
reason the quorum is static: its addresses come from the configuration, not from the data
directories.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = [
    "CONTROLLERS_MAX",
    "Layout",
    "NodePlan",
    "plan_nodes",
    "ports_of",
    "replication_settings",
]

CONTROLLERS_MAX = 3
_HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What stays the same from one start to the next."""

    cluster_id: str
    brokers: int
    controllers: int
    formatted: int = 0  # number of nodes formatted so far: a data directory missing now was lost

    def to_properties(self) -> dict[str, str]:
        return {
            "cluster.id": self.cluster_id,
            "brokers": str(self.brokers),
            "controllers": str(self.controllers),
            "formatted": str(self.formatted),
        }

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Layout:
        """ValueError if the file was not written by `moldau cluster`."""
        try:
            layout = cls(
                cluster_id=properties["cluster.id"],
                brokers=int(properties["brokers"]),
                controllers=int(properties["controllers"]),
                formatted=int(properties["formatted"]),
            )
        except KeyError as missing:
            raise ValueError(f"{missing.args[0]} is missing") from None
        if not 1 <= layout.controllers <= layout.brokers:
            raise ValueError(f"brokers={layout.brokers}, controllers={layout.controllers}")
        return layout


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlan:
    """One node, as its configuration file describes it."""

    node_id: int
    port: int
    controller_port: int | None
    properties: Mapping[str, str]

    @property
    def name(self) -> str:
        return f"node-{self.node_id}"

    @property
    def address(self) -> str:
        return f"{_HOST}:{self.port}"

    @property
    def roles(self) -> str:
        return self.properties["process.roles"]


def ports_of(first: int, *, brokers: int, controllers: int) -> tuple[list[int], list[int]]:
    """Ports of clients, one after the other from `first`, and after them those of controllers."""
    behind = first + brokers
    return list(range(first, behind)), list(range(behind, behind + controllers))


def replication_settings(factor: int) -> dict[str, str]:
    """This many replicas for every topic, of which one may fail without blocking producers."""
    in_sync = "2" if factor >= 3 else "1"
    return {
        "default.replication.factor": str(factor),
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": str(factor),
        "transaction.state.log.replication.factor": str(factor),
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.replication.factor": str(factor),
        "share.coordinator.state.topic.min.isr": in_sync,
    }


def plan_nodes(
    ports: Sequence[int],
    controller_ports: Sequence[int],
    *,
    replication: int,
    data: str,
    overrides: Mapping[str, str],
) -> list[NodePlan]:
    """The first nodes are broker and controller at once, the rest brokers; ids count from 1."""
    voters = ",".join(
        f"{node_id}@{_HOST}:{port}" for node_id, port in enumerate(controller_ports, 1)
    )
    nodes = []
    for node_id, port in enumerate(ports, 1):
        is_controller = node_id <= len(controller_ports)
        controller_port = controller_ports[node_id - 1] if is_controller else None
        listeners = f"PLAINTEXT://{_HOST}:{port}"
        if is_controller:
            listeners += f",CONTROLLER://{_HOST}:{controller_port}"
        properties = {
            "process.roles": "broker,controller" if is_controller else "broker",
            "node.id": str(node_id),
            "listeners": listeners,
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": voters,
            "log.dirs": f"{data}/node-{node_id}",
            **replication_settings(replication),
            # As `moldau start`: the system sizes buffers better, and a first group need not wait.
            "socket.receive.buffer.bytes": "-1",
            "socket.send.buffer.bytes": "-1",
            "group.initial.rebalance.delay.ms": "0",
            **overrides,
        }
        nodes.append(
            NodePlan(
                node_id=node_id, port=port, controller_port=controller_port, properties=properties
            )
        )
    return nodes
