"""How the processes of a fleet end and start again: killed, stopped, without power, paused.

Invariants: a machine has one trouble with its process at a time; power fails only where `PowerRule`
allows it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from moldau.sim.disk import Stopped
from moldau.sim.machine import Fleet, Machine
from moldau.sim.world import Violation, World

__all__ = ["FleetLives", "PowerRule", "some_seconds"]

STOP_PATIENCE_S = 15.0
START_PATIENCE_S = 6.0


def some_seconds(world: World, *scales: float) -> float:
    """A random time, up to one of `scales`."""
    return world.random.choice(scales) * world.random.random()


@dataclass(frozen=True, slots=True)
class PowerRule:
    """Which machines may lose power now, as the promise that is checked allows."""

    one: Callable[[Machine], bool]
    all: bool
    """Whether all may lose power at once: whatever is promised has been synced."""
    may_end: Callable[[Machine], bool] = lambda machine: True
    """Whether a process may end now without one."""
    on_lost: Callable[[Machine], None] = lambda machine: None
    """Called before a power failure."""


class FleetLives:
    """Ends processes and brings them back."""

    def __init__(self, fleet: Fleet, power: PowerRule) -> None:
        self._fleet = fleet
        self._world: World = fleet.world
        self._power = power
        self._troubled: set[Machine] = set()
        self._paused: set[Machine] = set()
        self._starting: dict[Machine, asyncio.Task[None]] = {}
        self._stopping: set[asyncio.Task[None]] = set()
        self._over = False

    async def heal(self) -> None:
        """Every process runs again, and none is ended any more."""
        self._over = True
        for machine in self._fleet.machines:
            machine.platter.stop_after(None)
            machine.resume()
        for task in list(self._stopping):
            await asyncio.wait({task})
        for machine in self._fleet.machines:
            if not machine.running and machine not in self._starting:
                self.start(machine)

    def check(self) -> None:
        """Raise what the starting of machines has found."""
        for task in list(self._starting.values()):
            if task.done():
                task.result()

    def may_fall(self, machine: Machine) -> bool:
        """Whether its process may be ended now."""
        free = machine not in self._troubled | self._paused
        return free and self._power.may_end(machine)

    def _idle(self) -> Machine | None:
        """A machine without trouble that may have some."""
        idle = [machine for machine in self._fleet.machines if self.may_fall(machine)]
        return self._world.random.choice(idle) if idle else None

    def start_all(self) -> None:
        for machine in self._fleet.machines:
            self.start(machine)

    def start(self, machine: Machine) -> asyncio.Task[None]:
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
                # It was ended meanwhile, and is brought up again by that fault.
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
        await asyncio.sleep(some_seconds(self._world, *(scales or (0.05, 0.5, 3.0, 12.0))))
        self._troubled.discard(machine)
        task = self.start(machine)
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

    async def kill(self) -> None:
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
            self.start(machine)

    async def kill_inside(self) -> None:
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

    async def kill_all(self) -> None:
        await self._end_all(power=False)

    async def power_failure_of_all(self) -> None:
        await self._end_all(power=True)

    async def _end_all(self, *, power: bool) -> None:
        machines = [each for each in self._fleet.machines if self.may_fall(each)]
        if len(machines) < len(self._fleet.machines):
            return
        self._world.fault("power failure of all" if power else "kill of all")
        lost = sum(self._end(machine, power=power) for machine in machines)
        self._world.note(f"all lose power: {lost} changes lost" if power else "kill all")
        for machine in machines:
            await asyncio.sleep(some_seconds(self._world, 0.1, 1.0))
            self._troubled.discard(machine)
            self.start(machine)

    async def clean_stop(self) -> None:
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

    async def power_failure(self) -> None:
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

    async def pause(self) -> None:
        machine = self._idle()
        if machine is None or not machine.running:
            return
        self._world.fault("pause")
        seconds = some_seconds(self._world, 0.2, 2.0, 6.0, 15.0)
        self._world.note(f"{machine.host} stands still for {seconds:.3f} s")
        self._paused.add(machine)
        machine.pause()
        await asyncio.sleep(seconds)
        machine.resume()
        self._paused.discard(machine)

    async def fall_and_rise(self, machine: Machine) -> None:
        """It is back in time to vote for those who stand."""
        self._end(machine)
        await asyncio.sleep(some_seconds(self._world, 0.5, 2.0))
        self._troubled.discard(machine)
        self.start(machine)
