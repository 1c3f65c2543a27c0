"""Brokers under test for tests on an event loop: everything that waits is awaited.

The nodes are other processes and the calls run in threads, so the test's own clients on the loop go
on meanwhile. What does not wait is the same as of the blocking face, which is `sync`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, Unpack

from moldau.testing.cluster import Broker, Cluster
from moldau.testing.disturbance import InstantFaults
from moldau.testing.waiting import wait_until_async

if TYPE_CHECKING:
    from moldau.client.consumer_record import ConsumerRecord
    from moldau.testing.cluster import ClusterOptions
    from moldau.testing.groups import Group, GroupDescription, GroupMember
    from moldau.testing.nodes import Node
    from moldau.testing.topics import RecordOptions, Topic

__all__ = ["AsyncBroker", "AsyncCluster", "AsyncGroup"]

P = ParamSpec("P")
T = TypeVar("T")


class AsyncGroup:
    """`moldau.testing.Group` for an event loop."""

    def __init__(self, group: Group) -> None:
        self.sync = group
        self.id = group.id

    async def describe(self) -> GroupDescription:
        return await asyncio.to_thread(self.sync.describe)

    async def state(self) -> str:
        return (await self.describe()).state

    async def members(self) -> tuple[GroupMember, ...]:
        return (await self.describe()).members

    async def committed(self) -> dict[tuple[str, int], int]:
        return await asyncio.to_thread(self.sync.committed)

    async def wait_until_stable(self, members: int | None = None, **options: Any) -> None:
        await asyncio.to_thread(self.sync.wait_until_stable, members, **options)

    async def rebalance(self) -> None:
        """Force a rebalance and wait until it is over."""
        rebalance = await asyncio.to_thread(self.sync.rebalance)
        await asyncio.to_thread(rebalance.wait)

    async def expire(self, member: str | GroupMember | None = None) -> GroupMember:
        return await asyncio.to_thread(self.sync.expire, member)


class AsyncCluster(InstantFaults):
    """`moldau.testing.Cluster` for an event loop."""

    def __init__(self, cluster: Cluster | int = 3, **options: Unpack[ClusterOptions]) -> None:
        """Around a cluster that exists, or a new one with these options."""
        self.sync = Cluster(cluster, **options) if isinstance(cluster, int) else cluster

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
        """Any blocking call, as in `await cluster.run(cluster.nodes[1].restart)`."""
        return await asyncio.to_thread(call, *arguments, **options)

    async def wait_until(
        self,
        condition: Callable[[], T | Awaitable[T]],
        *,
        timeout: float = 15.0,  # noqa: ASYNC109
        what: str | None = None,
    ) -> T:
        return await wait_until_async(condition, timeout=timeout, what=what)

    # Data.

    async def topics(self) -> dict[str, int]:
        return await asyncio.to_thread(lambda: self.sync.topics)

    async def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        replication_factor: int | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> Topic:
        return await asyncio.to_thread(
            self.sync.create_topic,
            name,
            partitions,
            replication_factor=replication_factor,
            config=config,
        )

    async def delete_topic(self, name: str) -> None:
        await asyncio.to_thread(self.sync.delete_topic, name)

    async def produce(
        self, topic: str, *values: Any, key: Any = None, partition: int = 0
    ) -> list[int]:
        return await asyncio.to_thread(
            self.sync.produce, topic, *values, key=key, partition=partition
        )

    async def records(self, topic: str, **options: Unpack[RecordOptions]) -> list[ConsumerRecord]:
        return await asyncio.to_thread(self.sync.records, topic, **options)

    async def values(self, topic: str, **options: Unpack[RecordOptions]) -> list[bytes | None]:
        return await asyncio.to_thread(self.sync.values, topic, **options)

    async def end_offsets(self, topic: str) -> dict[int, int]:
        return await asyncio.to_thread(self.sync.end_offsets, topic)

    async def leader(self, topic: str, partition: int = 0) -> Node:
        return await asyncio.to_thread(self.sync.leader, topic, partition)

    async def coordinator(self, group: str) -> Node:
        return await asyncio.to_thread(self.sync.coordinator, group)

    def group(self, group_id: str) -> AsyncGroup:
        return AsyncGroup(self.sync.group(group_id))

    # What can happen to it.

    async def heal(self) -> None:
        await asyncio.to_thread(self.sync.heal)

    async def kill(self) -> None:
        await asyncio.to_thread(self.sync.kill)

    async def restart(self, *, kill: bool = False) -> None:
        await asyncio.to_thread(self.sync.restart, kill=kill)

    async def advance_clock(self, seconds: float) -> None:
        await asyncio.to_thread(self.sync.advance_clock, seconds)


class AsyncBroker(AsyncCluster):
    """`moldau.testing.Broker` for an event loop."""

    def __init__(self, brokers: int = 1, **options: Unpack[ClusterOptions]) -> None:
        super().__init__(Broker(brokers, **options))
