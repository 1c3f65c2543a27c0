"""Nodes: the real broker, each on a machine of its own with disk, clock and network.

A node is started, stopped in order, killed (the page cache survives), loses power (what was not
synced may be lost), pauses, and its wall clock jumps. What always holds: a node that stopped in
any of these ways starts again, and an error that the broker logs is a bug, for nothing here makes
a broker fail but its end.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import traceback
from collections.abc import Callable, Coroutine, Iterator, Mapping
from functools import lru_cache
from random import Random
from typing import Any
from uuid import UUID

from moldau.broker.app import Broker
from moldau.broker.config import BrokerConfig
from moldau.broker.coordinator.clock import Alarm
from moldau.broker.environment import Environment
from moldau.broker.metadata.formatting import format_storage
from moldau.broker.network.node_channel import ChannelSettings, NodeTransport
from moldau.sim.background import SimBackground
from moldau.sim.disk import Platter, SimDisk, Stopped
from moldau.sim.listening import SimNetwork
from moldau.sim.loop import VirtualLoop
from moldau.sim.network import Dialler, Net
from moldau.sim.process import PROCESS, Process
from moldau.sim.world import Invariant, Violation, World

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
BROKER_PORT = 9092
CONTROLLER_PORT = 9093
STOP_S_MAX = 120.0


class SimClock:
    """`moldau.broker.coordinator.clock.Clock` of one machine; its wall clock may jump."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.ahead_ms = 0

    def now_ms(self) -> int:
        return self._world.now_ms() + self.ahead_ms

    def elapsed_ms(self) -> int:
        return round(self._world.loop.time() * 1000)

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Alarm:
        return self._world.loop.call_later(delay_ms / 1000, callback)


@lru_cache(maxsize=64)
def _config(node_id: int, properties: tuple[tuple[str, str], ...]) -> BrokerConfig:
    host = f"node{node_id}"
    own = {
        "process.roles": "broker,controller",
        "node.id": str(node_id),
        "listeners": f"PLAINTEXT://{host}:{BROKER_PORT},CONTROLLER://{host}:{CONTROLLER_PORT}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"node1:{CONTROLLER_PORT}",
        "log.dirs": "/data",
    }
    return BrokerConfig.from_properties({**own, **dict(properties)})


