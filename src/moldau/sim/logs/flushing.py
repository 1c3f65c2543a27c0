"""Steps that make a log durable: flushes and checkpoints."""

from __future__ import annotations

import asyncio

from moldau.broker.log.log import Log
from moldau.sim.logs.model import ModelPartition
from moldau.sim.logs.stage import LogStage

__all__ = ["Flushing"]

# Longer than any system call in the background takes here, checkpoints that wait included.
SETTLE_S = 25.0


class Flushing:
    """Flushes logs and writes checkpoints; notes in the model what is durable by then."""

    def __init__(self, stage: LogStage) -> None:
        self._stage = stage
        self._world = stage.world
        self._random = stage.world.random

    def flush(self) -> None:
        picked = self._stage.pick()
        if picked is not None:
            partition, log = picked
            self._world.note(f"{partition.name}: flush up to {partition.end}")
            self.request_flush(partition, log, partition.end)

    def request_flush(self, partition: ModelPartition, log: Log, up_to: int) -> None:
        generation = partition.generation

        def acknowledged(error: BaseException | None) -> None:
            if error is None and self._stage.log(partition) is log:
                self._world.note(f"{partition.name}: flushed up to {up_to}")
                partition.note_durable(up_to, generation)

        log.flusher.request(up_to, self._world.now_ms(), acknowledged)

    def flush_now(self) -> None:
        picked = self._stage.pick()
        if picked is None:
            return
        partition, log = picked
        self._world.note(f"{partition.name}: flush in place")
        if self._stage.guarded(partition, lambda: log.flush(now_ms=self._world.now_ms())):
            partition.note_durable(partition.end, partition.generation)

    def flush_overdue(self) -> None:
        self._stage.node.manager.flush_overdue()

    async def checkpoint(self) -> None:
        manager = self._stage.node.manager
        starts = [(p, p.start, p.generation) for p in self._stage.partitions.values()]
        self._world.note("checkpoint")
        manager.checkpoint_recovery_points()
        manager.checkpoint_log_starts()
        manager.checkpoint_high_watermarks()
        if not self._world.chance(0.5):
            return
        await asyncio.sleep(SETTLE_S)
        for partition, start, generation in starts:
            log = self._stage.log(partition)
            if (
                self._stage.node.alive
                and log is not None
                and not log.offline
                and self._stage.partitions.get((partition.topic, partition.index)) is partition
                and partition.generation == generation
            ):
                partition.start_durable = max(partition.start_durable, start)
