"""What goes wrong among several machines: several things at a time, each with its end.

Which combinations there are:
- Processes are killed anywhere, also all at once and while they start; they are stopped in order,
  and killed if they take too long for that, as an operator does.
- Messages are delayed, one way or both ways between any nodes and clients are blocked, and
  connections are cut at any byte. TCP neither loses, doubles nor reorders what a connection
  carries: here, too, a message is lost with its connection, is doubled by being sent again after
  an answer was lost (the first may arrive long after its sender heard of the cut), and is
  overtaken by what a newer connection carries.
- Power failures come as `PowerRule` allows: see there.
- Processes pause, syncs get slow, wall clocks jump.

What always holds: at most so many things go wrong at a time as there are workers, and a machine
has one trouble with its process at a time. `heal` ends all of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from moldau.sim.disk import Stopped
from moldau.sim.machine import Fleet, Machine
from moldau.sim.world import Violation, World

AHEAD_MS_MAX = 2 * 3600 * 1000
STOP_PATIENCE_S = 15.0
START_PATIENCE_S = 6.0

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


@dataclass(frozen=True, slots=True)
class PowerRule:
    """Whose power may fail now, as the promise that is checked allows."""

    one: Callable[[Machine], bool]
    all: bool
    """Whether all may lose power at once: whoever promises something has synced it."""
    may_end: Callable[[Machine], bool] = lambda machine: True
    """Whether a process may end now without one."""
    on_lost: Callable[[Machine], None] = lambda machine: None
    """Told in front of a power failure."""


class FleetFaults:
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
        self._hosts = list(hosts)
        self._power = power
        self._weights = dict(weights)
        if not power.all:
            self._weights.pop("power failure of all", None)
        self._troubled: set[Machine] = set()
        self._paused: set[Machine] = set()
        self._starting: dict[Machine, asyncio.Task[None]] = {}
        self._stopping: set[asyncio.Task[None]] = set()
        self._over = False
        self._actions: dict[str, Callable[[], Awaitable[None]]] = {
            "kill": self._kill,
            "kill inside": self._kill_inside,
            "kill of all": self._kill_all,
            "clean stop": self._clean_stop,
            "power failure": self._power_failure,
            "power failure of all": self._power_failure_of_all,
            "pause": self._pause,
            "one-way block": self._one_way,
            "isolation": self._isolation,
            "broken pair": self._broken_pair,
            "split": self._split,
            "cuts": self._cuts,
            "slow network": self._slow_network,
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
        """Everything works again, and everybody is there."""
        self._over = True
        net = self._fleet.net
        net.cut_chance = 0.0
        net.delay_long_chance = 0.0
        net.heal()
        for machine in self._fleet.machines:
            machine.slowness = 1.0
            machine.platter.stop_after(None)
            machine.resume()
        for task in list(self._stopping):
            await asyncio.wait({task})
        for machine in self._fleet.machines:
            if not machine.running and machine not in self._starting:
                self._start(machine)

    def check(self) -> None:
        """Raise what the starting of machines has found."""
        for task in list(self._starting.values()):
            if task.done():
                task.result()

    @property
    def all_up(self) -> bool:
        return all(machine.up for machine in self._fleet.machines)

    # Lives.

    def _idle(self) -> Machine | None:
        """Somebody who has no trouble yet, and may have some."""
        idle = [
            machine
            for machine in self._fleet.machines
            if machine not in self._troubled | self._paused and self._power.may_end(machine)
        ]
        return self._world.random.choice(idle) if idle else None

    def _seconds(self, *scales: float) -> float:
        return self._world.random.choice(scales) * self._world.random.random()

    def start(self, machine: Machine) -> None:
        """Bring up a machine that has just been added."""
        self._start(machine)

    def start_all(self) -> None:
        for machine in self._fleet.machines:
            self._start(machine)

    def _start(self, machine: Machine) -> asyncio.Task[None]:
        task = self._world.loop.create_task(self._bring_up(machine))
        self._starting[machine] = task
        return task

    async def _bring_up(self, machine: Machine) -> None:
        world = self._world
        while True:
            if not self._over and self._power.may_end(machine) and world.chance(0.1):
                machine.platter.stop_after(world.random.choice((0, 1, 3, 8, 20, 50)))
            boot = machine.boots + 1
            try:
                started = await machine.start()
            except Violation as violation:
                self._fleet.violations.append(violation)
                return
            if machine.boots != boot:
                # Somebody else has ended it and brings it up again.
                return
            if started:
                machine.platter.stop_after(None)
                world.note(f"{machine.host} is up")
                self._starting.pop(machine, None)
                return
            if machine in self._troubled:
                return
            world.note(f"{machine.host} died while starting")
            world.fault("kill while starting")

    async def _back(self, machine: Machine, *scales: float) -> None:
        await asyncio.sleep(self._seconds(*(scales or (0.05, 0.5, 3.0, 12.0))))
        self._troubled.discard(machine)
        task = self._start(machine)
        await asyncio.wait({task}, timeout=START_PATIENCE_S)

    def _end(self, machine: Machine, *, power: bool = False) -> int:
        self._troubled.add(machine)
        self._starting.pop(machine, None)
        machine.platter.stop_after(None)
        if power:
            self._power.on_lost(machine)
            return machine.lose_power()
        machine.kill()
        return 0

    async def _kill(self) -> None:
        machine = self._idle()
        if machine is None:
            return
        self._world.fault("kill")
        self._world.note(f"kill {machine.host}")
        self._end(machine)
        await self._back(machine)

    def bounce(self, machine: Machine) -> None:
        """Kill it and start it again at once."""
        if machine.up and machine not in self._troubled | self._paused and not self._over:
            self._world.note(f"{machine.host} falls and rises")
            self._end(machine)
            self._troubled.discard(machine)
            self._start(machine)

    async def _kill_inside(self) -> None:
        """In front of one of the next changes on disk, wherever that is."""
        world, machine = self._world, self._idle()
        if machine is None or not machine.up:
            return
        world.fault("kill inside")
        self._troubled.add(machine)
        count = world.random.choice((0, 1, 2, 5, 12, 30))
        world.note(f"kill {machine.host} after {count} changes")
        machine.platter.stop_after(count)
        for _ in range(16):
            await asyncio.sleep(0.25)
            if not machine.running:
                break
        else:
            machine.platter.stop_after(None)
            self._troubled.discard(machine)
            return
        world.note(f"{machine.host} died")
        power = self._may_lose_power(machine) and world.chance(0.5)
        if power:
            world.fault("power failure")
        self._end(machine, power=power)
        await self._back(machine)

    async def _kill_all(self) -> None:
        await self._end_all(power=False)

    async def _power_failure_of_all(self) -> None:
        await self._end_all(power=True)

    async def _end_all(self, *, power: bool) -> None:
        machines = [
            each
            for each in self._fleet.machines
            if each not in self._troubled | self._paused and self._power.may_end(each)
        ]
        if len(machines) < len(self._fleet.machines):
            return
        self._world.fault("power failure of all" if power else "kill of all")
        lost = sum(self._end(machine, power=power) for machine in machines)
        self._world.note(f"all lose power: {lost} changes lost" if power else "kill all")
        for machine in machines:
            await asyncio.sleep(self._seconds(0.1, 1.0))
            self._troubled.discard(machine)
            self._start(machine)

    async def _clean_stop(self) -> None:
        machine = self._idle()
        if machine is None or not machine.up:
            return
        self._world.fault("clean stop")
        self._world.note(f"stop {machine.host}")
        self._troubled.add(machine)
        task = self._world.loop.create_task(self._stop(machine))
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)
        await asyncio.wait({task}, timeout=STOP_PATIENCE_S)
        if not task.done() and not self._over:
            self._world.note(f"{machine.host} takes too long")
        self._end(machine)
        await self._back(machine, 0.1, 2.0)

    async def _stop(self, machine: Machine) -> None:
        try:
            await machine.stop()
        except Stopped:
            return
        except Violation as violation:
            self._fleet.violations.append(violation)

    async def _power_failure(self) -> None:
        machine = self._idle()
        if machine is None or not self._may_lose_power(machine):
            return
        self._world.fault("power failure")
        lost = self._end(machine, power=True)
        self._world.note(f"power of {machine.host} fails: {lost} changes lost")
        await self._back(machine)

    def _may_lose_power(self, machine: Machine) -> bool:
        # A process that is about to end counts as one that has.
        others = [each for each in self._fleet.machines if each is not machine]
        alone = not any(each in self._troubled or each.platter.armed for each in others)
        return (self._power.all or alone) and self._power.one(machine)

    async def _pause(self) -> None:
        machine = self._idle()
        if machine is None or not machine.running:
            return
        self._world.fault("pause")
        seconds = self._seconds(0.2, 2.0, 6.0, 15.0)
        self._world.note(f"{machine.host} stands still for {seconds:.3f} s")
        self._paused.add(machine)
        machine.pause()
        await asyncio.sleep(seconds)
        machine.resume()
        self._paused.discard(machine)

    # Ways.

    async def _one_way(self) -> None:
        random = self._world.random
        machine = random.choice(self._fleet.machines)
        others = [each.host for each in self._fleet.machines if each is not machine]
        # Between nodes more often than to a client.
        other = random.choice(others * 3 + self._hosts)
        way = (machine.host, other) if random.random() < 0.5 else (other, machine.host)
        await self._block("one-way block", [way])

    async def _isolation(self) -> None:
        """One node is cut off from the other nodes, and from the clients or not."""
        random = self._world.random
        machine = random.choice(self._fleet.machines)
        others = [each.host for each in self._fleet.machines if each is not machine]
        if random.random() < 0.3:
            others += self._hosts
        ways = [way for other in others for way in ((machine.host, other), (other, machine.host))]
        if random.random() < 0.3:
            # It hears but is not heard, or the other way round.
            ways = ways[:: 1 if random.random() < 0.5 else 2]
        await self._block("isolation", ways)

    async def _broken_pair(self) -> None:
        """Two nodes do not hear of each other; everybody else hears both."""
        hosts = [each.host for each in self._fleet.machines]
        if len(hosts) > 1:
            one, other = self._world.random.sample(hosts, 2)
            await self._block("broken pair", [(one, other), (other, one)])

    async def _split(self) -> None:
        """Two halves, with clients on either side."""
        random = self._world.random
        hosts = [each.host for each in self._fleet.machines] + self._hosts
        left = {host for host in hosts if random.random() < 0.5}
        ways = [(a, b) for a in hosts for b in hosts if (a in left) != (b in left)]
        await self._block("split", ways)

    async def _block(self, kind: str, ways: list[tuple[str, str]]) -> None:
        world, net = self._world, self._fleet.net
        ways = [way for way in ways if not net.is_blocked(*way)]
        if not ways:
            return
        world.fault(kind)
        seconds = self._seconds(0.5, 4.0, 12.0, 20.0)
        told = ", ".join(f"{a}>{b}" for a, b in ways[:6]) + (", ..." if len(ways) > 6 else "")
        world.note(f"{kind} for {seconds:.3f} s: {told}")
        for source, target in ways:
            net.block(source, target)
        await asyncio.sleep(seconds)
        for source, target in ways:
            net.open(source, target)

    async def _cuts(self) -> None:
        net = self._fleet.net
        self._world.fault("cuts")
        net.cut_chance = self._world.random.choice((0.05, 0.2))
        await asyncio.sleep(self._seconds(1.0, 4.0))
        net.cut_chance = 0.002

    async def _slow_network(self) -> None:
        net = self._fleet.net
        self._world.fault("slow network")
        net.delay_long_chance = 0.3
        net.delay_long_s = self._world.random.choice((0.3, 1.5))
        await asyncio.sleep(self._seconds(2.0, 6.0))
        net.delay_long_chance, net.delay_long_s = 0.02, 0.3

    async def _slow_election(self) -> None:
        """The quorum's leader falls, and votes take as long as election timeouts."""
        machine, net = self._falling_leader(), self._fleet.net
        if machine is None:
            return
        self._world.fault("slow election")
        self._world.note(f"kill {machine.host}, which leads, in a slow network")
        net.delay_long_chance = 0.7
        net.delay_long_s = self._world.random.choice((0.4, 1.0))
        await self._fall_and_rise(machine)
        await asyncio.sleep(self._seconds(3.0, 5.0) + 1.0)
        net.delay_long_chance, net.delay_long_s = 0.02, 0.3

    async def _contested_election(self) -> None:
        """The quorum's leader falls, and two others that stand do not hear of each other."""
        machine = self._falling_leader()
        others = [each.host for each in self._fleet.machines if each is not machine]
        if machine is None or len(others) < 2:
            return
        self._world.fault("contested election")
        self._world.note(f"kill {machine.host}, which leads")
        one, other = self._world.random.sample(others, 2)
        block = self._world.loop.create_task(
            self._block("broken pair", [(one, other), (other, one)])
        )
        await self._fall_and_rise(machine)
        await asyncio.wait({block})

    def _falling_leader(self) -> Machine | None:
        machine = self._leader()
        if machine is None or machine in self._troubled | self._paused:
            return None
        return machine if self._power.may_end(machine) else None

    async def _fall_and_rise(self, machine: Machine) -> None:
        """It is back in time to vote for those who stand."""
        self._end(machine)
        await asyncio.sleep(self._seconds(0.5, 2.0))
        self._troubled.discard(machine)
        self._start(machine)

    # Disks and clocks.

    async def _slow_disk(self) -> None:
        machine = self._world.random.choice(self._fleet.machines)
        self._world.fault("slow disk")
        machine.slowness = self._world.random.choice((20.0, 500.0))
        self._world.note(f"the disk of {machine.host} gets slow ({machine.slowness:.0f} x)")
        await asyncio.sleep(self._seconds(4.0, 12.0))
        machine.slowness = 1.0

    async def _jump(self) -> None:
        world = self._world
        machine = world.random.choice(self._fleet.machines)
        step = round(world.random.choice((1e2, 1e4, 1e6)) * (world.random.random() * 2 - 1))
        if abs(machine.clock.ahead_ms + step) < AHEAD_MS_MAX:
            world.fault("clock jump")
            machine.clock.ahead_ms += step
            world.note(f"the clock of {machine.host} jumps by {step} ms")
