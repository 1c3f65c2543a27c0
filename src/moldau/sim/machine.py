"""A machine: a disk, a clock, a place in the network, and at most one process of the node.

It is started, stopped in order, killed (the page cache survives), loses power (what was not synced
may be lost), pauses, its disk gets slow, and its wall clock jumps. Invariants: a machine
whose process stopped in any of these ways starts again, and an error that the node logs is a bug,
for nothing here makes a node fail but its end.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import traceback
from collections.abc import Callable, Coroutine, Iterator, Sequence
from random import Random
from typing import Any, Protocol

from moldau.clock import Alarm
from moldau.peers.node_channel import ChannelSettings, NodeTransport
from moldau.sim.background import SimBackground
from moldau.sim.disk import Platter, SimDisk, Stopped
from moldau.sim.loop import VirtualLoop
from moldau.sim.network import Dialler, Net
from moldau.sim.process import PROCESS, Process
from moldau.sim.world import Invariant, Violation, World
from moldau.times import ElapsedMs, WallMs

STOP_S_MAX = 120.0


class SimClock:
    """`moldau.clock.Clock` of one machine; its wall clock may jump."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.ahead_ms = 0

    def now_ms(self) -> WallMs:
        return WallMs(self._world.now_ms() + self.ahead_ms)

    def elapsed_ms(self) -> ElapsedMs:
        return ElapsedMs(round(self._world.loop.time() * 1000))

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Alarm:
        return self._world.loop.call_later(delay_ms / 1000, callback)


class Program(Protocol):
    """What runs on a machine."""

    async def stop(self) -> None: ...


class Machine:
    """`boot` says what runs here."""

    def __init__(self, fleet: Fleet, node_id: int) -> None:
        world = fleet.world
        self._fleet = fleet
        self._world = world
        self.node_id = node_id
        self.host = f"node{node_id}"
        self.clock = SimClock(world)
        self.platter = Platter(self.clock.now_ms, Random(f"{world.seed}/disk{node_id}"))
        self.random = Random(f"{world.seed}/node{node_id}")
        self._slow = Random(f"{world.seed}/background{node_id}")
        self.slowness = 1.0
        """How much longer the disk takes for a sync than it should."""
        self.process: Process | None = None
        self.up = False
        """Whether the process has come up and not begun to stop."""
        self._program: Program | None = None
        self._background: SimBackground | None = None
        self.boots = 0
        self.lost_power_at_boot = -1
        """The last boot before which unsynced bytes were lost."""

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.alive

    async def boot(self, process: Process, disk: SimDisk, background: SimBackground) -> Program:
        raise AssertionError("every kind of machine runs something of its own")

    def transport(self) -> NodeTransport:
        """Ways to other nodes, for one boot."""
        return NodeTransport(
            client_id=f"node-{self.node_id}",
            clock=self.clock,
            random=self.random,
            settings=ChannelSettings(),
            connect=Dialler(self._fleet.net, self.host),
        )

    # Life.

    async def start(self) -> bool:
        """Whether it came up; it may die on the way if its disk says so."""
        self._fleet.net.down.discard(self.host)
        self.boots += 1
        process = self.process = Process(f"{self.host}/{self.boots}")
        disk = self.platter.start()
        self.platter.on_stop = process.die
        background = self._background = SimBackground(
            self._world.loop,
            self._slow,
            disk,
            lambda: self.slowness,
            straggling=self._fleet.straggling,
            straggle_s=self._fleet.straggle_s,
        )
        try:
            program = await self._run(process, self.boot(process, disk, background))
        except Stopped:
            return False
        except Exception as error:
            raise Violation(
                Invariant.STARTS, f"{self.host} does not start: {error!r} at {where(error)}"
            ) from error
        self._program, self.up = program, True
        return True

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
        process, program = self.process, self._program
        if process is None or program is None or not process.alive:
            return
        self.up, self._program = False, None
        try:
            await asyncio.wait_for(self._run(process, program.stop()), STOP_S_MAX)
        except Stopped:
            return
        except TimeoutError:
            raise Violation(
                Invariant.SETTLES, f"{self.host} has not stopped within {STOP_S_MAX} s"
            ) from None
        if self._background is not None and process.alive:
            self._background.finish()
        if process.alive:
            self.platter.stop()

    def kill(self) -> None:
        self.up, self._program = False, None
        self.platter.stop()

    def lose_power(self) -> int:
        self.up, self._program = False, None
        self._fleet.net.down.add(self.host)
        self.lost_power_at_boot = self.boots + 1
        return self.platter.lose_power()

    def pause(self) -> None:
        if self.process is not None:
            self.process.pause()

    def resume(self) -> None:
        if self.process is not None:
            self.process.resume(self._world.loop)

    def note(self, text: str) -> None:
        self._world.note(f"{self.host}: {text}")

    def on_failure(self, error: BaseException) -> None:
        if self.running:
            self._fleet.report(Invariant.NO_SURPRISE, f"{self.host} gives up: {error!r}")


class Fleet:
    """Machines, the network between them, and what was noticed where nothing may be raised."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.net = Net(world.loop, Random(f"{world.seed}/network"))
        self.net.on_cut = lambda: world.fault("cut connection")
        self.violations: list[Violation] = []
        # A single node has no peer that would lose patience with it.
        self.straggling, self.straggle_s = 0.1, 5.0
        self.expected: tuple[str, ...] = ()
        """Parts of what may be logged as an error in this run."""

    @property
    def machines(self) -> Sequence[Machine]:
        raise AssertionError("every kind of fleet has machines of its own")

    @property
    def loop(self) -> VirtualLoop:
        return self.world.loop

    @property
    def boots(self) -> int:
        """Rises whenever any node starts: what was in memory only may be gone since."""
        return sum(machine.boots for machine in self.machines)

    def report(self, invariant: Invariant, detail: str) -> None:
        """Something is wrong, noticed where nothing may be raised."""
        self.violations.append(Violation(invariant, detail))

    def check(self, *, at_end: bool = False) -> None:
        if self.violations:
            raise self.violations[0]
        self.world.check_errors()
        for error in self.loop.unretrieved(at_end=at_end):
            if not isinstance(error, (Stopped, asyncio.CancelledError)):
                raise Violation(
                    Invariant.NO_SURPRISE, f"a task ended with {error!r} at {where(error)}"
                )

    @contextlib.contextmanager
    def watching_the_log(self) -> Iterator[None]:
        """Whatever a node logs as an error is reported."""
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
    def __init__(self, fleet: Fleet) -> None:
        super().__init__(logging.ERROR)
        self._fleet = fleet

    def emit(self, record: logging.LogRecord) -> None:
        process = PROCESS.get()
        error = record.exc_info[1] if record.exc_info else None
        if process is None or not process.alive or isinstance(error, Stopped):
            return
        message = record.getMessage()
        if any(text in message for text in self._fleet.expected):
            return
        if error is not None:
            message = f"{message}: {error!r} at {where(error)}"
        self._fleet.report(Invariant.NO_SURPRISE, f"{process.name} logs: {message}")


def where(error: BaseException) -> str:
    places = traceback.extract_tb(error.__traceback__)
    own = [place for place in places if "/sim/" not in place.filename] or list(places)
    return " < ".join(f"{p.filename.rpartition('/')[2]}:{p.lineno}" for p in own[:-4:-1])
