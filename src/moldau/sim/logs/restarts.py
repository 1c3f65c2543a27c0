"""Stopping in any way, starting again, and what must be there then.

A clean stop keeps everything. A kill keeps everything that was written, the log start back to its
checkpoint. A power failure keeps what was promised: all below an acknowledged flush, and of the
rest a first part. Nothing that was not appended may come back, nor anything damaged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from moldau.broker.config import LogConfig
from moldau.broker.log.context import LogDirFailure
from moldau.broker.log.log import Log
from moldau.broker.log.log_dirs import WrongLogDir
from moldau.sim.disk import Stopped
from moldau.sim.logs.checks import Checker
from moldau.sim.logs.model import CLEAN, KILL, POWER, ModelBatch, ModelPartition
from moldau.sim.logs.node import Node
from moldau.sim.logs.reading import (
    NO_HOLES,
    Found,
    Mismatch,
    check_last_records,
    match,
    read_batches,
)
from moldau.sim.world import Invariant, Violation, World, require

CLEAN_WITHOUT_POWER = "power failure while stopped"
_SEVERITY = ("", CLEAN, KILL, POWER)
_LOSS = {
    CLEAN: Invariant.STOP_KEEPS_ALL,
    KILL: Invariant.WRITTEN_SURVIVES,
    POWER: Invariant.FLUSHED_SURVIVES,
}
CRASHES_IN_RECOVERY_MAX = 3


class _Settled(NamedTuple):
    batches: list[ModelBatch]
    problem: str


class Restarts:
    def __init__(
        self,
        world: World,
        checker: Checker,
        partitions: dict[tuple[str, int], ModelPartition],
        configs: dict[str, LogConfig],
    ) -> None:
        self._world = world
        self._checker = checker
        self._partitions = partitions
        self._configs = configs

    async def restart(
        self, node: Node, paths: list[str], broken: set[str], crash: str, why: str
    ) -> Node:
        """Bring `node` back after `crash` and check everything; the new boot."""
        world = self._world
        world.note(f"{why}: {crash}")
        # A folder that had failed is not left in order even by a clean stop.
        unclean_paths = {d.path for d in node.manager.offline_dirs}
        after_failure = KILL
        if crash == CLEAN_WITHOUT_POWER:
            crash, after_failure = CLEAN, POWER
            world.fault(CLEAN_WITHOUT_POWER)
            world.note(f"{world.platter.lose_power()} changes lost")
        elif crash != CLEAN:
            self._note_promises(node)
            await self._crash(node, crash)
        world.note("start")
        crashes = 0
        while True:
            if world.chance(0.8):
                world.platter.heal()
                broken.clear()
            if crashes < CRASHES_IN_RECOVERY_MAX and world.chance(0.15):
                world.platter.stop_after(world.random.choice((0, 1, 3, 6, 12, 25)))
            started = await self._start(paths)
            if started is not None:
                break
            if world.platter.disk.alive:
                world.platter.heal()
                broken.clear()
                continue
            crashes += 1
            next_crash = world.random.choice((KILL, POWER))
            world.note(f"stopped while starting: {next_crash}")
            await self._crash(node, next_crash)
            crash = max(crash, next_crash, key=_SEVERITY.index)
        world.platter.stop_after(None)
        for partition in self._partitions.values():
            log = node.manager.get_log(partition.topic, partition.index)
            unclean = log is None or log.dir_state.path in unclean_paths
            worst = max(crash, after_failure, key=_SEVERITY.index) if unclean else crash
            partition.crash = max(partition.crash, worst, key=_SEVERITY.index)
        self._settle_all(started)
        return started

    def _note_promises(self, node: Node) -> None:
        for partition in self._partitions.values():
            log = node.manager.get_log(partition.topic, partition.index)
            if log is not None and not log.offline:
                partition.note_recovery_point(log.recovery_point)

    async def _crash(self, node: Node, crash: str) -> None:
        world = self._world
        world.fault(crash)
        if crash == POWER:
            world.note(f"{world.platter.lose_power()} changes lost")
        else:
            world.platter.stop()
        await node.end_tasks()

    async def _start(self, paths: list[str]) -> Node | None:
        node = Node(self._world, paths)
        try:
            node.start(self._config_for)
        except Stopped:
            await node.end_tasks()
            return None
        except WrongLogDir as error:
            problem = f"the start was refused: {error}"
            require(self._world.platter.faulty, Invariant.STARTS, lambda: problem)
            self._world.platter.stop()
            self._world.platter.start()
            return None
        except (Violation, AssertionError):
            raise
        except Exception as error:
            raise Violation(Invariant.STARTS, f"the start failed: {error!r}") from error
        return node

    def _config_for(self, topic: str) -> LogConfig:
        return self._configs[topic]

    # What is there now ------------------------------------------------------------------

    def _settle_all(self, node: Node) -> None:
        manager = node.manager
        faulty = self._world.platter.faulty
        require(
            faulty or not manager.offline_dirs,
            Invariant.STARTS,
            lambda: f"{[str(d.failure) for d in manager.offline_dirs]}",
        )
        for log in list(manager.logs()):
            if (log.topic, log.partition) not in self._partitions:
                # Deleted before the crash, which undid it; a broker deletes it again.
                self._unless_failed(lambda log=log: manager.delete_log(log.topic, log.partition))  # type: ignore[misc]
        for partition in self._partitions.values():
            partition.offline = not self._unless_failed(
                lambda p=partition: self._settle(node, p)  # type: ignore[misc]
            )

    def _unless_failed(self, operation: Callable[[], object]) -> bool:
        try:
            operation()
        except LogDirFailure as failure:
            problem = failure.message
            require(self._world.platter.faulty, Invariant.STARTS, lambda: problem)
            return False
        return True

    def _settle(self, node: Node, partition: ModelPartition) -> None:
        manager = node.manager
        log = manager.get_log(partition.topic, partition.index)
        if log is not None and log.dir_state.failure is not None:
            raise log.dir_state.failure
        if log is not None and log.topic_id not in (None, partition.topic_id):
            self._require_nothing_promised(partition, "an older topic is in its place")
            manager.set_stray(log)
            log = None
        if log is None:
            for directory in manager.offline_dirs:
                if directory.failure is not None:
                    raise directory.failure
            self._require_nothing_promised(partition, "it is gone")
            partition.settle([], 0)
            partition.crash = ""
            partition.before_cuts.clear()
            partition.start = partition.start_durable = partition.high_watermark = 0
            partition.clean_below = 0
            manager.create_log(
                partition.topic, partition.index, partition.config, topic_id=partition.topic_id
            )
            return
        if log.topic_id is None:
            self._require_nothing_promised(partition, "its topic id is lost")
            log.set_topic_id(partition.topic_id)
        self._compare(partition, log, partition.crash)
        partition.high_watermark = log.high_watermark
        partition.crash = ""
        # A leader that was away leads in a new epoch.
        partition.epoch += 1
        self._checker.check(partition, log, thorough=True)
        if self._world.chance(0.7):
            partition.high_watermark = log.set_high_watermark(log.log_end_offset)

    def _require_nothing_promised(self, partition: ModelPartition, problem: str) -> None:
        crash = partition.crash
        promised = partition.promised if crash == POWER else bool(partition.batches)
        require(not promised, _LOSS[crash], lambda: f"{partition.name}: {problem} after a {crash}")

    def _compare(self, partition: ModelPartition, log: Log, crash: str) -> None:
        start, end = log.log_start_offset, log.log_end_offset
        self._check_start(partition, start, crash)
        found = read_batches(log, start, end, 1 << 20)
        candidates = [partition.batches]
        if crash != CLEAN:
            candidates += reversed(partition.in_doubt)
        if crash == POWER:
            candidates += reversed(partition.before_cuts)
        problems: list[str] = []
        for batches in candidates:
            settled = self._try(partition, batches, found, start, end, crash)
            if not settled.problem:
                self._world.note(f"{partition.name}: {start}..{end} after a {crash}")
                partition.settle(settled.batches, end)
                partition.set_start(start)
                return
            problems.append(settled.problem)
        beyond = end > max((c[-1].next_offset for c in candidates if c), default=0)
        if beyond and not partition.end_in_doubt and end > partition.end:
            raise Violation(Invariant.END_NOT_BEYOND, f"{log.dir}: {problems[0]}")
        raise Violation(_LOSS[crash], f"{log.dir}: {' or '.join(dict.fromkeys(problems))}")

    def _holes_from(self, partition: ModelPartition, crash: str) -> int:
        """In a compacted log what a power failure took looks like what cleaning took."""
        return partition.durable if crash == POWER and partition.config.compact else NO_HOLES

    def _check_start(self, partition: ModelPartition, start: int, crash: str) -> None:
        lowest = partition.start if crash == CLEAN else partition.start_durable
        require(
            lowest <= start <= partition.start_max
            or partition.end_in_doubt
            or partition.before_cuts
            or (crash == POWER and not partition.promised),
            Invariant.START_NOT_BACK,
            lambda: (
                f"{partition.name} starts at {start} after a {crash}, was at {partition.start}, "
                f"checkpointed {partition.start_durable}"
            ),
        )

    def _try(
        self,
        partition: ModelPartition,
        batches: Sequence[ModelBatch],
        found: Sequence[Found],
        start: int,
        end: int,
        crash: str,
    ) -> _Settled:
        """Whether the log may hold this after the crash; if so, what the model holds now."""
        try:
            matched = match(partition, batches, found, self._holes_from(partition, crash))
        except Mismatch as mismatch:
            return _Settled([], str(mismatch))
        if batches is partition.batches:
            expected_end = partition.end
        elif batches:
            expected_end = batches[-1].next_offset
        else:
            expected_end = partition.cutting_at or 0
        holes = self._holes_from(partition, crash) < NO_HOLES
        if matched and not holes and end not in (matched[-1].next_offset, partition.empty_end):
            return _Settled([], f"it ends at {end}, its last batch at {matched[-1].last_offset}")
        if crash == POWER:
            kept = {id(batch) for batch in matched}
            for batch in partition.batches:
                if not start < batch.next_offset <= partition.durable or id(batch) in kept:
                    continue
                if batch.base_offset >= partition.clean_below:
                    return _Settled([], f"the flushed batch at {batch.base_offset} is gone")
            if not matched and not partition.end_in_doubt and end > expected_end:
                return _Settled([], f"it is empty and ends at {end}, beyond {expected_end}")
            if end < min(partition.durable, expected_end):
                return _Settled([], f"it ends at {end}, flushed was up to {partition.durable}")
        elif end != expected_end and not partition.end_in_doubt:
            return _Settled([], f"it ends at {end}, written was up to {expected_end}")
        left = [batch for batch in batches if batch.next_offset <= end]
        if holes:
            seen = max(start, partition.durable)
            left = [batch for batch in left if batch.base_offset < seen or batch in matched]
        if partition.clean_below:
            check_last_records(partition, left, found, start, end)
        return _Settled(left, "")
