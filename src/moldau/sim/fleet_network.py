"""What goes wrong with the network of a fleet: blocked ways, cut connections, delays."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from moldau.sim.fleet_lives import some_seconds
from moldau.sim.machine import Fleet
from moldau.sim.world import World

__all__ = ["FleetNetwork"]


class FleetNetwork:
    """Disturbs the ways between nodes, and between nodes and clients."""

    def __init__(self, fleet: Fleet, hosts: Sequence[str]) -> None:
        """`hosts` are the clients'."""
        self._fleet = fleet
        self._world: World = fleet.world
        self._hosts = list(hosts)

    def heal(self) -> None:
        net = self._fleet.net
        net.cut_chance = 0.0
        net.delay_long_chance = 0.0
        net.heal()

    async def one_way(self) -> None:
        random = self._world.random
        machine = random.choice(self._fleet.machines)
        others = [each.host for each in self._fleet.machines if each is not machine]
        # Between nodes more often than to a client.
        other = random.choice(others * 3 + self._hosts)
        way = (machine.host, other) if random.random() < 0.5 else (other, machine.host)
        await self.block("one-way block", [way])

    async def isolation(self) -> None:
        """One node is cut off from the other nodes, and from the clients or not."""
        random = self._world.random
        machine = random.choice(self._fleet.machines)
        others = [each.host for each in self._fleet.machines if each is not machine]
        if random.random() < 0.3:
            others += self._hosts
        ways = [way for other in others for way in ((machine.host, other), (other, machine.host))]
        if random.random() < 0.3:
            # Only what it sends is lost, or only what it is sent.
            ways = ways[:: 1 if random.random() < 0.5 else 2]
        await self.block("isolation", ways)

    async def broken_pair(self) -> None:
        """Two nodes cannot reach each other; all others reach both."""
        hosts = [each.host for each in self._fleet.machines]
        if len(hosts) > 1:
            one, other = self._world.random.sample(hosts, 2)
            await self.block("broken pair", [(one, other), (other, one)])

    async def split(self) -> None:
        """Two halves, with clients on either side."""
        random = self._world.random
        hosts = [each.host for each in self._fleet.machines] + self._hosts
        left = {host for host in hosts if random.random() < 0.5}
        ways = [(a, b) for a in hosts for b in hosts if (a in left) != (b in left)]
        await self.block("split", ways)

    async def block(self, kind: str, ways: list[tuple[str, str]]) -> None:
        world, net = self._world, self._fleet.net
        ways = [way for way in ways if not net.is_blocked(*way)]
        if not ways:
            return
        world.fault(kind)
        seconds = some_seconds(self._world, 0.5, 4.0, 12.0, 20.0)
        shown = ", ".join(f"{a}>{b}" for a, b in ways[:6]) + (", ..." if len(ways) > 6 else "")
        world.note(f"{kind} for {seconds:.3f} s: {shown}")
        for source, target in ways:
            net.block(source, target)
        await asyncio.sleep(seconds)
        for source, target in ways:
            net.open(source, target)

    async def cuts(self) -> None:
        net = self._fleet.net
        self._world.fault("cuts")
        net.cut_chance = self._world.random.choice((0.05, 0.2))
        await asyncio.sleep(some_seconds(self._world, 1.0, 4.0))
        net.cut_chance = 0.002

    async def slow_network(self) -> None:
        self._world.fault("slow network")
        self.delay(0.3, 0.3, 1.5)
        await asyncio.sleep(some_seconds(self._world, 2.0, 6.0))
        self.end_delays()

    def delay(self, chance: float, *seconds: float) -> None:
        """Delay messages with this chance, until `end_delays`."""
        net = self._fleet.net
        net.delay_long_chance = chance
        net.delay_long_s = self._world.random.choice(seconds)

    def end_delays(self) -> None:
        net = self._fleet.net
        net.delay_long_chance, net.delay_long_s = 0.02, 0.3
