"""Tasks of a streams topology: which of them a member has, should have, or must give up.

A task is a subtopology and a partition. Active tasks process records; standby tasks
keep a copy of the state; warm-up tasks become active once their state is there.
Values are never changed in place, and no subtopology maps to an empty set where
`normal` made the map.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

TaskMap = Mapping[str, frozenset[int]]
"""Partitions by subtopology id."""
EpochMap = Mapping[str, Mapping[int, int]]
"""By subtopology id the partitions, each with the epoch in which it was assigned."""


class TaskIds(Protocol):
    """How every message spells the tasks of one subtopology."""

    subtopology_id: str
    partitions: list[int]


def task_map(ids: Iterable[Any]) -> TaskMap:
    return {each.subtopology_id: frozenset(each.partitions) for each in ids}


def normal(tasks: Mapping[str, frozenset[int]]) -> TaskMap:
    return {subtopology: partitions for subtopology, partitions in tasks.items() if partitions}


def merged(one: TaskMap, other: TaskMap) -> TaskMap:
    return {
        subtopology: one.get(subtopology, frozenset()) | other.get(subtopology, frozenset())
        for subtopology in {*one, *other}
    }


def overlap(one: TaskMap, other: Mapping[str, Iterable[int]]) -> bool:
    return any(
        not partitions.isdisjoint(other.get(subtopology, ()))
        for subtopology, partitions in one.items()
    )


@dataclass(frozen=True, slots=True)
class Tasks:
    """A target assignment, or the tasks that a member reports."""

    active: TaskMap = field(default_factory=dict)
    standby: TaskMap = field(default_factory=dict)
    warmup: TaskMap = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)

    def has_any_of(self, other: AssignedTasks) -> bool:
        return (
            overlap(self.active, other.active)
            or overlap(self.standby, other.standby)
            or overlap(self.warmup, other.warmup)
        )


@dataclass(frozen=True, slots=True)
class AssignedTasks:
    """What a member was given. Epochs of active tasks fence commits of their former owners."""

    active: EpochMap = field(default_factory=dict)
    standby: TaskMap = field(default_factory=dict)
    warmup: TaskMap = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)

    @property
    def active_tasks(self) -> TaskMap:
        return {
            subtopology: frozenset(partitions) for subtopology, partitions in self.active.items()
        }

    def merge(self, other: AssignedTasks) -> AssignedTasks:
        return AssignedTasks(
            {
                subtopology: {
                    **self.active.get(subtopology, {}),
                    **other.active.get(subtopology, {}),
                }
                for subtopology in {*self.active, *other.active}
            },
            merged(self.standby, other.standby),
            merged(self.warmup, other.warmup),
        )


NO_TASKS = Tasks()
NOTHING_ASSIGNED = AssignedTasks()


def owns_only(owned: Iterable[Any] | None, assigned: Mapping[str, Iterable[int]]) -> bool:
    """Whether all that a member says it has was also given to it; silence does not count."""
    if owned is None:
        return False
    return all(
        each.subtopology_id in assigned
        and set(each.partitions) <= set(assigned[each.subtopology_id])
        for each in owned
    )
