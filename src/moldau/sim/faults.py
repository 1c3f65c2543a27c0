"""What goes wrong in a cluster, drawn by weight: each fault with its end.

Which combinations there are, and what is then checked:
- Kills, clean stops, pauses, clock jumps, cut and blocked connections come in every run; nothing
  that was acknowledged may be lost, and every invariant holds in full.
- Power failures come in runs whose logs are flushed before every answer
  (log.flush.interval.messages=1): again every invariant holds in full for what was acknowledged.
  Records are readable before they are synced, so a reader may have seen one that is gone after
  the failure if its producer was not answered.
- In lossy runs power failures come without such flushes. One node without fsync promises no more
  than that each log keeps a first part of what it held, at the same offsets; there are only
  idempotent producers and readers in these runs, and producers may get the error that their
  state is lost. Everything else is checked as ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from enum import Enum

from moldau.sim.cluster import Cluster, Node
from moldau.sim.disk import Stopped
from moldau.sim.world import World

AHEAD_MS_MAX = 2 * 3600 * 1000


class Power(Enum):
    """What power failures may take."""

    ALWAYS_ON = "no power failures"
    FLUSHED = "flushed before every answer"
    LOSSY = "not flushed"


WEIGHTS: dict[str, int] = {
    "kill": 10,
    "kill inside": 8,
    "clean stop": 5,
    "power failure": 10,
    "pause": 10,
    "one-way block": 8,
    "partition": 8,
    "cuts": 10,
    "clock jump": 4,
}


class Faults:
    def __init__(
        self,
        cluster: Cluster,
        *,
        power: Power,
        hosts: list[str],
        on_start: Callable[[Node], None],
        weights: dict[str, int] | None = None,
    ) -> None:
        """`hosts` are the clients'; `on_start` is called with a node that is up again and may
        have lost something."""
        self._cluster = cluster
        self._world: World = cluster.world
        self._power = power
        self._hosts = hosts
        self._on_start = on_start
        self._weights = dict(WEIGHTS if weights is None else weights)
        if power is Power.ALWAYS_ON:
            self._weights.pop("power failure", None)
        self._actions: dict[str, Callable[[Node], Awaitable[None]]] = {
            "kill": self._kill,
            "kill inside": self._kill_inside,
            "clean stop": self._clean_stop,
            "power failure": self._power_failure,
            "pause": self._pause,
            "one-way block": self._one_way,
            "partition": self._partition,
            "cuts": self._cuts,
            "clock jump": self._jump,
        }

    async def run(self, until_s: float) -> None:
        world = self._world
        kinds, weights = list(self._weights), list(self._weights.values())
        while world.loop.time() < until_s:
            await asyncio.sleep(world.random.choice((0.2, 1.0, 3.0, 8.0)) * world.random.random())
            kind = world.random.choices(kinds, weights)[0]
            world.steps += 1
            world.fault(kind)
            await self._actions[kind](world.random.choice(self._cluster.nodes))

    async def heal(self) -> None:
        """Everything works again."""
        net = self._cluster.net
        net.cut_chance = 0.0
        net.delay_long_chance = 0.0
        net.heal()
        for node in self._cluster.nodes:
            node.platter.stop_after(None)
            node.resume()
            if not node.running:
                await self._start(node, surely=True)

    # Ends of processes.

    async def _start(self, node: Node, *, surely: bool = False) -> None:
        world = self._world
        while True:
            if not surely and world.chance(0.15):
                node.platter.stop_after(world.random.choice((0, 1, 3, 8, 20, 50)))
            if await node.start():
                node.platter.stop_after(None)
                world.note(f"{node.host} is up")
                if self._power is not Power.ALWAYS_ON:
                    self._on_start(node)
                return
            world.note(f"{node.host} died while starting")
            world.fault("kill while starting")
            if self._power is Power.FLUSHED and world.chance(0.5):
                world.fault("power failure")
                world.note(f"power fails: {node.lose_power()} changes lost")

    async def _down_for_a_while(self) -> None:
        world = self._world
        await asyncio.sleep(world.random.choice((0.05, 0.5, 4.0, 20.0)) * world.random.random())

    async def _kill(self, node: Node) -> None:
        self._world.note(f"kill {node.host}")
        node.kill()
        await self._down_for_a_while()
        await self._start(node)

    async def _kill_inside(self, node: Node) -> None:
        """In front of one of the next changes on disk, wherever that is."""
        world = self._world
        count = world.random.choice((0, 1, 2, 5, 12, 30))
        world.note(f"kill {node.host} after {count} changes")
        node.platter.stop_after(count)
        for _ in range(20):
            await asyncio.sleep(0.25)
            if not node.running:
                break
        else:
            node.platter.stop_after(None)
            return
        world.note(f"{node.host} died")
        node.kill()
        if self._power is Power.FLUSHED and world.chance(0.5):
            world.fault("power failure")
            world.note(f"power fails: {node.lose_power()} changes lost")
        await self._down_for_a_while()
        await self._start(node)

    async def _clean_stop(self, node: Node) -> None:
        self._world.note(f"stop {node.host}")
        try:
            await node.stop()
        except Stopped:
            node.kill()
        await self._down_for_a_while()
        await self._start(node)

    async def _power_failure(self, node: Node) -> None:
        self._world.note(f"power of {node.host} fails: {node.lose_power()} changes lost")
        await self._down_for_a_while()
        await self._start(node)

    # What passes.

    async def _pause(self, node: Node) -> None:
        world = self._world
        seconds = world.random.choice((0.2, 2.0, 8.0, 25.0)) * world.random.random()
        world.note(f"{node.host} stands still for {seconds:.3f} s")
        node.pause()
        await asyncio.sleep(seconds)
        node.resume()

    async def _one_way(self, node: Node) -> None:
        host = self._world.random.choice(self._hosts)
        ways = [(node.host, host), (host, node.host)]
        await self._block([self._world.random.choice(ways)])

    async def _partition(self, node: Node) -> None:
        """Some clients are cut off, or all."""
        world = self._world
        hosts = [host for host in self._hosts if world.chance(0.5)] or self._hosts
        await self._block([way for h in hosts for way in ((h, node.host), (node.host, h))])

    async def _block(self, ways: list[tuple[str, str]]) -> None:
        world, net = self._world, self._cluster.net
        seconds = world.random.choice((0.5, 4.0, 20.0)) * world.random.random()
        world.note(f"blocked for {seconds:.3f} s: {', '.join(f'{a}>{b}' for a, b in ways)}")
        for source, target in ways:
            net.block(source, target)
        await asyncio.sleep(seconds)
        for source, target in ways:
            net.open(source, target)

    async def _cuts(self, _node: Node) -> None:
        world, net = self._world, self._cluster.net
        before, net.cut_chance = net.cut_chance, world.random.choice((0.05, 0.2))
        await asyncio.sleep(world.random.choice((1.0, 5.0)) * world.random.random())
        net.cut_chance = before

    async def _jump(self, node: Node) -> None:
        world = self._world
        step = round(world.random.choice((1e2, 1e4, 1e6)) * (world.random.random() * 2 - 1))
        ahead = node.clock.ahead_ms + step
        if abs(ahead) < AHEAD_MS_MAX:
            node.clock.ahead_ms = ahead
            world.note(f"the clock of {node.host} jumps by {step} ms")
