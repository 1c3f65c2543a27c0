"""Faults planted in the host of Streams are found, each within 60 seeds that look for its like."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from moldau.client.consumer import ConsumerGroupMetadata
from moldau.sim.runner import Outcome, run_seed
from moldau.sim.streams.scenario import streams_scenario
from moldau.sim.world import Invariant
from moldau.streams.hosts import restoring
from moldau.streams.hosts.hosted_task import HostedTask
from moldau.streams.hosts.settings import StreamsSettings
from moldau.streams.hosts.writing import Writer
from moldau.streams.machine.task import Task
from moldau.streams.machine.task_stores import TaskStores

SEEDS_MAX = 60
KILLS = {"killed": 10, "spared": 2}
ZOMBIES = {"paused": 10, "doubled": 5, "killed": 2}
#: Connections only: it is about instances.
CUTS = {"cuts": 10, "pause": 3}

Plant = Callable[[pytest.MonkeyPatch], None]


def offsets_committed_outside_the_transaction(patch: pytest.MonkeyPatch) -> None:
    def apart(self: Writer, offsets: Any, consumer: Any) -> None:
        if self._in_transaction:
            self._patiently(self.producer.commit_transaction)
            self._in_transaction = False
            self._send = self._send_first
        if offsets:
            self._patiently(lambda: consumer.commit_sync(offsets))

    patch.setattr(Writer, "_commit_transaction", apart)


def committed_before_the_flush(patch: pytest.MonkeyPatch) -> None:
    """What caches hold back is written after the commit that its offsets are in."""
    committed = Task.committed

    def hasty(self: Task) -> Any:
        self.commit_requested = False
        return self.progress.to_commit()

    def late(self: Task, changelog_offsets: Any, *, force: bool = False) -> None:
        committed(self, changelog_offsets, force=force)
        self.flush()

    patch.setattr(Task, "prepare_commit", hasty)
    patch.setattr(Task, "committed", late)


def a_zombie_may_commit(patch: pytest.MonkeyPatch) -> None:
    """No transaction of another process is fenced, and commits do not say whose they are."""
    numbers = itertools.count()
    producer = StreamsSettings.producer

    def unfenced(self: StreamsSettings, client_id: str, transactional_id: str | None) -> Any:
        return producer(self, client_id, f"{transactional_id}-{next(numbers)}")

    commit = Writer._commit_transaction

    class Stranger:
        def group_metadata(self) -> ConsumerGroupMetadata:
            return ConsumerGroupMetadata("app")

    def anonymous(self: Writer, offsets: Any, consumer: Any) -> None:
        commit(self, offsets, Stranger())  # type: ignore[arg-type]

    patch.setattr(StreamsSettings, "producer", unfenced)
    patch.setattr(Writer, "_commit_transaction", anonymous)


def changelog_writes_lost(patch: pytest.MonkeyPatch) -> None:
    collector = Writer.collector
    numbers = itertools.count(1)

    def forgetful(self: Writer, changelogs: frozenset[str], *rest: Any) -> Any:
        collect = collector(self, changelogs, *rest)

        def some(record: Any) -> None:
            if record.topic not in changelogs or next(numbers) % 5:
                collect(record)

        return some

    patch.setattr(Writer, "collector", forgetful)


def restored_from_behind_the_checkpoint(patch: pytest.MonkeyPatch) -> None:
    checkpoint = TaskStores._checkpoint

    def far(self: TaskStores, name: str) -> int | None:
        found = checkpoint(self, name)
        return None if found is None else found + 2

    patch.setattr(TaskStores, "_checkpoint", far)


def not_restored_to_the_end(patch: pytest.MonkeyPatch) -> None:
    ends = restoring._ends

    def near(task: HostedTask, committed: Any, bounds: Any) -> Any:
        found = ends(task, committed, bounds)
        return found and {key: max(0, end - 3) for key, end in found.items()}

    patch.setattr(restoring, "_ends", near)


def stores_not_rolled_back(patch: pytest.MonkeyPatch) -> None:
    """A task that is closed after an abort leaves what was not committed in its stores on disk."""
    close = TaskStores.close

    def keeping(self: TaskStores) -> None:
        self.checkpoint({}, force=True)
        close(self)

    patch.setattr(TaskStores, "close", keeping)


def checkpointed_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    prepare = HostedTask.prepare_commit

    def hasty(self: HostedTask) -> Any:
        found = prepare(self)
        self.checkpoint()
        return found

    patch.setattr(HostedTask, "prepare_commit", hasty)


def aborted_records_read(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StreamsSettings, "isolation_level", "read_uncommitted")


@dataclass(frozen=True, slots=True)
class Case:
    plant: Plant
    fates: Mapping[str, int] = field(default_factory=lambda: KILLS)
    settings: Mapping[str, Any] = field(default_factory=dict)


#: Each takes some seconds of computing; the first one shows that the simulator finds anything.
SHORT = 1
CASES = [
    Case(offsets_committed_outside_the_transaction),
    Case(committed_before_the_flush, settings={"statestore.cache.max.bytes": 100_000}),
    Case(a_zombie_may_commit, ZOMBIES),
    Case(changelog_writes_lost),
    Case(restored_from_behind_the_checkpoint),
    Case(not_restored_to_the_end),
    Case(stores_not_rolled_back, ZOMBIES),
    Case(checkpointed_before_the_commit),
    Case(aborted_records_read),
]


def run(case: Case, seed: int) -> Outcome:
    return run_seed(
        seed,
        scenario=lambda world: streams_scenario(
            world, fates=case.fates, faults=CUTS, settings=case.settings, replicated=False
        ),
    )


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case,
            id=case.plant.__name__,
            marks=[pytest.mark.long("seconds of computing each")] if number >= SHORT else [],
        )
        for number, case in enumerate(CASES)
    ],
)
def test_the_planted_fault_is_found(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(1, SEEDS_MAX + 1):
        with monkeypatch.context() as patch:
            case.plant(patch)
            outcome = run(case, seed)
        if outcome.invariant is not None:
            break
    else:
        pytest.fail(f"not found in {SEEDS_MAX} seeds")
    assert outcome.invariant == Invariant.STREAMS_RESULT.value, outcome.detail
    assert run(case, seed).invariant is None, "found, but not because of what was planted"
