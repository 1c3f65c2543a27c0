"""A real broker inside a Python test, without JVM or Docker.

    from moldau.testing import Broker

    with Broker() as broker:
        client = AnyKafkaClient(bootstrap_servers=broker.bootstrap_servers)

`Cluster` is the same with several brokers. Both can be disturbed: nodes killed and paused, networks
cut, requests slowed, dropped and failed, clocks put forward, disks filled. With pytest the fixtures
of `moldau.testing.plugin` make them. Importing this costs nothing until a broker is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moldau.testing.cluster import AsyncBroker, AsyncCluster, Broker, Cluster
    from moldau.testing.cluster_base import Topic
    from moldau.testing.disturbance import Faults
    from moldau.testing.errors import (
        BrokerError,
        BrokerNotRunning,
        BrokerStartError,
        WaitTimeout,
    )
    from moldau.testing.groups import Group
    from moldau.testing.machine.group_values import GroupMember
    from moldau.testing.nodes import Fault, Node
    from moldau.testing.waiting import wait_until, wait_until_async

__all__ = [
    "AsyncBroker",
    "AsyncCluster",
    "Broker",
    "BrokerError",
    "BrokerNotRunning",
    "BrokerStartError",
    "Cluster",
    "Fault",
    "Faults",
    "Group",
    "GroupMember",
    "Node",
    "Topic",
    "WaitTimeout",
    "wait_until",
    "wait_until_async",
]

_MODULES = {
    "AsyncBroker": "cluster",
    "AsyncCluster": "cluster",
    "Broker": "cluster",
    "BrokerError": "errors",
    "BrokerNotRunning": "errors",
    "BrokerStartError": "errors",
    "Cluster": "cluster",
    "Fault": "nodes",
    "Faults": "disturbance",
    "Group": "groups",
    "GroupMember": "machine.group_values",
    "Node": "nodes",
    "Topic": "cluster_base",
    "WaitTimeout": "errors",
    "wait_until": "waiting",
    "wait_until_async": "waiting",
}


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
