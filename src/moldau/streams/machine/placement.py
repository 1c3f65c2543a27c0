"""Decides which member of the group runs which task: the leader of a consumer group asks.

Invariants: every task is active on at most one member, and on exactly one once its former owner has
given it up; members have the same number of tasks, or one more; a task stays where it is while that
allows it; a standby is in another process than its active task.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.streams.machine.subtopologies import TaskId

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberState:
    """What a member says when it joins, with the tasks that it runs."""

    process_id: str
    endpoint: str = ""
    active: frozenset[TaskId] = frozenset()
    standby: frozenset[TaskId] = frozenset()
    #: The member asks all instances of the application to stop.
    shutdown: bool = False

    def encode(self) -> bytes:
        return _encode(
            process=self.process_id,
            endpoint=self.endpoint,
            standby=_texts(self.standby),
            shutdown=self.shutdown,
        )

    @classmethod
    def decode(cls, data: bytes | None, active: Collection[TaskId], member_id: str) -> MemberState:
        """Active tasks are known from the partitions that the member owns."""
        given = _decode(data)
        return cls(
            process_id=str(given.get("process") or member_id),
            endpoint=str(given.get("endpoint") or ""),
            active=frozenset(active),
            standby=_tasks(given.get("standby")),
            shutdown=bool(given.get("shutdown")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTasks:
    """The tasks of an instance, for queries: by its `application.server`."""

    active: frozenset[TaskId] = frozenset()
    standby: frozenset[TaskId] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """What the leader gives a member."""

    active: frozenset[TaskId] = frozenset()
    standby: frozenset[TaskId] = frozenset()
    hosts: Mapping[str, HostTasks] = field(default_factory=dict)
    shutdown: bool = False

    def encode(self) -> bytes:
        return _encode(
            active=_texts(self.active),
            standby=_texts(self.standby),
            hosts={
                name: [_texts(tasks.active), _texts(tasks.standby)]
                for name, tasks in sorted(self.hosts.items())
            },
            shutdown=self.shutdown,
        )

    @classmethod
    def decode(cls, data: bytes | None) -> Placed:
        given = _decode(data)
        hosts = given.get("hosts") or {}
        return cls(
            active=_tasks(given.get("active")),
            standby=_tasks(given.get("standby")),
            hosts={
                name: HostTasks(active=_tasks(active), standby=_tasks(standby))
                for name, (active, standby) in hosts.items()
            },
            shutdown=bool(given.get("shutdown")),
        )


def _texts(tasks: Collection[TaskId]) -> list[str]:
    return [str(task) for task in sorted(tasks)]


def _tasks(texts: Any) -> frozenset[TaskId]:
    return frozenset(TaskId.parse(text) for text in texts or ())


def _encode(**fields: Any) -> bytes:
    return json.dumps({"version": VERSION, **fields}, separators=(",", ":")).encode()


def _decode(data: bytes | None) -> dict[str, Any]:
    """Of a newer version the known fields are read; no data stands for an empty object."""
    found = json.loads(data) if data else {}
    return found if isinstance(found, dict) else {}


def place(
    members: Mapping[str, MemberState],
    tasks: Collection[TaskId],
    *,
    stateful: Collection[TaskId],
    standby_replicas: int = 0,
) -> dict[str, Placed]:
    """Active and standby tasks of every member.

    A task that moves is given to nobody until its owner has given it up and joined again.
    """
    target = _active(members, tasks, frozenset(stateful))
    standbys = _standbys(members, target, stateful, standby_replicas)
    owners = {task: member for member, state in members.items() for task in state.active}
    placed = {
        member: frozenset(task for task in mine if owners.get(task, member) == member)
        for member, mine in target.items()
    }
    hosts = _hosts(members, placed, standbys)
    shutdown = any(state.shutdown for state in members.values())
    return {
        member: Placed(
            active=placed[member], standby=standbys[member], hosts=hosts, shutdown=shutdown
        )
        for member in members
    }


def _active(
    members: Mapping[str, MemberState], tasks: Collection[TaskId], stateful: frozenset[TaskId]
) -> dict[str, set[TaskId]]:
    target: dict[str, set[TaskId]] = {member: set() for member in members}
    if not members:
        return target
    least, more = divmod(len(tasks), len(members))
    # Members that run many tasks keep one more, so that the fewest tasks move.
    by_load = sorted(members, key=lambda member: (-len(members[member].active), member))
    quota = {member: least + (place < more) for place, member in enumerate(by_load)}
    left: list[TaskId] = []
    owners = {task: member for member in by_load for task in members[member].active}
    for task in sorted(tasks, key=lambda task: (task not in stateful, task)):
        owner = owners.get(task)
        if owner is not None and len(target[owner]) < quota[owner]:
            target[owner].add(task)
        else:
            left.append(task)
    for task in left:
        free = [member for member in members if len(target[member]) < quota[member]]
        chosen = min(free, key=lambda member: _preference(members, target, owners, task, member))
        target[chosen].add(task)
    return target


def _preference(
    members: Mapping[str, MemberState],
    target: Mapping[str, set[TaskId]],
    owners: Mapping[TaskId, str],
    task: TaskId,
    member: str,
) -> tuple[Any, ...]:
    """Where a task has state, then where few tasks of its kind are, then where few are at all."""
    process = members[member].process_id
    had_standby = any(
        task in state.standby for state in members.values() if state.process_id == process
    )
    owner = owners.get(task)
    had_active = owner is not None and members[owner].process_id == process
    alike = sum(each.subtopology == task.subtopology for each in target[member])
    return not had_standby, not had_active, alike, len(target[member]), member


def _standbys(
    members: Mapping[str, MemberState],
    target: Mapping[str, set[TaskId]],
    stateful: Collection[TaskId],
    replicas: int,
) -> dict[str, frozenset[TaskId]]:
    found: dict[str, set[TaskId]] = {member: set() for member in members}
    runs_on = {
        task: members[member].process_id for member, mine in target.items() for task in mine
    }
    for task in sorted(task for task in stateful if task in runs_on):
        taken = {runs_on[task]}
        for _ in range(replicas):
            free = [member for member in members if members[member].process_id not in taken]
            if not free:
                break
            chosen = min(
                free,
                key=lambda member: (
                    task not in members[member].standby and task not in members[member].active,
                    len(found[member]),
                    member,
                ),
            )
            found[chosen].add(task)
            taken.add(members[chosen].process_id)
    return {member: frozenset(mine) for member, mine in found.items()}


def _hosts(
    members: Mapping[str, MemberState],
    active: Mapping[str, frozenset[TaskId]],
    standby: Mapping[str, frozenset[TaskId]],
) -> dict[str, HostTasks]:
    found: dict[str, HostTasks] = {}
    for member, state in members.items():
        if state.endpoint:
            before = found.get(state.endpoint, HostTasks())
            found[state.endpoint] = HostTasks(
                active=before.active | active[member], standby=before.standby | standby[member]
            )
    return found
