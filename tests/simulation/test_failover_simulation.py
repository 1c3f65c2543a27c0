"""Three nodes in virtual time, at default timeouts: when a node that went away is missed.

A killed process leaves its connections reset and its port refusing; a machine without power, or
behind a blocked way, answers nothing; a cut connection says nothing about either side.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from moldau.sim.cluster import APART, THREE, Cluster, Layout, Node
from moldau.sim.runner import run_seed
from moldau.sim.world import World

SEEDS = (1, 2, 3)
SESSION_S = 9.0
#: What a dead process may cost, notice and election together.
AT_ONCE_S = 1.5
#: A session lasts from the last heartbeat, which is up to an interval old.
AS_SESSION_S = (SESSION_S - 2.5, SESSION_S + 3.0)
NEVER_S = 5.0


class Stage:
    """A cluster that is up, and what a test does to it."""

    def __init__(self, world: World, layout: Layout) -> None:
        self.world = world
        self.cluster = Cluster(world, {}, layout=layout)

    async def start(self) -> None:
        self.cluster.format()
        await asyncio.gather(*(node.start() for node in self.cluster.nodes))
        await self.until(lambda: not any(map(self.is_fenced, self.cluster.brokers)))
        # Brokers that are up have been heard of and looked for by all controllers.
        await asyncio.sleep(5)

    def controller(self) -> Node:
        (active,) = [
            node for node in self.cluster.controllers if node.metadata and node.metadata.is_active
        ]
        return active

    def broker(self) -> Node:
        """One that is not the active controller."""
        active = self.controller()
        return next(node for node in self.cluster.brokers if node is not active)

    def is_fenced(self, node: Node) -> bool:
        image = self.cluster.newest_image()
        broker = None if image is None else image.brokers.get(node.node_id)
        return broker is None or broker.fenced

    async def until(self, condition: Callable[[], bool], seconds_max: float = 60.0) -> float:
        """Virtual seconds until it holds."""
        started = self.world.loop.time()
        while not condition():
            assert self.world.loop.time() - started < seconds_max
            await asyncio.sleep(0.01)
        return self.world.loop.time() - started

    async def fenced_after(self, node: Node, seconds_max: float = 30.0) -> float:
        return await self.until(lambda: self.is_fenced(node), seconds_max)

    async def stays(self, node: Node, seconds: float) -> None:
        until = self.world.loop.time() + seconds
        while self.world.loop.time() < until:
            assert not self.is_fenced(node)
            await asyncio.sleep(0.05)


class Scenario:
    def __init__(self, world: World, layout: Layout, script: Callable[[Stage], object]) -> None:
        self._stage = Stage(world, layout)
        self._script = script

    async def run(self) -> None:
        with self._stage.cluster.watching_the_log():
            await self._stage.start()
            await self._script(self._stage)  # type: ignore[misc]
            self._stage.cluster.check()


def play(seed: int, script: Callable[[Stage], object], layout: Layout = THREE) -> None:
    outcome = run_seed(seed, scenario=lambda world: Scenario(world, layout, script))
    assert outcome.invariant is None, f"{outcome.invariant}: {outcome.detail}"


@pytest.mark.parametrize("layout", [THREE, APART], ids=lambda layout: layout.name)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_killed_broker_is_fenced_at_once(seed: int, layout: Layout) -> None:
    async def script(stage: Stage) -> None:
        victim = stage.broker()
        victim.kill()
        assert await stage.fenced_after(victim) < AT_ONCE_S

    play(seed, script, layout)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_killed_controller_is_replaced_and_its_broker_fenced_at_once(seed: int) -> None:
    async def script(stage: Stage) -> None:
        victim = stage.controller()
        victim.kill()
        assert await stage.fenced_after(victim) < AT_ONCE_S
        assert stage.controller() is not victim

    play(seed, script)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_machine_without_power_is_missed_when_its_session_is_over(seed: int) -> None:
    async def script(stage: Stage) -> None:
        victim = stage.broker()
        victim.lose_power()
        low, high = AS_SESSION_S
        assert low < await stage.fenced_after(victim) < high

    play(seed, script)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_dropped_connection_is_no_death(seed: int) -> None:
    async def script(stage: Stage) -> None:
        victim, net = stage.broker(), stage.cluster.net
        for node in stage.cluster.nodes:
            net.block(victim.host, node.host)
            net.block(node.host, victim.host)
        await stage.stays(victim, NEVER_S)
        net.heal()
        await stage.stays(victim, NEVER_S)

    play(seed, script)


@pytest.mark.parametrize("seed", SEEDS)
def test_reset_and_slow_connections_are_no_death(seed: int) -> None:
    async def script(stage: Stage) -> None:
        victim, net = stage.broker(), stage.cluster.net
        net.delay_long_chance, net.delay_long_s = 0.3, 0.5
        net.cut_chance = 0.3
        await stage.stays(victim, 3.0)
        net.cut_chance = 0.0
        await stage.stays(victim, NEVER_S)

    play(seed, script)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_paused_process_is_no_dead_one(seed: int) -> None:
    async def script(stage: Stage) -> None:
        victim = stage.broker()
        victim.pause()
        await stage.stays(victim, NEVER_S)
        victim.resume()
        await stage.stays(victim, NEVER_S)

    play(seed, script)


@pytest.mark.parametrize("killed", [False, True], ids=["stopped", "killed"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_node_that_returns_registers_at_once(seed: int, killed: bool) -> None:
    async def script(stage: Stage) -> None:
        node = stage.broker()
        if killed:
            node.kill()
        else:
            await node.stop()
        assert stage.is_fenced(node) is not killed
        started = stage.world.loop.time()
        await node.start()
        assert not stage.is_fenced(node)
        assert stage.world.loop.time() - started < AT_ONCE_S

    play(seed, script)
