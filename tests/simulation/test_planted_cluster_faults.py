"""Faults planted in replication, controller and coordinators of a cluster are found, each within
200 seeds that look for its like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from moldau.broker.coordinator.group.machine.shard import GroupShard
from moldau.broker.coordinator.partition_log import PartitionLog
from moldau.broker.coordinator.runtime import CoordinatorRuntime
from moldau.broker.coordinator.shell import ShardShell
from moldau.broker.log.machine.producer_state import ProducerStates
from moldau.broker.metadata.machine import brokers, elections
from moldau.broker.replication import reading
from moldau.broker.replication.machine.leader import PartitionLeader
from moldau.broker.replication.partition import Partition
from moldau.broker.replication.replica import FollowerReplica
from moldau.broker.transactions.cluster_markers import ClusterMarkers
from moldau.sim.cluster_scenario import CONSUMER, LOGS, TRANSACTIONS, Profile
from moldau.sim.replicated_scenario import ReplicatedScenario
from moldau.sim.runner import Outcome, run_seed
from moldau.sim.world import Invariant
from moldau.wire.errors import ErrorCode

SEEDS_MAX = 200
ENDS = {"kill": 10, "isolation": 6, "pause": 4, "split": 4}
SPLITS = {"isolation": 10, "split": 8, "one-way block": 8, "pause": 4, "kill": 4}
POWER = {"power failure": 10, "isolation": 3, "pause": 3}
#: Replicas fall behind and join again soon.
QUICK = {
    "broker.heartbeat.interval.ms": "300",
    "broker.session.timeout.ms": "900",
    "replica.lag.time.max.ms": "1500",
    "replica.fetch.wait.max.ms": "100",
    "replica.fetch.backoff.ms": "100",
}

Plant = Callable[[pytest.MonkeyPatch], None]


def acknowledged_before_replication(patch: pytest.MonkeyPatch) -> None:
    def hasty(self: Partition, next_offset: int, waiter: Callable[[ErrorCode], None]) -> None:
        waiter(ErrorCode.NONE)

    patch.setattr(Partition, "when_committed", hasty)


def committed_by_the_leader_alone(patch: pytest.MonkeyPatch) -> None:
    def hasty(self: PartitionLeader, now_ms: int) -> int:
        self.high_watermark = max(self.high_watermark, self._end_offset)
        return self.high_watermark

    patch.setattr(PartitionLeader, "_advance", hasty)


def committed_with_too_few_in_sync(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PartitionLeader, "_effective_min_isr", lambda self: 1)


def in_sync_before_it_has_everything(patch: pytest.MonkeyPatch) -> None:
    def hasty(self: PartitionLeader, replica_id: int) -> bool:
        return (
            self._pending is None and replica_id not in self._isr and self._is_eligible(replica_id)
        )

    patch.setattr(PartitionLeader, "_may_join", hasty)


def the_isr_shrinks_without_the_controller(patch: pytest.MonkeyPatch) -> None:
    propose = PartitionLeader._propose

    def hasty(self: PartitionLeader, isr: frozenset[int]) -> Any:
        proposal = propose(self, isr)
        self._isr = self._maximal_isr = isr
        return proposal

    patch.setattr(PartitionLeader, "_propose", hasty)


def led_from_outside_the_isr(patch: pytest.MonkeyPatch) -> None:
    def lenient(partition: Any, draft: Any, acceptable: Any, rules: Any, election: Any) -> Any:
        for replica in (partition.leader, *draft.replicas):
            if acceptable(replica):
                return replica, replica in (draft.isr or draft.elr)
        return -1, True

    patch.setattr(elections, "_elect", lenient)


def a_diverging_log_not_cut(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reading, "diverging_epoch", lambda log, fetch_offset, last_fetched_epoch: None)


def unclean_shutdowns_taken_for_clean(patch: pytest.MonkeyPatch) -> None:
    restart = brokers._records_for_restart

    def trusting(controller: Any, broker: Any, *, clean: bool) -> Any:
        return restart(controller, broker, clean=True)

    patch.setattr(brokers, "_records_for_restart", trusting)


def followers_forget_producers(patch: pytest.MonkeyPatch) -> None:
    append = FollowerReplica.append_fetched

    def forgetful(self: FollowerReplica, records: Any, *, leader_epoch: int) -> int:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(ProducerStates, "record_batch", lambda *args, **fields: None)
            return append(self, records, leader_epoch=leader_epoch)

    patch.setattr(FollowerReplica, "append_fetched", forgetful)


def a_new_coordinator_knows_nothing(patch: pytest.MonkeyPatch) -> None:
    replay = CoordinatorRuntime._replay_log

    async def forgetful(self: Any, shell: ShardShell[Any]) -> None:
        if not isinstance(shell.shard, GroupShard):
            await replay(self, shell)

    patch.setattr(CoordinatorRuntime, "_replay_log", forgetful)


def a_coordinator_answers_before_commit(patch: pytest.MonkeyPatch) -> None:
    def hasty(self: Any, next_offset: int, waiter: Callable[[ErrorCode], None]) -> None:
        waiter(ErrorCode.NONE)

    patch.setattr(PartitionLog, "when_committed", hasty)


def markers_written_by_nobody_else(patch: pytest.MonkeyPatch) -> None:
    """Markers of partitions that other brokers lead are reported as written, but never sent."""
    write_part = ClusterMarkers._write_part

    async def trusting(self: Any, leader: int, marker: Any) -> dict[Any, ErrorCode]:
        if leader == self._calls._brokers.node_id:
            return await write_part(self, leader, marker)
        return dict.fromkeys(marker.partitions, ErrorCode.NONE)

    patch.setattr(ClusterMarkers, "_write_part", trusting)


@dataclass(frozen=True, slots=True)
class Case:
    plant: Plant
    found_as: set[Invariant]
    profile: Profile = field(default_factory=lambda: LOGS)
    weights: dict[str, int] = field(default_factory=lambda: ENDS)
    first_seed: int = 1


CASES = [
    Case(
        acknowledged_before_replication,
        {Invariant.ACKNOWLEDGED_SURVIVES, Invariant.READERS_AGREE, Invariant.NO_DUPLICATES},
    ),
    Case(committed_by_the_leader_alone, {Invariant.IN_SYNC_COMPLETE, Invariant.LEADER_COMPLETE}),
    Case(
        committed_with_too_few_in_sync,
        {Invariant.IN_SYNC_COMPLETE, Invariant.LEADER_COMPLETE},
        weights=SPLITS,
        first_seed=11,
    ),
    Case(
        in_sync_before_it_has_everything,
        {Invariant.IN_SYNC_COMPLETE, Invariant.LEADER_COMPLETE},
        weights=SPLITS,
        first_seed=28,
    ),
    Case(
        the_isr_shrinks_without_the_controller,
        {Invariant.IN_SYNC_COMPLETE, Invariant.LEADER_COMPLETE},
        weights=SPLITS,
        first_seed=4,
    ),
    Case(
        led_from_outside_the_isr,
        {Invariant.LEADER_COMPLETE, Invariant.IN_SYNC_COMPLETE},
        weights=SPLITS,
        first_seed=10,
    ),
    Case(
        a_diverging_log_not_cut,
        {Invariant.REPLICAS_AGREE, Invariant.IN_SYNC_COMPLETE, Invariant.LEADER_COMPLETE},
        weights=SPLITS,
    ),
    Case(
        unclean_shutdowns_taken_for_clean,
        {Invariant.LEADER_COMPLETE, Invariant.IN_SYNC_COMPLETE},
        weights=POWER,
        first_seed=55,
    ),
    Case(followers_forget_producers, {Invariant.NO_DUPLICATES}),
    Case(
        a_new_coordinator_knows_nothing,
        # GROUP_ID_NOT_FOUND for a group that has members is an unexpected error.
        {Invariant.OFFSETS_KEPT, Invariant.OWNED_ONCE, Invariant.NO_SURPRISE},
        profile=CONSUMER,
        first_seed=4,
    ),
    Case(
        a_coordinator_answers_before_commit,
        {Invariant.TRANSACTIONS_ATOMIC, Invariant.SETTLES, Invariant.NO_SURPRISE},
        profile=TRANSACTIONS,
        weights=SPLITS,
        first_seed=37,
    ),
    Case(
        markers_written_by_nobody_else,
        {Invariant.TRANSACTIONS_ATOMIC, Invariant.SETTLES},
        profile=TRANSACTIONS,
        first_seed=3,
    ),
]

#: These show when everything should work again and does not, long after the last fault.
LATE = [case for case in CASES if case.plant is markers_written_by_nobody_else]


def run(case: Case, seed: int) -> Outcome:
    return run_seed(
        seed,
        scenario=lambda world: ReplicatedScenario(
            world, profile=case.profile, weights=case.weights, operator=False, properties=QUICK
        ),
    )


@pytest.mark.slow("seeds are tried until one shows the fault")
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case,
            id=case.plant.__name__,
            marks=[pytest.mark.long("minutes of virtual time")] if case in LATE else [],
        )
        for case in CASES
    ],
)
def test_a_planted_fault_is_found(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked for in 200 seeds, from one on that is near to where it shows.

    A change of the broker moves that place. Where the search takes long, `pytest -rP` prints the
    seed that found the fault, for `first_seed`.
    """
    case.plant(monkeypatch)
    for seed in range(case.first_seed, case.first_seed + SEEDS_MAX):
        outcome = run(case, seed)
        if outcome.invariant is not None:
            break
    else:
        pytest.fail(f"not found in {SEEDS_MAX} seeds")
    print(f"found by seed {seed}, looked for from {case.first_seed}")
    assert outcome.invariant in {each.value for each in case.found_as}, outcome
    monkeypatch.undo()
    again = run(case, seed)
    assert again.invariant is None, f"seed {seed} fails without the fault, too: {again.detail}"
