"""Kafka's sticky task assignor: every task on one member, standbys on other processes.

Tasks stay where they were as long as no member gets more than its share; then they go to the
process that had them as standby, then to the one with the least load per member. Invariants: every
active task is assigned once, and no process has two copies of one task. Ties are broken as Kafka
breaks them, by the order of its maps and heaps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from moldau.broker.coordinator.group.machine.streams.hash_order import hash_order
from moldau.broker.coordinator.group.machine.streams.tasks import Tasks

T = TypeVar("T")


class Task(NamedTuple):
    subtopology: str
    partition: int


class TaskMember(NamedTuple):
    """What the assignor asks of a member: where it runs and what it was to have so far."""

    process_id: str
    tasks: Tasks


class TaskGroup(NamedTuple):
    """What the assignor asks of a subtopology."""

    task_count: int
    stateful: bool


def assign(
    members: Mapping[str, TaskMember],
    subtopologies: Mapping[str, TaskGroup],
    standby_replicas: int,
) -> dict[str, Tasks]:
    """The target assignment by member id; every member is in it."""
    if not members:
        return {}
    round_ = _Round(members, subtopologies, standby_replicas)
    round_.assign_active()
    if standby_replicas > 0:
        round_.assign_standby()
    active: dict[str, dict[str, set[int]]] = {member_id: {} for member_id in members}
    standby: dict[str, dict[str, set[int]]] = {member_id: {} for member_id in members}
    for process in round_.processes.values():
        for result, assigned in ((active, process.active), (standby, process.standby)):
            for member_id, task in assigned:
                result[member_id].setdefault(task.subtopology, set()).add(task.partition)
    return {
        member_id: Tasks(_frozen(active[member_id]), _frozen(standby[member_id]))
        for member_id in members
    }


def _frozen(tasks: Mapping[str, set[int]]) -> dict[str, frozenset[int]]:
    return {subtopology: frozenset(partitions) for subtopology, partitions in tasks.items()}


class _Heap(Generic[T]):
    """A binary heap that moves equal entries exactly as Java's PriorityQueue does."""

    def __init__(self, key: Callable[[T], float]) -> None:
        self._key = key
        self._entries: list[T] = []

    def __bool__(self) -> bool:
        return bool(self._entries)

    def add(self, entry: T) -> None:
        entries, key = self._entries, self._key(entry)
        entries.append(entry)
        at = len(entries) - 1
        while at > 0:
            parent = (at - 1) // 2
            if key >= self._key(entries[parent]):
                break
            entries[at] = entries[parent]
            at = parent
        entries[at] = entry

    def poll(self) -> T:
        entries = self._entries
        least = entries[0]
        last = entries.pop()
        if not entries:
            return least
        key, at, count = self._key(last), 0, len(entries)
        while (child := 2 * at + 1) < count:
            right = child + 1
            if right < count and self._key(entries[child]) > self._key(entries[right]):
                child = right
            if key <= self._key(entries[child]):
                break
            entries[at] = entries[child]
            at = child
        entries[at] = last
        return least


@dataclass(slots=True)
class _Process:
    member_ids: list[str]
    """In Kafka's order of iteration."""
    counts: dict[str, int]
    """Tasks of any kind by member id."""
    tasks: set[Task] = field(default_factory=set)
    active: list[tuple[str, Task]] = field(default_factory=list)
    standby: list[tuple[str, Task]] = field(default_factory=list)
    by_load: _Heap[str] | None = None
    load: float = 0.0
    """Tasks per member."""

    def add(self, member_id: str, task: Task, *, active: bool) -> int:
        self.by_load = None
        return self._add(member_id, task, active=active)

    def add_to_least_loaded(self, task: Task, *, active: bool) -> int:
        if self.by_load is None:
            self.by_load = _Heap(self.counts.__getitem__)
            for member_id in self.member_ids:
                self.by_load.add(member_id)
        member_id = self.by_load.poll()
        count = self._add(member_id, task, active=active)
        self.by_load.add(member_id)
        return count

    def _add(self, member_id: str, task: Task, *, active: bool) -> int:
        (self.active if active else self.standby).append((member_id, task))
        self.load = (len(self.active) + len(self.standby)) / len(self.member_ids)
        self.tasks.add(task)
        self.counts[member_id] += 1
        return self.counts[member_id]


