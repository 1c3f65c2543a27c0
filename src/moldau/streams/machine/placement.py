"""Decides which member of the group runs which task: the leader of a consumer group asks.

Invariants: every task is active on at most one member, and on exactly one once its former owner has
given it up; members have the same number of tasks, or one more, once their processes have the state
for it; a task stays where it is while that allows it; a standby is in another process than its
active task.

As in Kafka Streams' HighAvailabilityTaskAssignor, a task with state moves only to a process that
has the state but for `acceptable_recovery_lag` offsets, as long as another one has it. Until then
its new place gets a warm-up copy, of which there are so many at a time, and the group looks again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from moldau.streams.machine.subtopologies import TaskId

VERSION = 1


class MemberState(NamedTuple):
    """What a member says when it joins, with the tasks that it runs."""

    process_id: str
    endpoint: str = ""
    active: frozenset[TaskId] = frozenset()
    standby: frozenset[TaskId] = frozenset()
    #: How far it has the changelogs of its tasks: the sum of their offsets.
    offsets: Mapping[TaskId, int] = {}
    #: The member asks all instances of the application to stop.
    shutdown: bool = False

    def encode(self) -> bytes:
        return _encode(
            process=self.process_id,
            endpoint=self.endpoint,
            standby=_texts(self.standby),
            offsets={str(task): offset for task, offset in sorted(self.offsets.items())},
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
            offsets={
                TaskId.parse(task): int(offset)
                for task, offset in (given.get("offsets") or {}).items()
            },
            shutdown=bool(given.get("shutdown")),
        )


class HostTasks(NamedTuple):
    """The tasks of an instance, for queries: by its `application.server`."""

    active: frozenset[TaskId] = frozenset()
    standby: frozenset[TaskId] = frozenset()


class Placed(NamedTuple):
    """What the leader gives a member."""

    active: frozenset[TaskId] = frozenset()
    standby: frozenset[TaskId] = frozenset()
    hosts: Mapping[str, HostTasks] = {}
    shutdown: bool = False
    #: Tasks wait for warm-up copies: this member asks for another rebalance after a while.
    probe: bool = False
    #: Others wait for tasks of this member: it asks for another rebalance when it has given them
    #: up. The client does so by itself, but a static member that starts again in between does not
    #: know of it: it comes back to this assignment without a rebalance.
    hands_over: bool = False
    #: Input topics that do not exist (any more): there are no tasks for anybody.
    missing: tuple[str, ...] = ()

    @property
    def again(self) -> str | None:
        """Why the member asks for another rebalance at once, if it does."""
        if self.missing:
            return "source topics are there after all"
        return "other members wait for tasks" if self.hands_over else None

    def encode(self) -> bytes:
        return _encode(
            active=_texts(self.active),
            standby=_texts(self.standby),
            hosts={
                name: [_texts(tasks.active), _texts(tasks.standby)]
                for name, tasks in sorted(self.hosts.items())
            },
            shutdown=self.shutdown,
            probe=self.probe,
            hands_over=self.hands_over,
            missing=list(self.missing),
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
            probe=bool(given.get("probe")),
            hands_over=bool(given.get("hands_over")),
            missing=tuple(given.get("missing") or ()),
        )


class Rules(NamedTuple):
    """What an application wants of its copies; the names are those of its settings."""

    standby_replicas: int = 0
    max_warmup_replicas: int = 2
    acceptable_recovery_lag: int = 10_000


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
    rules: Rules | None = None,
) -> dict[str, Placed]:
    """Active and standby tasks of every member.

    A task that moves is given to nobody until its owner has given it up and joined again.
    """
    rules = rules or Rules()
    owners = {task: member for member, state in members.items() for task in state.active}
    target = _active(members, tasks, frozenset(stateful))
    warmups = _hold_back(members, target, owners, stateful, rules)
    standbys = _standbys(members, target, stateful, rules.standby_replicas)
    standbys = {
        member: mine | (warmups[member] - target[member]) for member, mine in standbys.items()
    }
    placed = {
        member: frozenset(task for task in mine if owners.get(task, member) == member)
        for member, mine in target.items()
    }
    handing_over = {owners[task] for member in target for task in target[member] - placed[member]}
    hosts = _hosts(members, placed, standbys)
    shutdown = any(state.shutdown for state in members.values())
    # One member asks for all of them.
    probes = min((member for member, mine in warmups.items() if mine), default=None)
    return {
        member: Placed(
            active=placed[member],
            standby=standbys[member],
            hosts=hosts,
            shutdown=shutdown,
            probe=member == probes,
            hands_over=member in handing_over,
        )
        for member in members
    }


class _Progress:
    """Which process has how much of a task's state."""

    def __init__(self, members: Mapping[str, MemberState], acceptable_lag: int) -> None:
        self._members = members
        self._acceptable_lag = acceptable_lag
        self._offsets: dict[tuple[str, TaskId], int] = {}
        self._ends: dict[TaskId, int] = {}
        for state in members.values():
            for task, offset in state.offsets.items():
                key = state.process_id, task
                self._offsets[key] = max(offset, self._offsets.get(key, 0))
                self._ends[task] = max(offset, self._ends.get(task, 0))

    def lag(self, member: str, task: TaskId) -> int:
        """Behind the process that has most; threads of a process share its state."""
        have = self._offsets.get((self._members[member].process_id, task), 0)
        return self._ends.get(task, 0) - have

    def has_caught_up(self, member: str, task: TaskId) -> bool:
        return self.lag(member, task) <= self._acceptable_lag


def _hold_back(
    members: Mapping[str, MemberState],
    target: dict[str, set[TaskId]],
    owners: Mapping[TaskId, str],
    stateful: Collection[TaskId],
    rules: Rules,
) -> dict[str, frozenset[TaskId]]:
    """Leave tasks where their state is; the warm-up copies of where they belong."""
    progress = _Progress(members, rules.acceptable_recovery_lag)
    warmups: dict[str, set[TaskId]] = {member: set() for member in members}
    places = {task: member for member, mine in target.items() for task in mine}
    waiting = [
        task
        for task in sorted(stateful)
        if task in places and not progress.has_caught_up(places[task], task)
    ]
    # Those that need the least come first: they free their room soonest.
    waiting.sort(key=lambda task: (progress.lag(places[task], task), task))
    count = 0
    for task in waiting:
        able = [member for member in members if progress.has_caught_up(member, task)]
        if not able:
            continue
        owner = owners.get(task)
        ranked = [
            (each != owner, progress.lag(each, task), len(target[each]), each) for each in able
        ]
        chosen = min(ranked)[-1]
        target[places[task]].discard(task)
        target[chosen].add(task)
        if count < rules.max_warmup_replicas:
            warmups[places[task]].add(task)
            count += 1
    return {member: frozenset(mine) for member, mine in warmups.items()}


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
