"""The logs of a broker, current and future, and which of them periodic work has to look at.

A current log may still wait for its first use (`waiting_log.py`): `log` opens it, and what only
needs its place or its offsets takes it as it is.

Invariant: at most one current and one future log per partition.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from typing import TypeAlias, TypeVar

from moldau.broker.log.context import LogDirFailure
from moldau.broker.log.log import Log
from moldau.broker.log.log_dirs import LogDir
from moldau.broker.log.machine.checkpoints import Partition
from moldau.broker.log.machine.names import DELETE_DIR_SUFFIX, suffixed_dir
from moldau.broker.log.removals import Removals
from moldau.broker.log.waiting_log import WaitingLog

NEVER_MS = 2**63 - 1

KnownLog: TypeAlias = Log | WaitingLog
K = TypeVar("K")


class LogRegistry:
    def __init__(self, removals: Removals, new_id: Callable[[], uuid.UUID]) -> None:
        self._removals = removals
        self.new_id = new_id
        self.current: dict[Partition, KnownLog] = {}
        self.future: dict[Partition, Log] = {}
        # Dicts as ordered sets: the order of work must be the same in every simulated run.
        self.timed_flush: dict[Log, None] = {}
        # The current ones that the cleaner looks at, so that it need not iterate over all logs.
        self.compacted: dict[Partition, None] = {}
        # How many current logs each log directory has, by its id(); None: to be counted again.
        self._counts: Counter[int] | None = None

    def log(self, key: Partition) -> Log | None:
        """The current log of a partition, opened if it has waited; LogDirFailure if it cannot be
        opened."""
        known = self.current.get(key)
        if not isinstance(known, WaitingLog):
            return known
        log = known.open()
        self.current[key] = log
        self.note_config(log)
        return log

    def add(self, log: KnownLog) -> None:
        """Add a log, in place of what its partition had."""
        key = log.topic, log.partition
        if isinstance(log, Log) and log.is_future:
            self.future[key] = log
        else:
            self.current[key] = log
            if self._counts is not None:
                self._counts[id(log.dir_state)] += 1
        self.note_config(log)

    def note_config(self, log: KnownLog) -> None:
        if isinstance(log, Log):
            # Of one that waits there is nothing to flush.
            _mark(self.timed_flush, log, log.config.flush_ms < NEVER_MS)
        if not log.is_future:
            _mark(self.compacted, (log.topic, log.partition), log.config.compact)

    def usable(self, keys: Iterable[Partition]) -> Iterator[Log]:
        """Those of the current logs that are in usable log directories."""
        for key in list(keys):
            # It may be gone since the caller got the one before.
            known = self.current.get(key)
            if known is not None and not known.offline:
                with suppress(LogDirFailure):
                    log = self.log(key)
                    if log is not None:
                        yield log

    def of_dir(self, directory: LogDir) -> list[KnownLog]:
        """The current logs in a directory, then the future ones."""
        return [
            *(log for log in self.current.values() if log.dir_state is directory),
            *(log for log in self.future.values() if log.dir_state is directory),
        ]

    def opened_in(self, directory: LogDir) -> list[Log]:
        """As `of_dir`, without those that wait for their first use."""
        return [log for log in self.of_dir(directory) if isinstance(log, Log)]

    def emptiest(self, directories: Collection[LogDir]) -> LogDir:
        """The directory with the fewest current logs, the first of several."""
        if self._counts is None:
            self._counts = Counter(id(log.dir_state) for log in self.current.values())
        counts = self._counts
        return min(directories, key=lambda directory: counts[id(directory)])

    def recount(self) -> None:
        """A current log is removed or has moved."""
        self._counts = None

    def set_aside(self, known: KnownLog, suffix: str, *, sync: bool = False) -> None:
        """Close a log and rename its directory, durably with `sync`; `-delete` is removed later."""
        self.recount()
        if not known.is_future:
            self.compacted.pop((known.topic, known.partition), None)
        if isinstance(known, WaitingLog):
            if known.offline:
                return
            log = known.open()
        else:
            log = known
        self.timed_flush.pop(log, None)
        if log.offline:
            log.close(clean=False)
            return
        name = suffixed_dir(log.topic, log.partition, self.new_id(), suffix)
        log.rename_dir(f"{log.dir_state.path}/{name}", sync=sync)
        log.close(clean=False)
        if suffix == DELETE_DIR_SUFFIX:
            self._removals.directory(log.dir, log.config.file_delete_delay_ms)


def _mark(marked: dict[K, None], key: K, present: bool) -> None:
    if present:
        marked[key] = None
    else:
        marked.pop(key, None)
