"""The disk of an instance, as far as stores use it: what a commit made durable survives a kill.

The model is that of `streams/stores/disk.py`: writes and the offsets they belong to become durable
together, with a commit that is forced or that comes when enough waits, and nothing else does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from moldau.sim.process import Process
from moldau.streams.machine.subtopologies import TaskId
from moldau.streams.stores._maps import ByteMap, OrderedMap
from moldau.streams.stores._segments import Segments
from moldau.streams.stores.base import Drop, SegmentedMap

#: How often a commit finds that enough waits.
_WRITES = 0.3

Entries = tuple[tuple[bytes, bytes], ...]


@dataclass(slots=True)
class _Durable:
    """What is on disk of a task."""

    checkpoints: dict[str, int] = field(default_factory=dict)
    stores: dict[str, tuple[Entries, int]] = field(default_factory=dict)


class SimDirectory:
    """What an instance keeps from one process to the next."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._tasks: dict[TaskId, _Durable] = {}

    def of(self, process: Process) -> SimStates:
        return SimStates(self._tasks, process, self._random)


class SimStates:
    """`task_factory.TaskStates` of one process."""

    def __init__(self, tasks: dict[TaskId, _Durable], process: Process, random: Random) -> None:
        self._tasks = tasks
        self._process = process
        self._random = random

    def open_task(self, task_id: TaskId) -> SimState:
        durable = self._tasks.setdefault(task_id, _Durable())
        return SimState(durable, self._process, self._random)

    def folder_of(self, task_id: TaskId) -> None:
        """There are no folders."""

    def delete_task(self, task_id: TaskId) -> None:
        if self._process.alive:
            self._tasks.pop(task_id, None)


class SimState:
    """`stores.base.TaskState`."""

    def __init__(self, durable: _Durable, process: Process, random: Random) -> None:
        self._durable = durable
        self._process = process
        self._random = random
        self._storages: dict[str, SimStorage] = {}

    def storage(self, store: str) -> SimStorage:
        entries, observed_ms = self._durable.stores.get(store, ((), -1))
        found = self._storages[store] = SimStorage(entries, observed_ms)
        return found

    def check_format(self, store: str, *, headers: bool) -> None:
        """The programs of simulations do not change their stores."""

    def checkpoint(self, store: str) -> int | None:
        return self._durable.checkpoints.get(store)

    def commit(self, checkpoints: Mapping[str, int], *, force: bool = False) -> None:
        if not self._process.alive or not (force or self._random.random() < _WRITES):
            return
        self._durable.checkpoints = dict(checkpoints)
        self._durable.stores = {
            store: (tuple(each.entries.range()), each.observed_ms)
            for store, each in self._storages.items()
        }

    def close(self) -> None:
        """What was not committed is forgotten."""


class SimStorage:
    """`stores.base.Storage`. Segments are not kept: such stores come from their changelogs."""

    def __init__(self, entries: Entries, observed_ms: int) -> None:
        self.observed_ms = observed_ms
        self.is_used = False
        self.entries = ByteMap()
        for key, value in entries:
            self.entries.put(key, value)

    def map(self) -> OrderedMap:
        self.is_used = True
        return self.entries

    def segments(self, retention_ms: int, drop: Drop) -> SegmentedMap:
        return Segments(retention_ms, drop)
