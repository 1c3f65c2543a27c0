"""Brokers under test: `Cluster` has several nodes, `Broker` is the same with one.

Each is used with `with`, or with `async with`, which does not block the loop. `AsyncCluster` and
`AsyncBroker` have methods that are awaited.
"""

from __future__ import annotations

from typing import Unpack

from moldau.testing.aio import AsyncClusterCalls
from moldau.testing.cluster_base import ClusterBase, ClusterOptions

__all__ = ["AsyncBroker", "AsyncCluster", "Broker", "Cluster"]


class Cluster(ClusterBase):
    """Several brokers as one cluster; up to three of them are controllers as well."""

    @property
    def aio(self) -> AsyncCluster:
        """The same cluster for tests on an event loop: what waits is awaited."""
        return AsyncCluster(self)


class Broker(Cluster):
    """One broker, which is all most tests need; `brokers` may ask for more."""

    def __init__(self, brokers: int = 1, **options: Unpack[ClusterOptions]) -> None:
        super().__init__(brokers, **options)

    @property
    def port(self) -> int:
        """Of the first node."""
        return self.nodes[1].port


class AsyncCluster(AsyncClusterCalls):
    """`moldau.testing.Cluster` for an event loop."""

    sync: Cluster

    def __init__(self, cluster: Cluster | int = 3, **options: Unpack[ClusterOptions]) -> None:
        """Around a cluster that exists, or a new one with these options."""
        super().__init__(Cluster(cluster, **options) if isinstance(cluster, int) else cluster)


class AsyncBroker(AsyncCluster):
    """`moldau.testing.Broker` for an event loop."""

    def __init__(self, brokers: int = 1, **options: Unpack[ClusterOptions]) -> None:
        super().__init__(Broker(brokers, **options))
