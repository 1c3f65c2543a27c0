"""Watches over one instance of an application, and lets things happen to its process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from moldau.sim.clients.actor import Actor
from moldau.sim.clients.groups import fetch_offset
from moldau.sim.clients.history import History
from moldau.sim.cluster import Cluster
from moldau.sim.process import Process
from moldau.sim.streams.application import APPLICATION, REPARTITION
from moldau.sim.streams.instance import SimInstance
from moldau.sim.streams.state import SimDirectory

TopicPartition = tuple[str, int]

#: What happens to a process, by weight.
FATES: Mapping[str, int] = {"killed": 10, "stopped": 4, "paused": 6, "doubled": 3, "spared": 4}
SPANS_S = (0.3, 2.0, 6.0, 15.0)
STOP_S_MAX = 30.0
CHECK_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run draws for all instances of the application."""

    settings: Mapping[str, Any]
    inputs: list[TopicPartition]
    fates: Mapping[str, int]
    #: Chance that a new process finds an empty disk.
    disk_lost: float = 0.15

    @property
    def read(self) -> list[TopicPartition]:
        """Everything that the application consumes."""
        return [*self.inputs, *((REPARTITION, partition) for _, partition in self.inputs)]


class Supervisor(Actor):
    """`run` ends when the application has processed all input and its process has stopped."""

    def __init__(self, cluster: Cluster, history: History, name: str, plan: Plan) -> None:
        super().__init__(cluster, history, name)
        self._plan = plan
        self._boots = 0
        self._process_id = str(UUID(bytes=self.random.randbytes(16), version=4))
        self._directory = SimDirectory(self.random)
        self._instance: SimInstance | None = None
        self._former: list[SimInstance] = []

    async def run(self) -> None:
        await self.rest(1.0)
        try:
            while not self.stopping:
                self._start()
                await self._spend(self.random.choice(SPANS_S))
                if not self.stopping:
                    await self._befall()
            await self._finish()
        finally:
            for each in (*self._former, *([self._instance] if self._instance else ())):
                each.process.die()
            self.wire.close()

    def _start(self) -> None:
        """Start a process unless one runs."""
        instance = self._instance
        if instance is not None and not instance.ended and instance.process.alive:
            return
        if self.random.random() < self._plan.disk_lost:
            self._directory = SimDirectory(self.random)
        self._boots += 1
        process = Process(f"{self.name}/{self._boots}")
        self.note(f"{process.name} starts")
        self._instance = SimInstance(
            self.cluster,
            process,
            self.name,
            self._process_id,
            self._directory.of(process),
            self._plan.settings,
            random=self.random,
            note=self.history.note,
        )

    async def _spend(self, seconds: float) -> None:
        """Some time, unless the run comes to its end or the process to its own."""
        loop = self.cluster.loop
        until = loop.time() + seconds * self.random.random()
        while loop.time() < until and not self.stopping:
            await asyncio.sleep(0.1)
            if self._instance is None or self._instance.ended:
                return

    async def _befall(self) -> None:
        instance = self._instance
        if instance is None or instance.ended:
            return
        fates = self._plan.fates
        fate = self.random.choices(list(fates), list(fates.values()))[0]
        self.cluster.world.fault(f"instance {fate}")
        self.note(f"{instance.process.name} is {fate}")
        match fate:
            case "killed":
                instance.process.die()
                await self.rest(self.random.choice((0.1, 3.0, 12.0)))
            case "stopped":
                await self._stop(instance)
            case "paused":
                await self._pause(instance)
            case "doubled":
                await self._double(instance)

    async def _pause(self, instance: SimInstance) -> None:
        instance.process.pause()
        await asyncio.sleep(self.random.choice((0.5, 5.0, 15.0)) * self.random.random())
        instance.process.resume(self.cluster.loop)

    async def _double(self, instance: SimInstance) -> None:
        """It stands still, another process takes its place, and then it goes on as a zombie.

        The new one has a disk of its own: a folder is locked by the process that uses it.
        """
        instance.process.pause()
        self._former.append(instance)
        self._directory, self._instance = SimDirectory(self.random), None
        self._start()
        await self._spend(self.random.choice((1.0, 5.0, 12.0)))
        instance.process.resume(self.cluster.loop)
        await self._spend(self.random.choice((1.0, 5.0)))
        instance.process.die()
        self._former.remove(instance)

    async def _stop(self, instance: SimInstance) -> None:
        instance.stop()
        for _ in range(round(STOP_S_MAX / 0.1)):
            if instance.ended:
                return
            await asyncio.sleep(0.1)
        self.note(f"{instance.process.name} does not stop and is killed")
        instance.process.die()

    # The end.

    async def _finish(self) -> None:
        """All faults are over: everything must be processed."""
        for instance in (*self._former, *([self._instance] if self._instance else ())):
            instance.process.resume(self.cluster.loop)
        while True:
            self._start()
            if await self._all_read():
                break
            await asyncio.sleep(CHECK_S)
        for instance in self._former:
            instance.process.die()
        if self._instance is not None:
            await self._stop(self._instance)

    async def _all_read(self) -> bool:
        for where in self._plan.read:
            asking = partial(fetch_offset, self, APPLICATION, where, stable=False)
            offset = await self.patiently(asking)
            if not await self._is_end(where, max(offset, 0)):
                return False
        return True

    async def _is_end(self, where: TopicPartition, offset: int) -> bool:
        """Whether nothing comes after an offset, nor may still be committed there."""
        while True:
            fetched = await self.patiently(partial(self.fetch, where, offset, committed=True))
            if fetched.records:
                return False
            if fetched.next_offset <= offset:
                return bool(offset >= fetched.high_watermark)
            offset = fetched.next_offset
