"""When a leader calls records committed."""

from __future__ import annotations

import pytest

from moldau.broker.replication.machine.events import (
    Appended,
    CommitUpTo,
    Effect,
    Event,
    IsrCommitted,
    MinIsrChanged,
)
from moldau.broker.replication.machine.leader import PartitionLeader
from moldau.invariant import InvariantError


class NoBrokers:
    """No broker is registered."""

    def alive_epoch(self, broker_id: int) -> int | None:
        return None

    def is_shutting_down(self, broker_id: int) -> bool:
        return False

    def own_epoch(self) -> int:
        return -1


def _leader(
    isr: set[int], *, min_isr: int = 1, replicas: tuple[int, ...] = (1, 2, 3), end: int = 5
) -> PartitionLeader:
    return PartitionLeader(
        1,
        replicas=replicas,
        isr=frozenset(isr),
        min_insync_replicas=min_isr,
        end_offset=end,
        high_watermark=3,
        brokers=NoBrokers(),
    )


@pytest.mark.parametrize(
    ("isr", "min_isr", "event", "effects"),
    [
        pytest.param({1}, 1, Appended(7), [CommitUpTo(7)], id="alone, all is committed"),
        pytest.param({1}, 2, Appended(7), [], id="not below the minimum ISR (KIP-966)"),
        pytest.param({1, 2}, 1, Appended(7), [], id="a follower that has not fetched holds it"),
        pytest.param(
            {1, 2},
            1,
            IsrCommitted((1, 2, 3), frozenset({1})),
            [CommitUpTo(5)],
            id="the laggard left the ISR",
        ),
        pytest.param(
            {1}, 2, IsrCommitted((1,), frozenset({1})), [CommitUpTo(5)], id="one replica is enough"
        ),
        pytest.param({1}, 2, MinIsrChanged(1), [CommitUpTo(5)], id="the minimum was lowered"),
        pytest.param({1}, 1, MinIsrChanged(3), [], id="the minimum was raised"),
    ],
)
def test_step(isr: set[int], min_isr: int, event: Event, effects: list[Effect]) -> None:
    assert _leader(isr, min_isr=min_isr).step(event) == effects


@pytest.mark.parametrize(
    ("isr", "min_isr", "replicas", "enough"),
    [
        ({1}, 1, (1, 2, 3), True),
        ({1}, 2, (1, 2, 3), False),
        ({1, 2}, 2, (1, 2, 3), True),
        ({1}, 5, (1,), True),
    ],
)
def test_whether_acks_all_can_be_promised(
    isr: set[int], min_isr: int, replicas: tuple[int, ...], enough: bool
) -> None:
    assert _leader(isr, min_isr=min_isr, replicas=replicas).has_enough_in_sync is enough


def test_the_fast_step_decides_the_same() -> None:
    for isr in ({1}, {1, 2}):
        for min_isr in (1, 2):
            fast, slow = _leader(isr, min_isr=min_isr), _leader(isr, min_isr=min_isr)
            for end in (6, 6, 9):
                fast.appended(end)
                slow.step(Appended(end))
                assert fast.high_watermark == slow.high_watermark


def test_a_leader_outside_its_isr_is_a_bug() -> None:
    with pytest.raises(InvariantError):
        _leader({2})
    with pytest.raises(InvariantError):
        _leader({1}).step(IsrCommitted((1, 2), frozenset({2})))
