"""Which nodes a producer can send to: connected, not throttled, and with room for a request.

Invariant: at most `max.in.flight.requests.per.connection` requests are under way to a node.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

from moldau.client.cluster import ClusterClient
from moldau.client.errors import KafkaError
from moldau.client.producer.machine.queues import NEVER_MS
from moldau.times import ElapsedMs

__all__ = ["UsableNodes"]


class UsableNodes:
    """See the module. `wake` is called when a node may have become usable."""

    def __init__(
        self, cluster: ClusterClient, in_flight_max: int, wake: Callable[[], None]
    ) -> None:
        self._cluster = cluster
        self._in_flight_max = in_flight_max
        self._wake = wake
        self._in_flight: dict[int, int] = {}
        self._connected: set[int] = set()
        self._connecting: dict[int, asyncio.Task[None]] = {}

    @property
    def in_flight_count(self) -> int:
        return sum(self._in_flight.values())

    def on_sent(self, node_id: int) -> None:
        self._in_flight[node_id] = self._in_flight.get(node_id, 0) + 1

    def on_ended(self, node_id: int) -> None:
        """A request was answered, or is lost."""
        self._in_flight[node_id] -= 1

    def on_disconnected(self, node_id: int) -> None:
        self._connected.discard(node_id)

    def keep_only(self, node_ids: Collection[int]) -> None:
        """These are the nodes of the cluster now."""
        self._connected.intersection_update(node_ids)

    def stop(self) -> None:
        for task in self._connecting.values():
            task.cancel()

    def is_usable(self, node_id: int) -> bool:
        """Whether a request can be sent to a node now."""
        return (
            node_id in self._connected
            and self._in_flight.get(node_id, 0) < self._in_flight_max
            and not self._cluster.throttled_ms(node_id)
        )

    def make_usable(self, node_id: int, now_ms: ElapsedMs) -> int:
        """Connect to a node that something waits for; when to look again."""
        throttled_ms = self._cluster.throttled_ms(node_id)
        if throttled_ms:
            return now_ms + throttled_ms
        if node_id not in self._connected and node_id not in self._connecting:
            loop = asyncio.get_running_loop()
            self._connecting[node_id] = loop.create_task(self._connect(node_id))
        return NEVER_MS

    async def _connect(self, node_id: int) -> None:
        try:
            await self._cluster.versions(node_id)
        except KafkaError as error:
            self._cluster.outages.node_failed(node_id, error.message)
            self._cluster.request_refresh()
        else:
            self._cluster.outages.node_reached(node_id, self._cluster.metadata.nodes)
            self._connected.add(node_id)
        finally:
            self._connecting.pop(node_id, None)
            self._wake()
