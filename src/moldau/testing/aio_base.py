"""The hand-written part of `aio`; tools/generate_twins.py generates the rest.

The nodes are other processes and the calls run in threads, so the test's own clients on the loop go
on meanwhile. By hand is what does not wait, or waits in another way; the blocking API is `sync`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING, ParamSpec, Self, TypeVar

from moldau.testing.disturbance import InstantFaults
from moldau.testing.waiting import wait_until_async

if TYPE_CHECKING:
    from moldau.testing.cluster_base import ClusterBase
    from moldau.testing.groups import Group
    from moldau.testing.nodes import Node

__all__ = ["AsyncClusterBase", "AsyncGroupBase"]

P = ParamSpec("P")
T = TypeVar("T")


class AsyncGroupBase:
    """`moldau.testing.Group` for an event loop."""

    def __init__(self, group: Group) -> None:
        self.sync = group
        self.id = group.id

    async def rebalance(self) -> None:
        """Force a rebalance and wait until it is over."""
        rebalance = await asyncio.to_thread(self.sync.rebalance)
        await asyncio.to_thread(rebalance.wait)


class AsyncClusterBase(InstantFaults):
    """`moldau.testing.Cluster` for an event loop."""

    sync: ClusterBase

    def __init__(self, cluster: ClusterBase) -> None:
        self.sync = cluster

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.sync.start)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.sync.close)

    @property
    def bootstrap_servers(self) -> str:
        return self.sync.bootstrap_servers

    @property
    def client_config(self) -> dict[str, str]:
        return self.sync.client_config

    def client_config_of(self, user: str, *, mechanism: str = "PLAIN") -> dict[str, str]:
        return self.sync.client_config_of(user, mechanism=mechanism)

    @property
    def nodes(self) -> dict[int, Node]:
        """Faults of requests are set at once; what takes its time goes through `run`."""
        return self.sync.nodes

    @property
    def seed(self) -> int:
        return self.sync.seed

    @property
    def logs(self) -> str:
        return self.sync.logs

    async def run(self, call: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """Run a blocking call in a thread, as in `await cluster.run(cluster.nodes[1].restart)`."""
        return await asyncio.to_thread(call, *arguments, **options)

    async def wait_until(
        self,
        condition: Callable[[], T | Awaitable[T]],
        *,
        timeout: float = 15.0,
        what: str | None = None,
    ) -> T:
        return await wait_until_async(condition, timeout=timeout, what=what)
