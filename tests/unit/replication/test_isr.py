"""Who a leader counts as in sync, and what it asks of the controller."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from moldau.broker.replication.machine.events import (
    Appended,
    CommitUpTo,
    Effect,
    Event,
    FollowerFetched,
    IsrAccepted,
    IsrCommitted,
    IsrRefused,
    ProposeIsr,
    Tick,
)
from moldau.broker.replication.machine.leader import PartitionLeader
from moldau.invariant import InvariantError
from moldau.wire.errors import ApiError, ErrorCode

LAG_MS = 30
LEADER_EPOCH = 7
PARTITION_EPOCH = 20


@dataclass
class Cluster:
    """Brokers 1 to 3, registered with epochs 101 to 103."""

    fenced: set[int] = field(default_factory=set)
    shutting_down: set[int] = field(default_factory=set)
    epochs: dict[int, int] = field(default_factory=lambda: {1: 101, 2: 102, 3: 103})

    def alive_epoch(self, broker_id: int) -> int | None:
        return None if broker_id in self.fenced else self.epochs.get(broker_id)

    def is_shutting_down(self, broker_id: int) -> bool:
        return broker_id in self.shutting_down

    def own_epoch(self) -> int:
        return 101


def _leader(
    isr: set[int],
    *,
    cluster: Cluster | None = None,
    min_isr: int = 1,
    end: int = 10,
    high_watermark: int = 5,
    former: PartitionLeader | None = None,
) -> PartitionLeader:
    return PartitionLeader(
        1,
        replicas=(1, 2, 3),
        isr=frozenset(isr),
        min_insync_replicas=min_isr,
        end_offset=end,
        high_watermark=high_watermark,
        leader_epoch=LEADER_EPOCH,
        partition_epoch=PARTITION_EPOCH,
        now_ms=1000,
        lag_ms_max=lambda: LAG_MS,
        brokers=cluster or Cluster(),
        former=former,
    )


def _fetch(replica_id: int, offset: int, now_ms: int = 1000, **fields: int) -> FollowerFetched:
    return FollowerFetched(
        replica_id=replica_id,
        fetch_offset=offset,
        log_start_offset=fields.get("log_start", 0),
        broker_epoch=fields.get("epoch", 100 + replica_id),
        now_ms=now_ms,
    )


def _propose(*isr: tuple[int, int], partition_epoch: int = PARTITION_EPOCH) -> ProposeIsr:
    return ProposeIsr(LEADER_EPOCH, partition_epoch, isr)


def _accepted(proposal: ProposeIsr, partition_epoch: int, now_ms: int = 1000) -> IsrAccepted:
    return IsrAccepted(
        proposal=proposal,
        leader_epoch=proposal.leader_epoch,
        partition_epoch=partition_epoch,
        isr=proposal.members,
        now_ms=now_ms,
    )


def _run(leader: PartitionLeader, *events: Event) -> list[Effect]:
    """What the last event brings about."""
    effects: list[Effect] = []
    for event in events:
        effects = leader.step(event)
    return effects


BOTH = _propose((1, 101), (2, 102))


@pytest.mark.parametrize(
    ("isr", "events", "effects"),
    [
        pytest.param({1, 2}, [_fetch(2, 8)], [CommitUpTo(8)], id="the slowest in sync decides"),
        pytest.param({1, 2, 3}, [_fetch(2, 8)], [], id="all of them must have it"),
        pytest.param(
            {1, 2, 3}, [_fetch(2, 8), _fetch(3, 7)], [CommitUpTo(7)], id="and then they have"
        ),
        pytest.param({1, 2}, [_fetch(2, 9), _fetch(2, 6)], [], id="the watermark never goes back"),
        pytest.param(
            {1, 2}, [_fetch(2, 8, epoch=-1), _fetch(4, 10)], [], id="strangers count for nothing"
        ),
        pytest.param({1}, [_fetch(2, 10)], [BOTH, CommitUpTo(10)], id="who has all joins"),
        pytest.param(
            {1}, [_fetch(2, 9)], [CommitUpTo(10)], id="not before the epoch's start is reached"
        ),
        pytest.param(
            {1}, [_fetch(2, 10), _fetch(3, 10)], [], id="one change at a time is asked for"
        ),
        pytest.param({1}, [_fetch(2, 10, epoch=99)], [CommitUpTo(10)], id="an older incarnation"),
        pytest.param(
            {1},
            [_fetch(2, 10, epoch=-1)],
            [_propose((1, 101), (2, -1)), CommitUpTo(10)],
            id="a request without an epoch is believed",
        ),
        pytest.param(
            {1, 2},
            [Tick(1031)],
            [_propose((1, 101))],
            id="never heard of since this leader began: out after the lag time",
        ),
        pytest.param({1, 2}, [Tick(1030)], [], id="but not before"),
        pytest.param(
            {1, 2}, [_fetch(2, 10), Tick(9000)], [], id="who is at the end is in sync for ever"
        ),
        pytest.param(
            {1, 2},
            [_fetch(2, 10, 1005), Appended(11), Tick(1036)],
            [_propose((1, 101), partition_epoch=PARTITION_EPOCH)],
            id="the lag counts from when it last had everything",
        ),
        pytest.param(
            {1, 2},
            [_fetch(2, 10, 1005), Appended(11), _fetch(2, 10, 1010), Appended(12)]
            + [_fetch(2, 11, 1030), Tick(1036)],
            [],
            id="always a little behind a steady stream is in sync",
        ),
        pytest.param(
            {1, 2}, [Tick(1031), _fetch(2, 10, 1040)], [CommitUpTo(10)], id="no second proposal"
        ),
    ],
)
def test_step(isr: set[int], events: list[Event], effects: list[Effect]) -> None:
    assert _run(_leader(isr), *events) == effects


@pytest.mark.parametrize("what", ["fenced", "shutting_down"])
def test_a_broker_that_is_leaving_does_not_join(what: str) -> None:
    cluster = Cluster()
    getattr(cluster, what).add(2)
    assert _run(_leader({1}, cluster=cluster), _fetch(2, 10)) == [CommitUpTo(10)]


def test_a_leader_waits_for_who_is_about_to_join() -> None:
    leader = _leader({1})
    assert _run(leader, _fetch(2, 9)) == [CommitUpTo(10)]
    # Seen at what was the end when it asked before, so it is caught up, though not in the ISR.
    leader = _leader({1}, high_watermark=10)
    proposal = _propose((1, 101), (2, 102))
    assert _run(leader, _fetch(2, 10), IsrRefused(proposal, ErrorCode.INELIGIBLE_REPLICA)) == []
    assert leader.appended(12, 1001) == 10
    assert leader.step(Tick(1031)) == [CommitUpTo(12)]


def test_while_a_larger_isr_is_asked_for_it_counts() -> None:
    leader = _leader({1}, high_watermark=10)
    proposal = _propose((1, 101), (2, 102))
    assert leader.step(_fetch(2, 10)) == [proposal]
    assert leader.appended(12, 5000) == 10
    assert leader.step(_fetch(2, 12, 5000)) == [CommitUpTo(12)]
    assert leader.step(_accepted(proposal, PARTITION_EPOCH + 1)) == []
    assert leader.isr == {1, 2}
    assert leader.partition_epoch == PARTITION_EPOCH + 1


def test_while_a_smaller_isr_is_asked_for_the_old_one_counts() -> None:
    leader = _leader({1, 2})
    (proposal,) = leader.step(Tick(1031))
    assert isinstance(proposal, ProposeIsr)
    assert leader.appended(12, 1031) == 5
    assert leader.step(_accepted(proposal, PARTITION_EPOCH + 1, 1040)) == [CommitUpTo(12)]


@pytest.mark.parametrize(
    ("error", "again", "asks_later"),
    [
        (ErrorCode.INELIGIBLE_REPLICA, False, True),
        (ErrorCode.OPERATION_NOT_ATTEMPTED, False, True),
        (ErrorCode.FENCED_LEADER_EPOCH, False, False),
        (ErrorCode.INVALID_UPDATE_VERSION, False, False),
        (ErrorCode.INVALID_REQUEST, False, False),
        (ErrorCode.UNKNOWN_TOPIC_ID, False, False),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False, False),
        (ErrorCode.NEW_LEADER_ELECTED, False, False),
        (ErrorCode.NOT_CONTROLLER, True, False),
        (ErrorCode.UNKNOWN_SERVER_ERROR, True, False),
    ],
)
def test_what_a_refusal_means(error: ErrorCode, again: bool, asks_later: bool) -> None:
    leader = _leader({1}, high_watermark=10)
    proposal = _propose((1, 101), (2, 102))
    assert leader.step(_fetch(2, 10)) == [proposal]
    assert leader.step(IsrRefused(proposal, error)) == ([proposal] if again else [])
    assert (leader.step(_fetch(2, 10, 1001)) == [proposal]) is asks_later


def test_what_the_metadata_log_says_ends_a_proposal() -> None:
    leader = _leader({1}, high_watermark=10)
    (proposal,) = leader.step(_fetch(2, 10))
    assert isinstance(proposal, ProposeIsr)
    newer = IsrCommitted((1, 2, 3), frozenset({1, 3}), PARTITION_EPOCH + 3, 1001)
    assert leader.step(newer) == []
    assert leader.step(_accepted(proposal, PARTITION_EPOCH + 1)) == []
    assert leader.step(IsrRefused(proposal, ErrorCode.NOT_CONTROLLER)) == []
    assert (set(leader.isr), leader.partition_epoch) == ({1, 3}, PARTITION_EPOCH + 3)


def test_the_metadata_log_repeats_what_the_answer_told() -> None:
    leader = _leader({1}, high_watermark=10)
    (proposal,) = leader.step(_fetch(2, 10))
    assert isinstance(proposal, ProposeIsr)
    leader.step(_accepted(proposal, PARTITION_EPOCH + 1))
    (second,) = leader.step(_fetch(3, 10))
    assert second == _propose((1, 101), (2, 102), (3, 103), partition_epoch=PARTITION_EPOCH + 1)
    # Neither the old nor the same news may make the proposed member not count.
    leader.step(IsrCommitted((1, 2, 3), frozenset({1}), PARTITION_EPOCH, 1001))
    leader.step(IsrCommitted((1, 2, 3), frozenset({1, 2}), PARTITION_EPOCH + 1, 1001))
    assert leader.appended(12, 1001) == 10
    assert leader.step(_fetch(2, 12, 9000)) == []


def test_a_follower_cannot_have_more_than_the_leader() -> None:
    with pytest.raises(InvariantError):
        _leader({1, 2}).step(_fetch(2, 11))


def test_a_request_of_a_former_incarnation_is_refused() -> None:
    leader = _leader({1})
    leader.check_follower_epoch(2, 102)
    leader.check_follower_epoch(2, -1)
    leader.check_follower_epoch(2, 103)
    with pytest.raises(ApiError) as caught:
        leader.check_follower_epoch(2, 101)
    assert caught.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_below_the_minimum_nothing_is_committed_or_promised() -> None:
    leader = _leader({1, 2}, min_isr=2)
    (proposal,) = leader.step(Tick(1031))
    assert isinstance(proposal, ProposeIsr)
    assert leader.has_enough_in_sync
    assert leader.step(_accepted(proposal, PARTITION_EPOCH + 1, 1031)) == []
    assert not leader.has_enough_in_sync
    assert not leader.has_kept_enough
    # The member that is about to come back counts for what was promised, not for what is.
    assert leader.step(_fetch(2, 10, 1040)) == [
        _propose((1, 101), (2, 102), partition_epoch=PARTITION_EPOCH + 1)
    ]
    assert (leader.has_enough_in_sync, leader.has_kept_enough) == (False, True)


def test_a_leader_that_leads_on_knows_its_followers() -> None:
    former = _leader({1, 2})
    former.step(_fetch(2, 10))
    former.step(_fetch(3, 4))
    assert _run(_leader({1, 2}, former=former), Tick(1000)) == [CommitUpTo(10)]
    assert _run(_leader({1, 2}), Tick(1000)) == []


def test_the_low_watermark_is_that_of_the_living() -> None:
    cluster = Cluster()
    leader = _leader({1, 2, 3}, cluster=cluster)
    assert leader.low_watermark(4) == -1
    leader.step(_fetch(2, 10, log_start=4))
    leader.step(_fetch(3, 10, log_start=2))
    assert leader.low_watermark(4) == 2
    cluster.fenced.add(3)
    assert leader.low_watermark(4) == 4


def test_consumers_are_sent_to_who_is_in_sync_and_has_it() -> None:
    leader = _leader({1, 2})
    leader.step(_fetch(2, 8, log_start=3))
    leader.step(_fetch(3, 8, log_start=3))
    assert [leader.readable_replicas(offset) for offset in (2, 3, 8, 9)] == [[], [2], [2], []]