class _Quota:
    """How many tasks a member may get: the rest is divided again whenever one has its share."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self.per_member = -(-tasks // members)

    def took(self, count: int) -> None:
        """A member now has `count` tasks."""
        if count == self.per_member:
            self._members -= 1
            self._tasks -= count
            self.per_member = -(-self._tasks // self._members) if self._members else 0


class _Round:
    def __init__(
        self,
        members: Mapping[str, TaskMember],
        subtopologies: Mapping[str, TaskGroup],
        standby_replicas: int,
    ) -> None:
        self._subtopologies = subtopologies
        self._standby_replicas = standby_replicas
        order = hash_order(members)
        self._process_of = {member_id: members[member_id].process_id for member_id in order}
        self.processes = self._make_processes(order)
        self._last_active: dict[Task, str] = {}
        self._last_standby: dict[Task, list[str]] = {}
        for member_id in order:
            tasks = members[member_id].tasks
            for subtopology, partitions in tasks.active.items():
                for partition in partitions:
                    self._last_active[Task(subtopology, partition)] = member_id
            for subtopology, partitions in tasks.standby.items():
                for partition in partitions:
                    task = Task(subtopology, partition)
                    self._last_standby.setdefault(task, []).append(member_id)
        active = sum(each.task_count for each in subtopologies.values())
        stateful = sum(each.task_count for each in subtopologies.values() if each.stateful)
        self._active_quota = _Quota(active, len(members))
        self._quota = _Quota(active + stateful * standby_replicas, len(members))

    def _make_processes(self, order: list[str]) -> dict[str, _Process]:
        by_process: dict[str, list[str]] = {}
        for member_id in order:
            by_process.setdefault(self._process_of[member_id], []).append(member_id)
        processes = {}
        for process_id in hash_order(by_process, len(order)):
            member_ids = hash_order(by_process[process_id])
            processes[process_id] = _Process(member_ids, dict.fromkeys(member_ids, 0))
        return processes

    def _tasks(self, *, stateful_only: bool) -> list[Task]:
        return [
            Task(subtopology, partition)
            for subtopology, group in self._subtopologies.items()
            if group.stateful or not stateful_only
            for partition in range(group.task_count)
        ]

    # Active tasks.

    def assign_active(self) -> None:
        tasks = sorted(self._tasks(stateful_only=False), key=_by_partition)
        tasks = [task for task in tasks if not self._keep_active(task, self._last_active.get(task))]
        tasks = [task for task in tasks if not self._keep_active(task, self._least_standby(task))]
        by_load = self._by_load()
        for task in sorted(tasks):
            process = by_load.poll()
            count = process.add_to_least_loaded(task, active=True)
            self._took_active(count)
            by_load.add(process)

    def _keep_active(self, task: Task, member_id: str | None) -> bool:
        """Give the task to a member that knows it, if its share allows."""
        if member_id is None:
            return False
        process = self._process(member_id)
        if process.counts[member_id] >= self._active_quota.per_member:
            return False
        self._took_active(process.add(member_id, task, active=True))
        return True

    def _took_active(self, count: int) -> None:
        self._active_quota.took(count)
        self._quota.took(count)

    # Standby tasks.

    def assign_standby(self) -> None:
        rest = []
        for task in sorted(self._tasks(stateful_only=True), key=_by_partition, reverse=True):
            for placed in range(self._standby_replicas):
                if not self._keep_standby(task):
                    rest.append((task, self._standby_replicas - placed))
                    break
        by_load = self._by_load()
        for task, replicas in sorted(rest, key=lambda each: each[0], reverse=True):
            for _ in range(replicas):
                if not self._place_standby(task, by_load):
                    # Fewer processes than copies: the task has to do with those there are.
                    break

    def _keep_standby(self, task: Task) -> bool:
        for member_id in (
            self._last_active.get(task),
            self._least_standby(task, without_task=True),
        ):
            if member_id is None:
                continue
            process = self._process(member_id)
            free = process.counts[member_id] < self._quota.per_member
            if free and task not in process.tasks:
                self._quota.took(process.add(member_id, task, active=False))
                return True
        return False

    def _place_standby(self, task: Task, by_load: _Heap[_Process]) -> bool:
        passed = []
        placed = False
        while by_load and not placed:
            process = by_load.poll()
            passed.append(process)
            if task not in process.tasks:
                self._quota.took(process.add_to_least_loaded(task, active=False))
                placed = True
        for process in reversed(passed):
            by_load.add(process)
        return placed

    def _least_standby(self, task: Task, *, without_task: bool = False) -> str | None:
        """Of the members that had the task as standby one with little load."""
        member_ids = self._last_standby.get(task)
        if not member_ids:
            return None
        first = candidate = member_ids[0]
        for member_id in member_ids[1:]:
            process, best = self._process(member_id), self._process(candidate)
            if (
                process.load < best.load
                and not (without_task and task in process.tasks)
                and process.counts[member_id] < best.counts[candidate]
            ):
                candidate = member_id
        if without_task and task in self._process(first).tasks:
            # Kafka looks at the first only; then another member is found by load.
            return None
        return candidate

    def _process(self, member_id: str) -> _Process:
        return self.processes[self._process_of[member_id]]

    def _by_load(self) -> _Heap[_Process]:
        heap: _Heap[_Process] = _Heap(lambda process: process.load)
        for process in self.processes.values():
            heap.add(process)
        return heap


def _by_partition(task: Task) -> tuple[int, str]:
    return task.partition, task.subtopology
