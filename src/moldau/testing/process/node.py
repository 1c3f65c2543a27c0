"""One node in its process: the real broker in an environment that tests can disturb.

Nothing of the broker is replaced. Its time, disk, network and randomness come from `world.py`, and
a socket to the test carries the orders for faults (`control.py`). Invariant: the node ends when
that socket is closed.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from moldau.broker.app import Node
from moldau.broker.log.background import InlineBackground, ThreadBackground
from moldau.broker.log_lines import configure_logging
from moldau.testing import wire_format
from moldau.testing.process.control import Control
from moldau.testing.process.world import World
from moldau.testing.settings import node_properties

try:
    # Here, not when it is needed: the template imports it once for all nodes.
    import uvloop

    _new_event_loop: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
except ImportError:
    _new_event_loop = asyncio.new_event_loop

logger = logging.getLogger(__name__)


def run_node(spec: Mapping[str, Any], control: socket.socket) -> int:
    """Run a node until it is stopped; returns the process's exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    configure_logging(spec["log_level"])
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
