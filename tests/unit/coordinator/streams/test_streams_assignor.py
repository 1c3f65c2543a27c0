"""The sticky task assignor gives what Kafka's gives, and keeps its promises on any input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.broker.coordinator.group.machine.streams.assignor import TaskGroup, TaskMember, assign
from moldau.broker.coordinator.group.machine.streams.hash_order import hash_order
from moldau.broker.coordinator.group.machine.streams.tasks import Tasks

# Made by Kafka 4.3.0's StickyTaskAssignor, from groups whose members come and go.
VECTORS = json.loads(Path(__file__).with_name("kafka_assignments.json").read_text())


def _tasks(tasks: dict[str, list[int]]) -> dict[str, frozenset[int]]:
    return {key: frozenset(partitions) for key, partitions in tasks.items()}


@pytest.mark.parametrize("vector", VECTORS, ids=range(len(VECTORS)))
def test_equals_kafka(vector: dict[str, Any]) -> None:
    spec = vector["spec"]
    result = assign(
        {
            member: TaskMember(
                each["process"], Tasks(_tasks(each["active"]), _tasks(each["standby"]))
            )
            for member, each in spec["members"].items()
        },
        {key: TaskGroup(*each) for key, each in sorted(spec["subtopologies"].items())},
        spec["standbys"],
    )
    assert result == {
        member: Tasks(_tasks(each["active"]), _tasks(each["standby"]))
        for member, each in vector["result"].items()
    }


def test_order_of_java_maps() -> None:
    # From HashMap itself: beyond single characters the order is not that of the text.
    assert hash_order(["c", "b", "a"]) == ["a", "b", "c"]
    assert hash_order(["10", "9", "11", "0"]) == ["11", "0", "9", "10"]


_MEMBERS = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=3), st.sampled_from("xyz"), min_size=1, max_size=8
)
_SUBTOPOLOGIES = st.dictionaries(
    st.sampled_from("012"), st.tuples(st.integers(1, 7), st.booleans()), min_size=1
)


@given(_MEMBERS, _SUBTOPOLOGIES, st.integers(0, 2))
def test_every_task_once_and_no_process_twice(
    processes: dict[str, str], subtopologies: dict[str, tuple[int, bool]], standbys: int
) -> None:
    groups = {key: TaskGroup(*each) for key, each in sorted(subtopologies.items())}
    members = {member: TaskMember(process, Tasks()) for member, process in processes.items()}
    result = assign(members, groups, standbys)
    again = assign(
        {member: TaskMember(processes[member], result[member]) for member in processes},
        groups,
        standbys,
    )
    for assignment in (result, again):
        active = [
            (key, partition)
            for tasks in assignment.values()
            for key, partitions in tasks.active.items()
            for partition in partitions
        ]
        wanted = [(key, each) for key, group in groups.items() for each in range(group.task_count)]
        assert sorted(active) == sorted(wanted)
        held: dict[str, list[tuple[str, int]]] = {}
        for member, tasks in assignment.items():
            for kind in (tasks.active, tasks.standby):
                held.setdefault(processes[member], []).extend(
                    (key, each) for key, partitions in kind.items() for each in partitions
                )
        assert all(len(tasks) == len(set(tasks)) for tasks in held.values())
        counts = [sum(map(len, tasks.active.values())) for tasks in assignment.values()]
        assert standbys or len(set(processes.values())) > 1 or max(counts) - min(counts) <= 1
    assert {member: tasks.active for member, tasks in again.items()} == {
        member: tasks.active for member, tasks in result.items()
    } or standbys
