"""Faults planted in the metadata quorum are found, each within 200 seeds that look for its like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from moldau.broker.raft import log as raft_log
from moldau.broker.raft.log import RaftLog
from moldau.broker.raft.machine.election_file import Election
from moldau.broker.raft.machine.quorum import elections
from moldau.broker.raft.machine.quorum.leadership import Leadership
from moldau.broker.raft.machine.quorum.state import QuorumState
from moldau.broker.raft.machine.rpcs import EndOfEpoch
from moldau.sim.quorum import QuorumScenario
from moldau.sim.runner import Outcome, run_seed
from moldau.sim.world import Invariant

SEEDS_MAX = 200
ENDS = {"kill": 10, "kill of all": 4, "power failure": 5, "isolation": 4, "split": 4}
SPLITS = {"isolation": 10, "split": 10, "one-way block": 5, "kill": 5, "pause": 3}
VOTES = {"slow election": 10}
CONTESTS = {"contested election": 10}
POWER = {"power failure of all": 10, "power failure": 5, "slow disk": 5}

Plant = Callable[[pytest.MonkeyPatch], None]


def a_vote_not_remembered(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(QuorumState, "record_vote", lambda self, candidate: None)


def a_vote_not_written(patch: pytest.MonkeyPatch) -> None:
    """In memory only: a restart forgets it."""
    encode = raft_log.encode_election

    def forgetful(election: Election, **more: Any) -> bytes:
        return encode(replace(election, voted=None, leader_id=-1), **more)

    patch.setattr(raft_log, "encode_election", forgetful)


def an_epoch_not_written(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RaftLog, "save_election", lambda self, election, **more: None)


def any_log_gets_the_vote(patch: pytest.MonkeyPatch) -> None:
    may_grant = elections.may_grant

    def generous(*args: Any, up_to_date: bool, **more: Any) -> bool:
        return may_grant(*args, up_to_date=True, **more)

    patch.setattr(elections, "may_grant", generous)


def an_older_epoch_committed_by_counting(patch: pytest.MonkeyPatch) -> None:
    init = Leadership.__init__

    def hasty(self: Leadership, *args: Any, **fields: Any) -> None:
        init(self, *args, **fields)
        self.epoch_start_offset = -1

    patch.setattr(Leadership, "__init__", hasty)


def one_voter_too_few(patch: pytest.MonkeyPatch) -> None:
    def hasty(self: Leadership) -> int:
        return max(max(0, each.end_offset) for each in self._by_id.values())

    patch.setattr(Leadership, "majority_offset", hasty)


def diverging_entries_kept(patch: pytest.MonkeyPatch) -> None:
    def blind(self: RaftLog, epoch: int) -> EndOfEpoch:
        return EndOfEpoch(epoch=epoch, end_offset=self.end_offset)

    patch.setattr(RaftLog, "end_of_epoch", blind)


def acknowledged_before_the_fsync(patch: pytest.MonkeyPatch) -> None:
    async def hasty(self: RaftLog, up_to: int, *, now_ms: int) -> None:
        return None

    patch.setattr(RaftLog, "sync", hasty)


CASES: list[tuple[Plant, dict[str, int], int, set[Invariant]]] = [
    (a_vote_not_remembered, VOTES, 3, {Invariant.QUORUM_LEADER_ONE}),
    (
        a_vote_not_written,
        CONTESTS,
        1,
        {Invariant.QUORUM_VOTE_KEPT, Invariant.QUORUM_LEADER_ONE},
    ),
    (an_epoch_not_written, ENDS, 1, {Invariant.QUORUM_EPOCH_KEPT, Invariant.QUORUM_VOTE_KEPT}),
    (any_log_gets_the_vote, SPLITS, 2, {Invariant.METADATA_SURVIVES}),
    (an_older_epoch_committed_by_counting, ENDS, 1, {Invariant.QUORUM_OWN_EPOCH}),
    (one_voter_too_few, SPLITS, 1, {Invariant.METADATA_SURVIVES}),
    (diverging_entries_kept, SPLITS, 1, {Invariant.QUORUM_COMMIT_AGREES}),
    (acknowledged_before_the_fsync, POWER, 1, {Invariant.METADATA_SURVIVES}),
]


@pytest.mark.parametrize(
    ("plant", "weights", "first_seed", "found_as"), CASES, ids=[case[0].__name__ for case in CASES]
)
def test_a_planted_fault_is_found(
    plant: Plant,
    weights: dict[str, int],
    first_seed: int,
    found_as: set[Invariant],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is looked for in 200 seeds, from one on that is near to where it shows."""

    def run(seed: int) -> Outcome:
        return run_seed(
            seed,
            scenario=lambda world: QuorumScenario(
                world,
                weights=weights,
                falls_after_vote=0.5,
                delay_s=0.3 if weights is VOTES else None,
            ),
        )

    plant(monkeypatch)
    for seed in range(first_seed, first_seed + SEEDS_MAX):
        outcome = run(seed)
        if outcome.invariant is not None:
            break
    else:
        pytest.fail(f"not found in {SEEDS_MAX} seeds")
    assert outcome.invariant in {each.value for each in found_as}, outcome
    monkeypatch.undo()
    again = run(seed)
    assert again.invariant is None, f"seed {seed} fails without the fault, too: {again.detail}"
