"""Moving partitions between log directories: future logs and how they replace the current ones.

Invariants: a crash at any point leaves either the current log or a future log that has everything;
a future log of another topic is never promoted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from moldau.broker.log.context import LogContext, LogDirFailure
from moldau.broker.log.loader import open_log
from moldau.broker.log.log import Log
from moldau.broker.log.log_checkpoints import LogCheckpoints
from moldau.broker.log.log_dirs import LogDir
from moldau.broker.log.machine.checkpoints import Partition
from moldau.broker.log.machine.leader_epochs import LeaderEpochs
from moldau.broker.log.machine.names import (
    DELETE_DIR_SUFFIX,
    FUTURE_DIR_SUFFIX,
    partition_dir,
    suffixed_dir,
)
from moldau.broker.log.moves import copy_step
from moldau.broker.log.registry import LogRegistry
from moldau.times import WallMs


class FutureLogs:
    def __init__(
        self,
        context: LogContext,
        registry: LogRegistry,
        checkpoints: LogCheckpoints,
        now_ms: Callable[[], WallMs],
    ) -> None:
        self._context = context
        self._registry = registry
        self._checkpoints = checkpoints
        self._now_ms = now_ms

    def create(self, topic: str, partition: int, directory: LogDir) -> Log:
        """Begin to move a partition to another log directory."""
        key = (topic, partition)
        current = self._current(key)
        if directory.failure is not None:
            raise directory.failure.again()
        known = self._registry.future.get(key)
        if known is not None:
            if known.dir_state is directory:
                return known
            self.drop(topic, partition)
        self._checkpoints.forget(key, directory)
        name = suffixed_dir(topic, partition, self._registry.new_id(), FUTURE_DIR_SUFFIX)
        log = open_log(
            self._context,
            directory,
            f"{directory.path}/{name}",
            topic,
            partition,
            current.config,
            now_ms=self._now_ms(),
            topic_id=current.topic_id,
            log_start_offset=current.log_start_offset,
            is_future=True,
        )
        self._registry.future[key] = log
        return log

    def drop(self, topic: str, partition: int) -> None:
        log = self._registry.future.pop((topic, partition), None)
        if log is not None:
            self._registry.set_aside(log, DELETE_DIR_SUFFIX)

    def replace_current(self, topic: str, partition: int) -> Log:
        """Put the future log, which should have nearly everything, in the current one's place.

        What it lacks is copied first, here and at once: nothing appended since the caller
        last looked may be lost.
        """
        key = (topic, partition)
        current = self._current(key)
        future = self._registry.future[key]
        while not copy_step(current, future, now_ms=self._now_ms()):
            pass
        # Offsets without a batch (a truncated tail) and epochs without one count as well.
        if future.log_end_offset < current.log_end_offset:
            future.log_end_offset = current.log_end_offset
            # After a restart only a segment's name shows it.
            future.roll(self._now_ms())
        future.log_start_offset = max(future.log_start_offset, current.log_start_offset)
        if future.topic_id is None and current.topic_id is not None:
            future.set_topic_id(current.topic_id)
        future.leader_epochs = LeaderEpochs(current.leader_epochs.entries())
        future.write_epochs()
        future.set_high_watermark(current.high_watermark)
        # From here on what was promised of the current log must hold of the future one.
        future.flush(now_ms=self._now_ms())
        self._checkpoints.take_over(future)
        # The old one goes first: a crash between the two leaves the future one alone, and
        # the next start promotes it. The other order would leave two of one name.
        self._registry.set_aside(current, DELETE_DIR_SUFFIX, sync=True)
        self._registry.current[key] = future
        return self._promote(key)

    def _current(self, key: Partition) -> Log:
        log = self._registry.log(key)
        if log is None:
            raise KeyError(key)
        return log

    def _promote(self, key: Partition) -> Log:
        future = self._registry.future.pop(key)
        future.rename_dir(f"{future.dir_state.path}/{partition_dir(*key)}", sync=True)
        future.is_future = False
        self._registry.recount()
        self._registry.add(future)
        return future

    def settle(self, directories: Collection[LogDir]) -> None:
        """Finish or drop, after all logs are loaded, the moves that a stop interrupted."""
        for key, future in list(self._registry.future.items()):
            try:
                self._settle(key, future, directories)
            except LogDirFailure:
                continue

    def _settle(self, key: Partition, future: Log, directories: Collection[LogDir]) -> None:
        """A future log without a current one was about to replace it.

        One of another or an unknown topic is what a crash has left of a deleted topic.
        """
        current = self._registry.current.get(key)
        if current is None:
            if all(directory.failure is None for directory in directories):
                self._promote(key)
        elif current.topic_id != future.topic_id:
            self.drop(*key)
        elif not all(directory.clean_shutdown for directory in directories):
            # Either may have lost what the other has and continued differently: copy again.
            future.truncate_fully_and_start_at(current.log_start_offset, now_ms=self._now_ms())
