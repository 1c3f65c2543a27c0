"""One node in its process: the real broker in an environment that tests can disturb.

Nothing of the broker is replaced. What it takes from the world (time, disk, network, randomness)
comes from here, and a socket to the test says what is to go wrong. What always holds: the node
ends when that socket does.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import signal
import socket
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from uuid import UUID

from moldau.broker.app import Node
from moldau.broker.config import BrokerConfig
from moldau.broker.environment import Environment
from moldau.broker.log.background import Background, InlineBackground, ThreadBackground
from moldau.broker.machine.supported import check_supported
from moldau.broker.metadata.formatting import format_storage
from moldau.broker.network.server import SocketNetwork
from moldau.peers.node_channel import ChannelSettings, NodeTransport, response_bytes_max
from moldau.testing import wire_format
from moldau.testing.machine.rules import RuleBook
from moldau.testing.process.clock import ShiftedClock
from moldau.testing.process.control import Control
from moldau.testing.process.disk import ThrowAwayDisk
from moldau.testing.process.network import NODE_PREFIX, FaultyNetwork, Switchboard
from moldau.testing.settings import node_properties

try:
    # Here, not when it is needed: the template imports it once for all nodes.
    import uvloop

    _new_event_loop: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
except ImportError:
    _new_event_loop = asyncio.new_event_loop

logger = logging.getLogger(__name__)


class World:
    """What surrounds one node, and can be disturbed."""

    def __init__(self, spec: Mapping[str, Any], background: Background) -> None:
        self.config = BrokerConfig.from_properties(spec["properties"])
        check_supported(self.config)
        seed = f"{spec['seed']}/node{self.config.node_id}"
        self.clock = ShiftedClock(
            ahead_ms=spec["clock_ahead_ms"], wall_ahead_ms=spec["wall_ahead_ms"]
        )
        self.disk = ThrowAwayDisk()
        self.board = Switchboard(RuleBook(lambda number: random.Random(f"{seed}/fault{number}")))
        # A start draws other numbers than the last one: two incarnations are never the same.
        self.random = random.Random(f"{seed}/start{spec['start']}")
        self._background = background

    def environment(self, close: Callable[[], None]) -> Environment:
        config = self.config
        transport = NodeTransport(
            client_id=f"{NODE_PREFIX}{config.node_id}",
            clock=self.clock,
            random=self.random,
            settings=ChannelSettings(
                socket_connection_setup_timeout_ms=config["socket.connection.setup.timeout.ms"],
                socket_connection_setup_timeout_max_ms=config[
                    "socket.connection.setup.timeout.max.ms"
                ],
                response_bytes_max=response_bytes_max(config.network.socket_request_max_bytes),
            ),
        )

        def close_all() -> None:
            transport.close()
            close()

        return Environment(
            disk=self.disk,
            background=self._background,
            network=FaultyNetwork(SocketNetwork(config.listeners, config.network), self.board),
            transport=transport,
            clock=self.clock,
            random=self.random,
            random_bytes=self.random.randbytes,
            host_name=lambda: "127.0.0.1",
            close=close_all,
        )

    def format(self, cluster_id: str) -> None:
        if not self.disk.exists(f"{self.config.metadata_log_dir}/meta.properties"):
            format_storage(
                self.config,
                cluster_id,
                random_uuid=lambda: UUID(bytes=self.random.randbytes(16), version=4),
                disk=self.disk,
                now_ms=self.clock.now_ms(),
            )


def run_node(spec: Mapping[str, Any], control: socket.socket) -> int:
    """Run a node until it is told to stop; the process's exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    logging.basicConfig(
        level=spec["log_level"], format="[%(asctime)s] %(levelname)s %(message)s (%(name)s)"
    )
    gc.set_threshold(50_000, 20, 50)
    with asyncio.Runner(loop_factory=_new_event_loop) as runner:
        return runner.run(_serve(spec, control))


async def _serve(spec: Mapping[str, Any], socket_to_test: socket.socket) -> int:
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    failures: list[BaseException] = []

    def fail(error: BaseException) -> None:
        failures.append(error)
        stopping.set()

    def stop_soon() -> None:
        stopping.set()
        node.hurry()

    try:
        background = ThreadBackground(loop)
        world = World(spec, background)
        world.format(spec["cluster_id"])
        environment = world.environment(background.close)
        node = Node(world.config, environment, on_failure=fail)
        control = Control(socket_to_test, world, node)
        control.prepare(spec)
        loop.add_signal_handler(signal.SIGTERM, stopping.set)
        loop.add_signal_handler(signal.SIGINT, stop_soon)
        control.start()
        info = await node.start()
    except Exception as error:
        logger.critical("the node cannot start", exc_info=error)
        wire_format.send(socket_to_test, {"failed": f"{type(error).__name__}: {error}"})
        return 1
    control.announce(info)
    await stopping.wait()
    try:
        await node.stop()
    finally:
        environment.close()
    for failure in failures:
        logger.critical("stopped because of a failure: %s", failure)
    return 1 if failures else 0


def warm_up() -> None:
    """Start and stop a node here, so that what nodes make at their first start is made already.

    It has no threads, so the process can be forked afterwards.
    """
    with tempfile.TemporaryDirectory(prefix="moldau-") as folder:
        properties = node_properties(
            node_id=1,
            ports={1: (0, 0)},
            folder=folder,
            log_dirs=1,
            overrides={},
        )
        spec = {
            "properties": properties,
            "seed": 0,
            "start": 0,
            "clock_ahead_ms": 0,
            "wall_ahead_ms": 0,
        }
        logging.disable(logging.CRITICAL)
        try:
            with suppress(OSError):
                asyncio.run(_start_and_stop(spec))
        finally:
            logging.disable(logging.NOTSET)


async def _start_and_stop(spec: Mapping[str, Any]) -> None:
    world = World(spec, InlineBackground())
    world.format("AAAAAAAAAAAAAAAAAAAAAA")
    environment = world.environment(lambda: None)
    node = Node(world.config, environment)
    await node.start()
    await node.stop()
    environment.close()
