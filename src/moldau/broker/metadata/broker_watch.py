"""BrokerWatch: runs `BrokerLiveness` over the connections of heartbeats, the metadata and probes.

Every controller has one, as a standby must know which endpoints it can reach before it becomes the
active one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Final

from moldau.broker.metadata.machine.broker_lifecycle import fence_dead
from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.liveness import (
    Activated,
    Address,
    BrokerLiveness,
    ConnectionClosed,
    Deactivated,
    DeclareDead,
    Event,
    HeartbeatCame,
    Probe,
    Probed,
    Registered,
    Unregistered,
)
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.network.context import ConnectionInfo
from moldau.clock import Clock, pause
from moldau.peers.channel import Prober, Reach
from moldau.wire.errors import ApiError

#: A refusal takes one round trip; what takes longer says nothing.
PROBE_TIMEOUT_MS: Final = 1_000

logger = logging.getLogger(__name__)


class BrokerWatch:
    """All methods run on the loop's thread and wait for nothing."""

    def __init__(
        self, metadata: MetadataShell, prober: Prober, clock: Clock, *, node_id: int
    ) -> None:
        self._metadata = metadata
        self._prober = prober
        self._clock = clock
        self._node_id = node_id
        self._machine = BrokerLiveness()
        self._active = False
        self._closed = False
        # By broker, the connection of its last heartbeat; by connection, the incarnation.
        self._connections: dict[int, ConnectionInfo] = {}
        self._incarnations: dict[ConnectionInfo, tuple[int, int]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        self._metadata.subscribe(self._on_metadata)
        self._metadata.on_leader_changed(self._on_leader)
        self._on_leader()

    def close(self) -> None:
        self._closed = True
        for task in tuple(self._tasks):
            task.cancel()

    def on_heartbeat(self, broker_id: int, broker_epoch: int, connection: ConnectionInfo) -> None:
        """The active controller has taken a heartbeat of this incarnation."""
        if broker_id == self._node_id:
            return
        self._step(HeartbeatCame(broker_id))
        incarnation = broker_id, broker_epoch
        if self._incarnations.get(connection) != incarnation:
            self._connections[broker_id] = connection
            self._incarnations[connection] = incarnation
            connection.when_closed(self._on_closed)

    # What happens.

    def _on_closed(self, connection: ConnectionInfo) -> None:
        broker_id, broker_epoch = self._incarnations.pop(connection)
        if self._connections.get(broker_id) is not connection:
            # Its heartbeats come over another one by now.
            return
        del self._connections[broker_id]
        if not self._metadata.is_active:
            return
        if self._metadata.controller.on_broker_disconnected(broker_id, broker_epoch):
            self._step(ConnectionClosed(broker_id, broker_epoch))

    def _on_metadata(self, delta: MetadataDelta, image: MetadataImage) -> None:
        for broker_id in delta.brokers:
            if broker_id == self._node_id:
                continue
            broker = image.brokers.get(broker_id)
            if broker is None:
                self._step(Unregistered(broker_id))
            else:
                addresses = frozenset((each.host, each.port) for each in broker.endpoints)
                self._step(Registered(broker_id, broker.epoch, addresses))

    def _on_leader(self) -> None:
        active, was_active = self._metadata.is_active, self._active
        self._active = active
        if active and not was_active:
            brokers = self._metadata.controller.image.brokers.values()
            expected = [each.id for each in brokers if not each.fenced and each.id != self._node_id]
            self._step(Activated(tuple(expected)))
        elif was_active and not active:
            self._step(Deactivated())

    # What is done about it.

    def _step(self, event: Event) -> None:
        if self._closed:
            return
        for effect in self._machine.step(event):
            match effect:
                case Probe():
                    self._spawn(self._probe(effect))
                case DeclareDead(broker_id, broker_epoch):
                    self._spawn(self._declare_dead(broker_id, broker_epoch))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _probe(self, effect: Probe) -> None:
        if effect.after_ms:
            await pause(self._clock, effect.after_ms)
        found = await asyncio.gather(*map(self._reach, effect.addresses))
        reach = dict(zip(effect.addresses, found, strict=True))
        self._step(Probed(effect.broker_id, effect.number, reach))

    async def _reach(self, address: Address) -> Reach:
        host, port = address
        return await self._prober.probe(host, port, timeout_ms=PROBE_TIMEOUT_MS)

    async def _declare_dead(self, broker_id: int, broker_epoch: int) -> None:
        logger.warning(
            "broker %d is gone: its connection to the controller is closed and its listeners "
            "refuse connections; fencing it",
            broker_id,
        )
        try:
            await self._metadata.run(fence_dead, broker_id=broker_id, broker_epoch=broker_epoch)
        except ApiError as error:
            logger.debug("broker %d was not fenced: %s", broker_id, error)
