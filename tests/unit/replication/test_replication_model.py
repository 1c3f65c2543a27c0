"""Leaders and followers on failing nodes lose nothing, and the model would notice if they did."""

from __future__ import annotations

import pytest

from moldau.broker.replication.machine.events import ProposeIsr
from moldau.broker.replication.machine.fetch_session import SessionRequest
from moldau.broker.replication.machine.follower import Fetcher
from moldau.broker.replication.machine.leader import PartitionLeader
from moldau.wire.constants import NO_EPOCH
from support.replication_model import Faults, Model

SEEDS = 30
SEEDS_TO_FIND_A_FAULT = 200


def test_nothing_acknowledged_is_lost() -> None:
    acknowledged = 0
    for seed in range(SEEDS):
        model = Model(seed)
        try:
            model.run()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        acknowledged += len(model.acknowledged)
    assert acknowledged > SEEDS * 20


def test_the_same_seed_gives_the_same_run() -> None:
    first, second = Model(7), Model(7)
    first.run()
    second.run()
    assert (first.acknowledged, first.now_ms) == (second.acknowledged, second.now_ms)


class ExpandsTooEarly(PartitionLeader):
    __slots__ = ()

    def _may_join(self, replica_id: int) -> bool:
        return (
            self._pending is None and replica_id not in self._isr and self._is_eligible(replica_id)
        )


class CommitsItsOwnEnd(PartitionLeader):
    __slots__ = ()

    def _advance(self, now_ms: int) -> int:
        if self.has_enough_in_sync:
            self.high_watermark = max(self.high_watermark, self._end_offset)
        return self.high_watermark


class ForgetsTheMaximalIsr(PartitionLeader):
    """Counts a smaller ISR before the controller has agreed."""

    __slots__ = ()

    def _propose(self, isr: frozenset[int]) -> ProposeIsr:
        proposal = super()._propose(isr)
        self._maximal_isr = isr
        return proposal


class DoesNotTruncate(Fetcher):
    """Asks without saying what it has, so that nobody can tell it that this is wrong."""

    def request(self, now_ms: int) -> SessionRequest | None:
        for state in self._states.values():
            state.last_fetched_epoch = NO_EPOCH
        return super().request(now_ms)


class TruncatesTooLittle(Fetcher):
    """Cuts where the leader's epoch ends, though its own log left that epoch before."""

    @staticmethod
    def _agreed_offset(log: object, leader_epoch: int, end_offset: int) -> int:
        return end_offset


FAULTS = {
    "acknowledging before replication": Faults(acks_before_replication=True),
    "the ISR expanded too early": Faults(leader=ExpandsTooEarly),
    "a smaller ISR counts before the controller agrees": Faults(leader=ForgetsTheMaximalIsr),
    "the high watermark from the leader's own end": Faults(leader=CommitsItsOwnEnd),
    "a follower that does not truncate": Faults(fetcher=DoesNotTruncate),
    "a follower that truncates too little": Faults(fetcher=TruncatesTooLittle),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str) -> None:
    for seed in range(SEEDS_TO_FIND_A_FAULT):
        try:
            Model(seed, FAULTS[fault]).run()
        except AssertionError:
            return
    pytest.fail(f"{fault}: not found in {SEEDS_TO_FIND_A_FAULT} seeds")