class Node:
    """One machine; at most one process runs on it."""

    def __init__(self, cluster: Cluster, node_id: int, properties: Mapping[str, str]) -> None:
        world = cluster.world
        self._cluster = cluster
        self._world = world
        self.node_id = node_id
        self.host = f"node{node_id}"
        self.config = _config(node_id, tuple(sorted(properties.items())))
        self.clock = SimClock(world)
        self.platter = Platter(self.clock.now_ms, Random(f"{world.seed}/disk{node_id}"))
        self._random = Random(f"{world.seed}/node{node_id}")
        self._slow = Random(f"{world.seed}/background{node_id}")
        self.process: Process | None = None
        self.broker: Broker | None = None
        self._background: SimBackground | None = None
        self.boots = 0

    @property
    def address(self) -> tuple[str, int]:
        return (self.host, BROKER_PORT)

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.alive

    def format(self) -> None:
        format_storage(
            self.config,
            CLUSTER_ID,
            standalone=True,
            random_uuid=lambda: UUID(bytes=self._random.randbytes(16), version=4),
            disk=self.platter.start(),
            now_ms=self.clock.now_ms(),
        )

    # Life.

    async def start(self) -> bool:
        """Whether it came up; it may die on the way if its disk says so."""
        self._cluster.net.down.discard(self.host)
        self.boots += 1
        process = self.process = Process(f"{self.host}/{self.boots}")
        disk = self.platter.start()
        self.platter.on_stop = process.die
        environment = self._environment(process, disk)

        async def boot() -> Broker:
            broker = Broker(self.config, environment, on_failure=self._on_failure)
            await broker.start()
            return broker

        try:
            self.broker = await self._run(process, boot())
        except Stopped:
            return False
        except Exception as error:
            raise Violation(
                Invariant.STARTS, f"{self.host} does not start: {error!r} at {_where(error)}"
            ) from error
        return True

    def _environment(self, process: Process, disk: SimDisk) -> Environment:
        net, clock = self._cluster.net, self.clock
        self._background = SimBackground(self._world.loop, self._slow, disk)
        transport = NodeTransport(
            client_id=f"node-{self.node_id}",
            clock=clock,
            random=self._random,
            settings=ChannelSettings(),
            connect=Dialler(net, self.host),
        )
        return Environment(
            disk=disk,
            background=self._background,
            network=SimNetwork(net, process, self.config.listeners, self.config.network),
            transport=transport,
            clock_ms=clock.now_ms,
            clock=clock,
            random=self._random,
            random_bytes=self._random.randbytes,
            host_name=lambda: self.host,
            close=transport.close,
        )

    async def _run(self, process: Process, work: Coroutine[Any, Any, Any]) -> Any:
        """The result of something that the process does; Stopped if it dies before."""
        loop = self._world.loop
        dead: asyncio.Future[None] = loop.create_future()

        def tell() -> None:
            if not dead.done():
                dead.set_result(None)

        process.when_dead(tell)
        task = loop.create_task(work, context=process.context())
        await asyncio.wait({task, dead}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise Stopped
        return task.result()

    async def stop(self) -> None:
        """Stop in order."""
        process, broker = self.process, self.broker
        if process is None or broker is None or not process.alive:
            return
        self.broker = None
        try:
            await asyncio.wait_for(self._run(process, broker.stop()), STOP_S_MAX)
        except Stopped:
            return
        except TimeoutError:
            raise Violation(
                Invariant.SETTLES, f"{self.host} has not stopped within {STOP_S_MAX} s"
            ) from None
        if self._background is not None and process.alive:
            self._background.finish()
        self.platter.stop()

    def kill(self) -> None:
        self.broker = None
        self.platter.stop()

    def lose_power(self) -> int:
        self.broker = None
        self._cluster.net.down.add(self.host)
        return self.platter.lose_power()

    def pause(self) -> None:
        if self.process is not None:
            self.process.pause()

    def resume(self) -> None:
        if self.process is not None:
            self.process.resume(self._world.loop)

    def _on_failure(self, error: BaseException) -> None:
        if self.running:
            self._cluster.report(Invariant.NO_SURPRISE, f"{self.host} gives up: {error!r}")


class Cluster:
    def __init__(self, world: World, properties: Mapping[str, str], *, node_count: int = 1) -> None:
        self.world = world
        self.net = Net(world.loop, Random(f"{world.seed}/network"))
        self.net.on_cut = lambda: world.fault("cut connection")
        self.nodes = [Node(self, number + 1, properties) for number in range(node_count)]
        self.violations: list[Violation] = []
        self.expected: tuple[str, ...] = ()
        """Parts of what may be logged as an error in this run."""

    @property
    def loop(self) -> VirtualLoop:
        return self.world.loop

    @property
    def addresses(self) -> list[tuple[str, int]]:
        return [node.address for node in self.nodes]

    @property
    def boots(self) -> int:
        """Rises whenever any node starts: what was in memory only may be gone since."""
        return sum(node.boots for node in self.nodes)

    def report(self, invariant: Invariant, detail: str) -> None:
        """Something is wrong, noticed where nothing may be raised."""
        self.violations.append(Violation(invariant, detail))

    def check(self) -> None:
        if self.violations:
            raise self.violations[0]
        self.world.check_errors()
        for error in self.loop.unheard():
            if not isinstance(error, (Stopped, asyncio.CancelledError)):
                raise Violation(
                    Invariant.NO_SURPRISE, f"a task ended with {error!r} at {_where(error)}"
                )

    @contextlib.contextmanager
    def watching_the_log(self) -> Iterator[None]:
        """Whatever the broker logs as an error is reported."""
        handler = _BugHandler(self)
        logger = logging.getLogger("moldau")
        disabled = logging.root.manager.disable
        propagates = logger.propagate
        logging.disable(logging.WARNING)
        logger.addHandler(handler)
        logger.propagate = False
        try:
            yield
        finally:
            logger.removeHandler(handler)
            logger.propagate = propagates
            logging.disable(disabled)


class _BugHandler(logging.Handler):
    def __init__(self, cluster: Cluster) -> None:
        super().__init__(logging.ERROR)
        self._cluster = cluster

    def emit(self, record: logging.LogRecord) -> None:
        process = PROCESS.get()
        error = record.exc_info[1] if record.exc_info else None
        if process is None or not process.alive or isinstance(error, Stopped):
            return
        told = record.getMessage()
        if any(text in told for text in self._cluster.expected):
            return
        if error is not None:
            told = f"{told}: {error!r} at {_where(error)}"
        self._cluster.report(Invariant.NO_SURPRISE, f"{process.name} logs: {told}")


def _where(error: BaseException) -> str:
    places = traceback.extract_tb(error.__traceback__)
    own = [place for place in places if "/sim/" not in place.filename] or list(places)
    return " < ".join(f"{p.filename.rpartition('/')[2]}:{p.lineno}" for p in own[:-4:-1])
