"""What all steps on a node's logs share: the node, the model of its partitions, the checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from moldau.broker.config import LogConfig
from moldau.broker.log.context import LogDirFailure
from moldau.broker.log.log import Log
from moldau.sim.disk import Stopped
from moldau.sim.logs.checks import Checker
from moldau.sim.logs.model import ModelBatch, ModelPartition
from moldau.sim.logs.node import Node
from moldau.sim.logs.workload import Workload
from moldau.sim.world import Invariant, Violation, World, require

__all__ = ["LogStage"]


class LogStage:
    """The real node beside the model of what it should hold."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._random = world.random
        self.workload = Workload(world.random)
        self.checker = Checker(world.random)
        self.paths = [f"/data{n}" for n in range(1, world.random.randint(2, 4))]
        self.partitions: dict[tuple[str, int], ModelPartition] = {}
        self.configs: dict[str, LogConfig] = {}
        #: Log directories that may fail, because their disk is full or broken.
        self.broken: set[str] = set()
        self.node = Node(world, self.paths)

    def config_for(self, topic: str) -> LogConfig:
        return self.configs[topic]

    def log(self, partition: ModelPartition) -> Log | None:
        return self.node.manager.get_log(partition.topic, partition.index)

    def future(self, partition: ModelPartition) -> Log | None:
        """Its copy in another log directory, while it moves there."""
        return self.node.manager.get_future_log(partition.topic, partition.index)

    def pick(self) -> tuple[ModelPartition, Log] | None:
        """A random partition that can be used now, and its log."""
        if not self.partitions:
            return None
        partition = self._random.choice(list(self.partitions.values()))
        log = self.log(partition)
        if log is None or partition.offline:
            return None
        if log.offline:
            self._expect_refusal(partition, log)
            return None
        return partition, log

    def _expect_refusal(self, partition: ModelPartition, log: Log) -> None:
        try:
            log.read(log.log_start_offset, 1, upper_offset=log.log_end_offset, min_one_batch=False)
        except LogDirFailure:
            return
        raise Violation(
            Invariant.FAILURES_CONTAINED, f"{partition.name} reads a failed log directory"
        )

    def guarded(
        self,
        partition: ModelPartition,
        operation: Callable[[], object],
        in_doubt: Sequence[list[ModelBatch]] = (),
    ) -> bool:
        """Run it; False if a failed log directory stopped it, which leaves the outcome in doubt."""
        try:
            operation()
        except Stopped:
            partition.in_doubt += in_doubt
            raise
        except LogDirFailure as failure:
            partition.in_doubt += in_doubt
            problem = f"{partition.name}: {failure.message}"
            require(failure.directory in self.broken, Invariant.FAILURES_CONTAINED, lambda: problem)
            self.world.note(problem)
            return False
        return True
