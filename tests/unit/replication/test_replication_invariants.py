"""The transition tables of replicas, and violations of invariants, each of which is caught."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from moldau.broker.replication.machine import follower, role
from moldau.broker.replication.machine.events import (
    Appended,
    FollowerFetched,
    IsrAccepted,
    IsrCommitted,
    ProposeIsr,
    Tick,
)
from moldau.broker.replication.machine.follower import FetchedPartition, Fetcher, FetchState, Phase
from moldau.broker.replication.machine.leader import PartitionLeader
from moldau.broker.replication.machine.role import NO_LEADER, PartitionRole, Role
from moldau.invariant import InvariantError
from moldau.times import ELAPSED_ZERO
from moldau.wire.errors import ErrorCode
from support import transition_tables
from support.replication_model import KEY, MemoryLog

NODE, OTHER, EPOCH = 1, 2, 5

# Roles.

CHANGES: dict[Role, Callable[[PartitionRole], object]] = {
    Role.LEADER: lambda each: each.lead(
        NODE, leader_epoch=each.leader_epoch + 1, partition_epoch=each.partition_epoch + 1
    ),
    Role.FOLLOWER: lambda each: each.follow(
        OTHER, leader_epoch=each.leader_epoch + 1, partition_epoch=each.partition_epoch + 1
    ),
    Role.OFFLINE: lambda each: each.stop(ErrorCode.KAFKA_STORAGE_ERROR),
    Role.REMOVED: lambda each: each.stop(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
}


def replica_in(at: Role) -> PartitionRole:
    replica = PartitionRole("t-0")
    if at is not Role.NEW:
        CHANGES[at](replica)
    return replica


@pytest.mark.parametrize(("before", "after"), list(product(Role, CHANGES)))
def test_roles_change_as_the_table_allows(before: Role, after: Role) -> None:
    replica = replica_in(before)
    if after not in role.TRANSITIONS[before]:
        with pytest.raises(InvariantError, match=f"{before.value} and cannot become {after.value}"):
            CHANGES[after](replica)
        assert replica.role is before
        return
    CHANGES[after](replica)
    assert replica.role is after
    assert (replica.error is None) is (after is Role.LEADER)
    assert (replica.read_error is None) is (after in (Role.LEADER, Role.FOLLOWER))


def test_the_readme_shows_the_table_of_roles() -> None:
    assert transition_tables.moves("broker/replication", first_column="role") == {
        each.name: {after.name for after in role.TRANSITIONS[each]} for each in Role
    }


@pytest.mark.parametrize(
    ("leader_epoch", "partition_epoch"),
    [pytest.param(EPOCH - 1, 9, id="leader epoch"), pytest.param(EPOCH, 6, id="partition epoch")],
)
def test_an_epoch_that_goes_back_is_caught(leader_epoch: int, partition_epoch: int) -> None:
    replica = PartitionRole("t-0")
    replica.follow(OTHER, leader_epoch=EPOCH, partition_epoch=7)
    with pytest.raises(InvariantError, match="goes back"):
        replica.follow(OTHER, leader_epoch=leader_epoch, partition_epoch=partition_epoch)


@pytest.mark.parametrize("leader_id", [NODE, NO_LEADER, 3])
def test_two_leaders_in_one_epoch_are_caught(leader_id: int) -> None:
    replica = PartitionRole("t-0")
    replica.follow(OTHER, leader_epoch=EPOCH, partition_epoch=7)
    change = replica.lead if leader_id == NODE else replica.follow
    with pytest.raises(InvariantError, match="two leaders in epoch 5"):
        change(leader_id, leader_epoch=EPOCH, partition_epoch=8)


def test_a_leader_may_learn_of_a_partition_epoch_before_the_metadata_log_has_it() -> None:
    replica = PartitionRole("t-0")
    replica.lead(NODE, leader_epoch=EPOCH, partition_epoch=7)
    replica.isr_changed(9)
    assert not replica.lead(NODE, leader_epoch=EPOCH, partition_epoch=8)
    assert replica.partition_epoch == 9


# The leader.


class AllAlive:
    def alive_epoch(self, broker_id: int) -> int | None:
        return broker_id

    def is_shutting_down(self, broker_id: int) -> bool:
        return False

    def own_epoch(self) -> int:
        return NODE


def leader_of(isr: set[int], *, high_watermark: int = 3, end: int = 5) -> PartitionLeader:
    return PartitionLeader(
        NODE,
        replicas=(1, 2),
        isr=frozenset(isr),
        min_insync_replicas=1,
        end_offset=end,
        high_watermark=high_watermark,
        brokers=AllAlive(),
    )


def test_a_high_watermark_past_the_log_end_is_caught() -> None:
    with pytest.raises(InvariantError, match="the log ends at 5"):
        leader_of({1, 2}, high_watermark=6)
    leader = leader_of({1, 2})
    leader.high_watermark = 6
    with pytest.raises(InvariantError, match="the log ends at 5"):
        leader.step(Tick(ELAPSED_ZERO))


def test_a_log_end_that_goes_back_is_caught() -> None:
    with pytest.raises(InvariantError, match="went back from 5 to 4"):
        leader_of({1}).appended(4)
    with pytest.raises(InvariantError, match="went back from 5 to 4"):
        leader_of({1, 2}).step(Appended(4))


def test_a_follower_ahead_of_its_leader_is_caught() -> None:
    fetched = FollowerFetched(
        replica_id=2, fetch_offset=6, log_start_offset=0, broker_epoch=2, now_ms=ELAPSED_ZERO
    )
    with pytest.raises(InvariantError, match="replica 2 ends at 6, the leader at 5"):
        leader_of({1}).step(fetched)


def test_an_isr_without_the_leader_or_with_others_than_replicas_is_caught() -> None:
    with pytest.raises(InvariantError, match="not in its own ISR"):
        leader_of({2})
    with pytest.raises(InvariantError, match="not among the replicas"):
        leader_of({1, 3})
    with pytest.raises(InvariantError, match="not in its own ISR"):
        leader_of({1}).step(IsrCommitted((1, 2), frozenset({2}), 1))
    with pytest.raises(InvariantError, match="not among the replicas"):
        leader_of({1}).step(IsrCommitted((1, 2), frozenset({1, 3}), 1))


@pytest.mark.parametrize("isr", [{2}, {1, 3}])
def test_an_impossible_isr_in_a_response_is_caught(isr: set[int]) -> None:
    leader = leader_of({1})
    (proposal,) = leader.step(
        FollowerFetched(
            replica_id=2, fetch_offset=5, log_start_offset=0, broker_epoch=2, now_ms=ELAPSED_ZERO
        )
    )[:1]
    assert isinstance(proposal, ProposeIsr)
    accepted = IsrAccepted(
        proposal=proposal,
        leader_epoch=0,
        partition_epoch=1,
        isr=frozenset(isr),
        now_ms=ELAPSED_ZERO,
    )
    with pytest.raises(InvariantError, match="ISR"):
        leader.step(accepted)


def test_a_larger_set_that_counts_without_a_proposal_is_caught() -> None:
    leader = leader_of({1})
    leader._maximal_isr = frozenset({1, 2})
    with pytest.raises(InvariantError, match="no change is proposed"):
        leader.step(Tick(ELAPSED_ZERO))


# The follower.


@pytest.mark.parametrize(("before", "after"), list(product(Phase, Phase)))
def test_phases_change_as_the_table_allows(before: Phase, after: Phase) -> None:
    state = FetchState("t", 0, MemoryLog(), EPOCH)
    state.phase = before
    if after in follower.TRANSITIONS[before]:
        state.enter(after)
        assert state.phase is after
    else:
        with pytest.raises(InvariantError, match=f"{before.value} and cannot become {after.value}"):
            state.enter(after)


def test_the_readme_shows_the_table_of_phases() -> None:
    assert transition_tables.moves("broker/replication", first_column="fetch phase") == {
        each.name: {after.name for after in follower.TRANSITIONS[each]} for each in Phase
    }


class LyingLog(MemoryLog):
    """Does something else than it was asked for after it took the leader's offsets."""

    lie: Callable[[MemoryLog], None] = staticmethod(lambda log: None)

    def take_watermarks(self, *, high_watermark: int, log_start_offset: int) -> None:
        super().take_watermarks(high_watermark=high_watermark, log_start_offset=log_start_offset)
        type(self).lie(self)


