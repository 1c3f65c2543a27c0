"""Which worker runs what: Connect's incremental cooperative assignment (KIP-415) and the eager one.

The leader of the group decides. What a worker runs stays there. What a worker that left ran waits
up to `scheduled.rebalance.max.delay.ms` for it to come back. To balance the load, work is first
revoked and given to others in the rebalance that follows, so that no task ever runs twice.
Successive rebalances that revoke again wait longer and longer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from moldau.connect.machine.ids import TaskId
from moldau.connect.machine.protocol import NOTHING, Work

_BACKOFF_BASE = 40
T = TypeVar("T")


@dataclass(slots=True)
class _Load:
    """What one worker is to run."""

    worker: str
    connectors: set[str] = field(default_factory=set)
    tasks: set[TaskId] = field(default_factory=set)

    @property
    def work(self) -> Work:
        return Work(frozenset(self.connectors), frozenset(self.tasks))

    def remove(self, work: Work) -> None:
        self.connectors -= work.connectors
        self.tasks -= work.tasks


@dataclass(frozen=True, slots=True)
class ClusterAssignment:
    """By worker: what is new and what to give up; and how long until the next rebalance."""

    added: dict[str, Work]
    revoked: dict[str, Work]
    delay_ms: int


def eager_assignment(workers: Iterable[str], configured: Work) -> dict[str, Work]:
    """Everything in turn, as the protocol `default` does."""
    names = sorted(workers)
    loads = {name: _Load(name) for name in names}
    connectors = sorted(configured.connectors)
    for index, connector in enumerate(connectors):
        loads[names[index % len(names)]].connectors.add(connector)
    for index, task in enumerate(sorted(configured.tasks), start=len(connectors)):
        loads[names[index % len(names)]].tasks.add(task)
    return {name: load.work for name, load in loads.items()}


class IncrementalAssignor:
    """What the leader remembers between rebalances. Time is an argument."""

    def __init__(self, max_delay_ms: int) -> None:
        self._max_delay_ms = max_delay_ms
        self._previous = NOTHING
        self._previous_revocation = NOTHING
        self._previous_generation = -1
        self._previous_members: frozenset[str] = frozenset()
        self._candidates: set[str] = set()
        self._scheduled_ms = 0
        self._delay_ms = 0
        self._revoked_before = False
        self._successive_revocations = 0

    def assign(
        self,
        configured: Work,
        members: Mapping[str, Work],
        *,
        last_generation: int,
        generation: int,
        now_ms: int,
    ) -> ClusterAssignment:
        """`members` is what each worker runs now."""
        if self._previous_generation != last_generation:
            # Another worker led in between: what this one remembers may be outdated.
            self._previous = NOTHING
        active = _union(members.values())
        if self._previous_revocation:
            if self._previous_revocation & active:
                # Somebody did not give up what was revoked: count from what is really there.
                self._previous = active
            self._previous_revocation = NOTHING
        deleted = self._previous - configured
        duplicated = _duplicates(members.values())
        lost = self._previous - active - deleted
        created = configured - self._previous - active

        revoked: dict[str, Work] = {}
        current = {name: work - deleted for name, work in members.items()}
        loads = [
            _Load(name, set(w.connectors), set(w.tasks)) for name, w in sorted(members.items())
        ]
        for load in loads:
            give_up = load.work & (deleted | duplicated)
            # Also what nobody knows any more, such as after the leader changed.
            give_up = give_up | (load.work - configured)
            if give_up:
                revoked[load.worker] = give_up
                load.remove(give_up)
        to_reassign = self._handle_lost(lost, loads, now_ms)
        self._balance(configured, loads, revoked, now_ms)
        _give(loads, created | to_reassign)

        added = {load.worker: load.work - current[load.worker] for load in loads}
        self._previous = _union(load.work for load in loads) | lost
        taken = _union(revoked.values())
        self._previous_revocation = taken
        self._previous = self._previous - (taken - _union(load.work for load in loads))
        self._previous_generation = generation
        self._previous_members = frozenset(members)
        return ClusterAssignment(added, revoked, self._delay_ms)

    def _balance(
        self, configured: Work, loads: list[_Load], revoked: dict[str, Work], now_ms: int
    ) -> None:
        if self._delay_ms:
            self._revoked_before = False
            return
        too_much = _balancing_revocations(configured, loads)
        if self._revoked_before and too_much:
            self._successive_revocations += 1
            self._delay_ms = self._backoff_ms()
            if self._delay_ms:
                self._scheduled_ms = now_ms + self._delay_ms
                return
        elif too_much:
            self._revoked_before = True
        else:
            self._revoked_before = False
            self._successive_revocations = 0
            return
        for load in loads:
            work = too_much.get(load.worker)
            if work:
                revoked[load.worker] = revoked.get(load.worker, NOTHING) | work
                load.remove(work)

    def _backoff_ms(self) -> int:
        if self._max_delay_ms == 0:
            return 0
        exponent = min(self._successive_revocations, 10)
        return int(min(_BACKOFF_BASE**exponent, self._max_delay_ms))

    def _handle_lost(self, lost: Work, loads: list[_Load], now_ms: int) -> Work:
        """What to give to others now; the rest waits for its worker."""
        if not lost and not self._revoked_before:
            self._reset_delay()
            return NOTHING
        workers = {load.worker for load in loads}
        if self._scheduled_ms <= 0 and workers >= self._previous_members:
            # Nobody left: a worker did not get its assignment.
            return lost
        if self._max_delay_ms == 0:
            return lost
        if 0 < self._scheduled_ms <= now_ms:
            found = self._give_to_candidates(lost, loads)
            self._reset_delay()
            self._revoked_before = False
            return found
        self._candidates |= {load.worker for load in loads if not load.work}
        if now_ms < self._scheduled_ms:
            self._delay_ms = max(self._scheduled_ms - now_ms, 0)
        else:
            self._delay_ms = self._max_delay_ms
        self._scheduled_ms = now_ms + self._delay_ms
        return NOTHING

    def _give_to_candidates(self, lost: Work, loads: list[_Load]) -> Work:
        """To workers that came without work meanwhile: most likely the lost ones, restarted."""
        candidates = [load for load in loads if load.worker in self._candidates]
        if not candidates:
            return lost
        for index, connector in enumerate(sorted(lost.connectors)):
            candidates[index % len(candidates)].connectors.add(connector)
        for index, task in enumerate(sorted(lost.tasks)):
            candidates[index % len(candidates)].tasks.add(task)
        return NOTHING

    def _reset_delay(self) -> None:
        self._candidates.clear()
        self._scheduled_ms = 0
        self._delay_ms = 0


def _union(works: Iterable[Work]) -> Work:
    connectors: set[str] = set()
    tasks: set[TaskId] = set()
    for each in works:
        connectors |= each.connectors
        tasks |= each.tasks
    return Work(frozenset(connectors), frozenset(tasks))


def _duplicates(works: Iterable[Work]) -> Work:
    connectors: Counter[str] = Counter()
    tasks: Counter[TaskId] = Counter()
    for each in works:
        connectors.update(each.connectors)
        tasks.update(each.tasks)
    return Work(
        frozenset(name for name, count in connectors.items() if count > 1),
        frozenset(task for task, count in tasks.items() if count > 1),
    )


def _balancing_revocations(configured: Work, loads: list[_Load]) -> dict[str, Work]:
    """What workers have above the share that everyone could have."""
    if len(loads) < 2:
        return {}
    found: dict[str, Work] = {}
    connectors = _above_share(
        [sorted(load.connectors) for load in loads], len(configured.connectors)
    )
    tasks = _above_share([sorted(load.tasks) for load in loads], len(configured.tasks))
    for load, some_connectors, some_tasks in zip(loads, connectors, tasks, strict=True):
        work = Work(frozenset(some_connectors), frozenset(some_tasks))
        if work:
            found[load.worker] = work
    return found


def _above_share(held: list[list[T]], total: int) -> list[list[T]]:
    share, extra = divmod(total, len(held))
    found = []
    for mine in held:
        allowed = share
        if len(mine) > share and extra > 0:
            # As many workers as there is a remainder may have one more.
            allowed += 1
            extra -= 1
        found.append(mine[allowed:])
    return found


def _give(loads: list[_Load], work: Work) -> None:
    """Each to the worker that has least."""
    for connector in sorted(work.connectors):
        min(loads, key=lambda load: (len(load.connectors), load.worker)).connectors.add(connector)
    for task in sorted(work.tasks):
        min(loads, key=lambda load: (len(load.tasks), load.worker)).tasks.add(task)
