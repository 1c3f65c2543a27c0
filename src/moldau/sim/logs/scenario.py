"""A node's logs through one seed: partitions are used in every way while faults occur.

Each step is drawn by weight and changes the real node and the model alike; then the invariants
are checked. A step that a crash or a failed log directory interrupts leaves the model in doubt
between the state before and the state after it; the next restart settles which one holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from moldau.broker.log.log import Log
from moldau.sim.disk import Stopped
from moldau.sim.logs.appending import Appending
from moldau.sim.logs.flushing import Flushing
from moldau.sim.logs.model import CLEAN, KILL, POWER, ModelPartition
from moldau.sim.logs.partitions import Partitions
from moldau.sim.logs.restarts import CLEAN_WITHOUT_POWER, Restarts
from moldau.sim.logs.shortening import Shortening
from moldau.sim.logs.stage import LogStage
from moldau.sim.world import Invariant, World, require

STEPS_MIN = 60
STEPS_MAX = 160

Step = Callable[[], Awaitable[None] | None]


class LogScenario:
    """Draws steps and crashes, and checks the invariants after each."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._random = world.random
        self._stage = stage = LogStage(world)
        self._crash = KILL
        self._restarts = Restarts(world, stage.checker, stage.partitions, stage.configs)
        flushing = Flushing(stage)
        appending = Appending(stage, flushing)
        shortening = Shortening(stage)
        self._partitions = partitions = Partitions(stage)
        steps: list[tuple[float, Step]] = [
            (40, appending.append),
            (4, appending.repeat),
            (5, appending.read),
            (4, appending.move_high_watermark),
            (3, shortening.roll),
            (7, flushing.flush),
            (2, flushing.flush_now),
            (2, flushing.flush_overdue),
            (4, flushing.checkpoint),
            (3, shortening.retain),
            (3, shortening.delete_records),
            (3, shortening.truncate),
            (0.5, shortening.truncate_fully),
            (2, appending.new_leader_epoch),
            (4, partitions.move),
            (3, partitions.clean),
            (1, partitions.recreate),
            (1, partitions.reconfigure),
            (2, partitions.remove_files),
            (4, self._wait),
            (0.6, self._fill_folder),
            (0.6, self._break_folder),
            (2, self._arm_crash),
            (1.5, self._stop_cleanly),
            (1, self._kill),
            (2, self._lose_power),
        ]
        self._weights = [weight for weight, _ in steps]
        self._steps = [step for _, step in steps]

    # Running --------------------------------------------------------------------------

    async def run(self) -> None:
        self._stage.node.start(self._stage.config_for)
        for number in range(self._random.randint(1, 4)):
            self._partitions.create(f"topic{number}", 0)
        for _ in range(self._random.randint(STEPS_MIN, STEPS_MAX)):
            self.world.steps += 1
            await self._step()
        self._crash = POWER
        await self._restart("the end")

    async def _step(self) -> None:
        step = self._random.choices(self._steps, self._weights)[0]
        try:
            outcome = step()
            if outcome is not None:
                await outcome
            # Callbacks and background work come in between steps.
            await asyncio.sleep(self._random.choice((0.0, 0.0, 0.001, 0.01, 1.0)))
        except Stopped:
            pass
        if not self._stage.node.alive:
            await self._restart("stopped in the middle")
            return
        self._check()

    def _check(self) -> None:
        self.world.check_errors()
        self._stage.node.check_tasks()
        for directory in self._stage.node.manager.offline_dirs:
            require(
                directory.path in self._stage.broken,
                Invariant.FAILURES_CONTAINED,
                lambda d=directory: f"{d.path} went offline: {d.failure}",  # type: ignore[misc]
            )
        for partition in self._stage.partitions.values():
            log = self._stage.log(partition)
            if log is not None and not log.offline:
                self._stage.guarded(partition, lambda p=partition, log=log: self._look(p, log))  # type: ignore[misc]

    def _look(self, partition: ModelPartition, log: Log) -> None:
        self._stage.checker.check_offsets(partition, log)
        if self._random.random() < 0.3:
            self._stage.checker.check(partition, log, thorough=self._random.random() < 0.1)

    async def _wait(self) -> None:
        seconds = self._random.choice((1.0, 30.0, 1800.0, 20_000.0))
        self.world.note(f"wait {seconds:g} s")
        await asyncio.sleep(seconds)

    # Faults ---------------------------------------------------------------------------

    def _fill_folder(self) -> None:
        path = self._random.choice(self._stage.paths)
        self.world.fault("disk full")
        self.world.note(f"{path} fills up")
        self._stage.broken.add(path)
        self.world.platter.fill_folder(path + "/", self._random.choice((0, 50, 300, 2000)))

    def _break_folder(self) -> None:
        path = self._random.choice(self._stage.paths)
        self.world.fault("I/O error")
        self.world.note(f"{path} breaks")
        self._stage.broken.add(path)
        self.world.platter.break_folder(path + "/", self._random.randint(0, 60))

    def _arm_crash(self) -> None:
        """Let the crash come in the middle of whatever is done then."""
        self._crash = self._random.choice((KILL, POWER, POWER))
        self.world.platter.stop_after(self._random.choice((0, 1, 2, 3, 5, 8, 13, 30)))

    async def _stop_cleanly(self) -> None:
        self._crash = KILL
        await self._stage.node.stop()
        self.world.platter.stop()
        self._crash = CLEAN
        self.world.fault("clean stop")
        if self.world.chance(0.3):
            self._crash = CLEAN_WITHOUT_POWER
        await self._restart("stopped cleanly")

    async def _kill(self) -> None:
        self._crash = KILL
        self.world.platter.stop()
        await self._restart("killed")

    async def _lose_power(self) -> None:
        self._crash = POWER
        self.world.platter.stop()
        await self._restart("power fails")

    async def _restart(self, why: str) -> None:
        crash, self._crash = self._crash, KILL
        stage = self._stage
        stage.node = await self._restarts.restart(stage.node, stage.paths, stage.broken, crash, why)
