"""What goes wrong among several machines: several faults at a time, each of limited duration.

The faults (`fleet_lives.py` for processes, `fleet_network.py` for the network):
- Processes are killed anywhere, also all at once and while they start; they are stopped in order,
  and killed if they take too long for that, as an operator does.
- Messages are delayed, one way or both ways between any nodes and clients are blocked, and
  connections are cut at any byte. TCP neither loses, doubles nor reorders what a connection
  carries: here, too, a message is lost with its connection, is doubled by being sent again after
  an answer was lost (the first may arrive long after its sender noticed the cut), and is
  overtaken by what a newer connection carries.
- Power failures come as `PowerRule` allows: see there.
- Processes pause, syncs get slow, wall clocks jump.

Invariants: at most as many faults are active as there are workers, and a machine has one trouble
with its process at a time. `heal` ends all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from moldau.sim.fleet_lives import FleetLives, PowerRule, some_seconds
from moldau.sim.fleet_network import FleetNetwork
from moldau.sim.machine import Fleet, Machine
from moldau.sim.world import World

__all__ = ["WEIGHTS", "FleetFaults", "PowerRule"]

AHEAD_MS_MAX = 2 * 3600 * 1000

LIVES: dict[str, int] = {
    "kill": 10,
    "kill inside": 8,
    "kill of all": 1,
    "clean stop": 6,
    "power failure": 10,
    "power failure of all": 2,
    "pause": 8,
}
WAYS: dict[str, int] = {
    "one-way block": 8,
    "isolation": 8,
    "broken pair": 5,
    "split": 6,
    "cuts": 6,
    "slow network": 4,
    "slow election": 3,
    "contested election": 3,
}
OTHERS: dict[str, int] = {"slow disk": 4, "clock jump": 3}
WEIGHTS: dict[str, int] = {**LIVES, **WAYS, **OTHERS}


class FleetFaults:
    """Chooses faults at random and runs them."""

    def __init__(
        self,
        fleet: Fleet,
        *,
        hosts: Sequence[str],
        power: PowerRule,
        weights: Mapping[str, int] = WEIGHTS,
        leader: Callable[[], Machine | None] = lambda: None,
    ) -> None:
        """`hosts` are the clients'; `leader` gives the machine that leads the quorum."""
        self._leader = leader
        self._fleet = fleet
        self._world: World = fleet.world
        self._lives = lives = FleetLives(fleet, power)
        self._network = network = FleetNetwork(fleet, hosts)
        self._weights = dict(weights)
        if not power.all:
            self._weights.pop("power failure of all", None)
        self._actions: dict[str, Callable[[], Awaitable[None]]] = {
            "kill": lives.kill,
            "kill inside": lives.kill_inside,
            "kill of all": lives.kill_all,
            "clean stop": lives.clean_stop,
            "power failure": lives.power_failure,
            "power failure of all": lives.power_failure_of_all,
            "pause": lives.pause,
            "one-way block": network.one_way,
            "isolation": network.isolation,
            "broken pair": network.broken_pair,
            "split": network.split,
            "cuts": network.cuts,
            "slow network": network.slow_network,
            "slow election": self._slow_election,
            "contested election": self._contested_election,
            "slow disk": self._slow_disk,
            "clock jump": self._jump,
        }

    async def run(self, for_s: float, workers: int) -> None:
        until_s = self._world.loop.time() + for_s
        tasks = [self._world.loop.create_task(self._work(until_s)) for _ in range(workers)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    async def _work(self, until_s: float) -> None:
        world = self._world
        kinds, weights = list(self._weights), list(self._weights.values())
        while world.loop.time() < until_s:
            await asyncio.sleep(world.random.choice((0.1, 0.5, 2.0, 4.0)) * world.random.random())
            kind = world.random.choices(kinds, weights)[0]
            world.steps += 1
            await self._actions[kind]()

    async def heal(self) -> None:
        """End all faults, and start every machine that is not running."""
        self._network.heal()
        for machine in self._fleet.machines:
            machine.slowness = 1.0
        await self._lives.heal()

    def check(self) -> None:
        """Raise what the starting of machines has found."""
        self._lives.check()

    @property
    def all_up(self) -> bool:
        return all(machine.up for machine in self._fleet.machines)

    def start(self, machine: Machine) -> None:
        """Bring up a machine that has just been added."""
        self._lives.start(machine)

    def start_all(self) -> None:
        self._lives.start_all()

    def bounce(self, machine: Machine) -> None:
        """Kill it and start it again at once."""
        self._lives.bounce(machine)

    # Elections.

    async def _slow_election(self) -> None:
        """The quorum's leader falls, and votes take as long as election timeouts."""
        machine = self._falling_leader()
        if machine is None:
            return
        self._world.fault("slow election")
        self._world.note(f"kill {machine.host}, which leads, in a slow network")
        self._network.delay(0.7, 0.4, 1.0)
        await self._lives.fall_and_rise(machine)
        await asyncio.sleep(some_seconds(self._world, 3.0, 5.0) + 1.0)
        self._network.end_delays()

    async def _contested_election(self) -> None:
        """The quorum's leader falls, and two candidates cannot reach each other."""
        machine = self._falling_leader()
        others = [each.host for each in self._fleet.machines if each is not machine]
        if machine is None or len(others) < 2:
            return
        self._world.fault("contested election")
        self._world.note(f"kill {machine.host}, which leads")
        one, other = self._world.random.sample(others, 2)
        block = self._world.loop.create_task(
            self._network.block("broken pair", [(one, other), (other, one)])
        )
        await self._lives.fall_and_rise(machine)
        await asyncio.wait({block})

    def _falling_leader(self) -> Machine | None:
        machine = self._leader()
        return machine if machine is not None and self._lives.may_fall(machine) else None

    # Disks and clocks.

    async def _slow_disk(self) -> None:
        machine = self._world.random.choice(self._fleet.machines)
        self._world.fault("slow disk")
        machine.slowness = self._world.random.choice((20.0, 500.0))
        self._world.note(f"the disk of {machine.host} gets slow ({machine.slowness:.0f} x)")
        await asyncio.sleep(some_seconds(self._world, 4.0, 12.0))
        machine.slowness = 1.0

    async def _jump(self) -> None:
        world = self._world
        machine = world.random.choice(self._fleet.machines)
        step = round(world.random.choice((1e2, 1e4, 1e6)) * (world.random.random() * 2 - 1))
        if abs(machine.clock.ahead_ms + step) < AHEAD_MS_MAX:
            world.fault("clock jump")
            machine.clock.ahead_ms += step
            world.note(f"the clock of {machine.host} jumps by {step} ms")