def _set_high_watermark(offset: int) -> Callable[[MemoryLog], None]:
    def lie(log: MemoryLog) -> None:
        log.high_watermark = offset

    return lie


@pytest.mark.parametrize(
    ("lie", "message"),
    [
        pytest.param(_set_high_watermark(0), "moved from 1 to 0", id="the high watermark back"),
        pytest.param(_set_high_watermark(9), "moved from 1 to 9", id="the high watermark too far"),
        pytest.param(lambda log: log.cut(1), "now ends at 1", id="the log is shorter"),
        pytest.param(
            lambda log: log.append(EPOCH + 1, 7), "records of epoch 6", id="a later epoch"
        ),
    ],
)
def test_a_copy_that_went_wrong_is_caught(
    lie: Callable[[MemoryLog], None], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = LyingLog(high_watermark=1)
    for value in range(2):
        log.append(EPOCH, value)
    fetcher = Fetcher(backoff_ms=lambda: 10, max_bytes=lambda: 100)
    fetcher.add(KEY, "t", log, leader_epoch=EPOCH)
    assert fetcher.request(ELAPSED_ZERO) is not None
    monkeypatch.setattr(LyingLog, "lie", staticmethod(lie))
    with pytest.raises(InvariantError, match=message):
        fetcher.on_response(
            error=ErrorCode.NONE,
            session_id=0,
            partitions={KEY: FetchedPartition(high_watermark=2, log_start_offset=0)},
            now_ms=ELAPSED_ZERO,
        )


def test_a_log_that_moved_since_the_request_is_caught() -> None:
    log = MemoryLog()
    fetcher = Fetcher(backoff_ms=lambda: 10, max_bytes=lambda: 100)
    fetcher.add(KEY, "t", log, leader_epoch=EPOCH)
    assert fetcher.request(ELAPSED_ZERO) is not None
    log.append(EPOCH, 1)
    with pytest.raises(InvariantError, match="was fetched from 0, but ends at 1"):
        fetcher.on_response(
            error=ErrorCode.NONE,
            session_id=0,
            partitions={KEY: FetchedPartition(high_watermark=0, log_start_offset=0)},
            now_ms=ELAPSED_ZERO,
        )


def test_a_follower_that_goes_back_to_an_older_epoch_is_caught() -> None:
    fetcher = Fetcher(backoff_ms=lambda: 10, max_bytes=lambda: 100)
    fetcher.add(KEY, "t", MemoryLog(), leader_epoch=EPOCH)
    with pytest.raises(InvariantError, match="goes back to leader epoch 4"):
        fetcher.add(KEY, "t", MemoryLog(), leader_epoch=EPOCH - 1)
