"""Steps on whole partitions: created, deleted, reconfigured, moved, compacted."""

from __future__ import annotations

from uuid import UUID

from moldau.broker.log.log import Log
from moldau.broker.log.moves import copy_step
from moldau.sim.logs.model import ModelPartition
from moldau.sim.logs.stage import LogStage
from moldau.sim.logs.workload import random_config

__all__ = ["Partitions"]


class Partitions:
    """Acts on partitions as a whole."""

    def __init__(self, stage: LogStage) -> None:
        self._stage = stage
        self._world = stage.world
        self._random = stage.world.random

    def create(self, topic: str, index: int) -> None:
        config = self._stage.configs.setdefault(topic, random_config(self._random))
        topic_id = UUID(bytes=self._world.bytes_random.randbytes(16), version=4)
        partition = ModelPartition(topic, index, topic_id, config)
        self._stage.partitions[topic, index] = partition
        self._world.note(f"{partition.name}: create")
        self._stage.guarded(partition, lambda: self._open(partition))

    def _open(self, partition: ModelPartition) -> None:
        self._stage.node.manager.create_log(
            partition.topic, partition.index, partition.config, topic_id=partition.topic_id
        )

    def recreate(self) -> None:
        """Delete a topic, mostly to make another of its name."""
        picked = self._stage.pick()
        if picked is None:
            return
        partition, _ = picked
        self._world.note(f"{partition.name}: delete")
        del self._stage.partitions[partition.topic, partition.index]
        done = self._stage.guarded(
            partition, lambda: self._stage.node.manager.delete_log(partition.topic, partition.index)
        )
        if done and self._stage.node.manager.live_dirs:
            if self._world.chance(0.5):
                self._stage.configs[partition.topic] = random_config(self._random)
            self.create(partition.topic, partition.index)

    def reconfigure(self) -> None:
        picked = self._stage.pick()
        if picked is None:
            return
        partition, _ = picked
        config = random_config(self._random)
        if config.compact != partition.config.compact:
            # Only a topic that never was compacted can tell a gap from a loss.
            config = config.replace(cleanup_policy=partition.config.cleanup_policy)
        self._world.note(f"{partition.name}: new configuration")
        self._stage.configs[partition.topic] = partition.config = config
        self._stage.node.manager.update_config(partition.topic, config)

    def move(self) -> None:
        picked = self._stage.pick()
        if picked is None or len(self._stage.node.manager.live_dirs) < 2:
            return
        partition, log = picked
        self._stage.guarded(partition, lambda: self._move_on(partition, log))

    def _move_on(self, partition: ModelPartition, log: Log) -> None:
        manager = self._stage.node.manager
        topic, index = partition.topic, partition.index
        future = self._stage.future(partition)
        if future is not None and (future.offline or self._world.chance(0.1)):
            self._world.note(f"{partition.name}: give the move up")
            manager.drop_future_log(topic, index)
        elif future is None:
            target = self._random.choice([d for d in manager.live_dirs if d is not log.dir_state])
            self._world.note(f"{partition.name}: move to {target.path}")
            manager.create_future_log(topic, index, target)
        elif self._world.chance(0.5):
            copy_step(log, future, now_ms=self._world.now_ms(), max_bytes=500)
        else:
            self._world.note(f"{partition.name}: moved")
            start = manager.replace_by_future_log(topic, index).log_start_offset
            # A crash may have undone a deletion of records that the copy has seen.
            if partition.start < start <= partition.start_max:
                partition.set_start(start)

    def clean(self) -> None:
        picked = self._stage.pick()
        if picked is None or not picked[0].config.compact:
            return
        partition, log = picked
        partition.clean_below = max(partition.clean_below, log.segments.active.base_offset)
        partition.clean_end = partition.end
        self._world.note(f"{partition.name}: compact below {partition.clean_below}")
        self._stage.node.clean_later(partition.topic, partition.index)

    def remove_files(self) -> None:
        self._stage.node.manager.removals.run_due()
