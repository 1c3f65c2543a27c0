"""The logs of a broker, current and future, and which of them periodic work has to look at.

Invariant: at most one current and one future log per partition.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Collection

from moldau.broker.log.log import Log
from moldau.broker.log.log_dirs import LogDir
from moldau.broker.log.machine.checkpoints import Partition
from moldau.broker.log.machine.names import DELETE_DIR_SUFFIX, suffixed_dir
from moldau.broker.log.removals import Removals

NEVER_MS = 2**63 - 1


class LogRegistry:
    def __init__(self, removals: Removals, new_id: Callable[[], uuid.UUID]) -> None:
        self._removals = removals
        self.new_id = new_id
        self.current: dict[Partition, Log] = {}
        self.future: dict[Partition, Log] = {}
        # Dicts as ordered sets: the order of work must be the same in every simulated run.
        self.timed_flush: dict[Log, None] = {}
        # Those the cleaner looks at, so that it need not iterate over all logs.
        self.compacted: dict[Log, None] = {}
        # How many current logs each log directory has, by its id(); None: to be counted again.
        self._counts: Counter[int] | None = None

    def add(self, log: Log) -> None:
        """Add a log, in place of what its partition had."""
        logs = self.future if log.is_future else self.current
        logs[log.topic, log.partition] = log
        if self._counts is not None and not log.is_future:
            self._counts[id(log.dir_state)] += 1
        self.note_config(log)

    def note_config(self, log: Log) -> None:
        if log.config.flush_ms < NEVER_MS:
            self.timed_flush[log] = None
        else:
            self.timed_flush.pop(log, None)
        if log.config.compact and not log.is_future:
            self.compacted[log] = None
        else:
            self.compacted.pop(log, None)

    def of_dir(self, directory: LogDir) -> list[Log]:
        """The current logs in a directory, then the future ones."""
        return [
            log
            for logs in (self.current, self.future)
            for log in logs.values()
            if log.dir_state is directory
        ]

    def emptiest(self, directories: Collection[LogDir]) -> LogDir:
        """The directory with the fewest current logs, the first of several."""
        if self._counts is None:
            self._counts = Counter(id(log.dir_state) for log in self.current.values())
        counts = self._counts
        return min(directories, key=lambda directory: counts[id(directory)])

    def recount(self) -> None:
        """A current log is removed or has moved."""
        self._counts = None

    def set_aside(self, log: Log, suffix: str, *, sync: bool = False) -> None:
        """Close a log and rename its directory, durably with `sync`; `-delete` is removed later."""
        self.recount()
        self.timed_flush.pop(log, None)
        self.compacted.pop(log, None)
        if log.offline:
            log.close(clean=False)
            return
        name = suffixed_dir(log.topic, log.partition, self.new_id(), suffix)
        log.rename_dir(f"{log.dir_state.path}/{name}", sync=sync)
        log.close(clean=False)
        if suffix == DELETE_DIR_SUFFIX:
            self._removals.directory(log.dir, log.config.file_delete_delay_ms)
