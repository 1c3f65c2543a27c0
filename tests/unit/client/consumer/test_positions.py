"""Where a consumer stands in a partition, and what makes it stand elsewhere."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from moldau.client.consumer.machine.positions import (
    EARLIEST,
    LATEST,
    FetchState,
    Position,
    PositionState,
    ResetKind,
    ResetStrategy,
)
from moldau.client.consumer.machine.subscription import SubscriptionKind, SubscriptionState
from moldau.client.errors import IllegalStateError, LogTruncationError
from moldau.client.machine.metadata import EMPTY, ClusterMetadata
from moldau.client.topics import OffsetAndMetadata, TopicPartition
from moldau.wire.messages import MetadataResponse

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
NONE = ResetStrategy(ResetKind.NONE)


def assigned(reset: ResetStrategy = EARLIEST) -> SubscriptionState:
    subscription = SubscriptionState(reset)
    subscription.assign_by_user([A, B])
    return subscription


def picture(leader: int, epoch: int) -> ClusterMetadata:
    partitions = [
        MetadataResponse.MetadataResponsePartition(
            partition_index=index, leader_id=leader, leader_epoch=epoch
        )
        for index in (0, 1)
    ]
    topic = MetadataResponse.MetadataResponseTopic(name="t", partitions=partitions)
    return EMPTY.updated(MetadataResponse(topics=[topic]), complete=True)


def fetching(position: Position) -> PositionState:
    state = PositionState()
    state.seek_validated(position)
    return state


@pytest.mark.parametrize(
    ("act", "state"),
    [
        pytest.param(lambda s: s.seek(Position(5)), FetchState.FETCHING, id="no epoch to compare"),
        pytest.param(
            lambda s: s.seek(Position(5, 1)), FetchState.FETCHING, id="no leader to compare with"
        ),
        pytest.param(
            lambda s: s.seek(Position(5, 1, 1, 2)), FetchState.AWAIT_VALIDATION, id="both known"
        ),
        pytest.param(
            lambda s: s.await_reset(LATEST), FetchState.AWAIT_RESET, id="a reset is asked for"
        ),
        pytest.param(lambda s: s.on_leader(2, 3), FetchState.AWAIT_VALIDATION, id="another leader"),
        pytest.param(
            lambda s: s.on_leader(2, 1), FetchState.FETCHING, id="the same epoch elsewhere"
        ),
        pytest.param(lambda s: s.on_leader(-1, 3), FetchState.FETCHING, id="no leader"),
    ],
)
def test_what_a_partition_waits_for(
    act: Callable[[PositionState], None], state: FetchState
) -> None:
    partition = fetching(Position(10, 1, 1, 1))
    act(partition)
    assert partition.state is state


def test_what_was_fetched_before_a_jump_is_of_no_use() -> None:
    partition = fetching(Position(10, 1, 1, 1))
    for jump in (
        lambda: partition.seek(Position(3)),
        lambda: partition.await_reset(EARLIEST),
        lambda: partition.seek(Position(10, 1, 1, 1)),
        lambda: partition.on_leader(2, 2),
    ):
        partition.buffered_count, partition.fetch_offset = 2, 99
        before = partition.version
        jump()
        assert partition.version > before
        assert partition.buffered_count == 0
        if partition.position is not None:
            assert partition.fetch_offset == partition.position.offset


def test_handing_records_out_is_no_jump() -> None:
    partition = fetching(Position(10, 1, 1, 1))
    before = partition.version
    partition.advance(15, 2)
    assert partition.version == before
    assert partition.position == Position(15, 2, 1, 1)
    partition.advance(16, None)
    assert partition.position == Position(16, 2, 1, 1)


def test_a_partition_is_fetched_only_when_nothing_stands_against_it() -> None:
    partition = fetching(Position(10))
    assert partition.is_fetchable
    for obstacle in ("paused", "pending_revocation", "awaits_listener", "unsubscribed"):
        setattr(partition, obstacle, True)
        assert not partition.is_fetchable
        setattr(partition, obstacle, False)
    partition.await_reset(EARLIEST)
    assert not partition.is_fetchable


def test_strategies() -> None:
    assert EARLIEST.timestamp(1000) == -2
    assert LATEST.timestamp(1000) == -1
    assert ResetStrategy(ResetKind.BY_DURATION, 300).timestamp(1000) == 700
    assert ResetStrategy(ResetKind.BY_DURATION, 3000).timestamp(1000) == 0


def test_partitions_without_a_committed_offset() -> None:
    subscription = assigned()
    assert subscription.unready == {A, B}
    subscription.seek_if_initializing(A, Position(7))
    assert subscription.unready == {B}
    assert subscription.reset_initializing([A, B]) == []
    assert subscription.assignment[B].state is FetchState.AWAIT_RESET
    subscription.complete_reset(B, LATEST, Position(1))
    assert B in subscription.unready
    subscription.complete_reset(B, EARLIEST, Position(2))
    assert subscription.unready == set()
    assert subscription.all_consumed() == {A: OffsetAndMetadata(7), B: OffsetAndMetadata(2)}
    # Late answers count for nothing.
    subscription.seek_if_initializing(A, Position(100))
    subscription.complete_reset(B, EARLIEST, Position(100))
    assert subscription.all_consumed() == {A: OffsetAndMetadata(7), B: OffsetAndMetadata(2)}
    assert assigned(NONE).reset_initializing([A]) == [A]


def to_validate(reset: ResetStrategy) -> tuple[SubscriptionState, Position]:
    subscription = assigned(reset)
    subscription.seek(A, Position(10, 3, 1, 3))
    subscription.assignment[A].complete_validation()
    subscription.on_metadata(picture(leader=2, epoch=4))
    position = subscription.assignment[A].position
    assert position == Position(10, 3, 2, 4)
    assert subscription.assignment[A].state is FetchState.AWAIT_VALIDATION
    return subscription, position


def test_a_log_that_is_the_same_up_to_the_position() -> None:
    subscription, asked = to_validate(EARLIEST)
    assert subscription.complete_validation(A, asked, epoch=3, end_offset=12) is None
    assert subscription.assignment[A].position == asked
    assert A not in subscription.unready


def test_a_log_that_ends_before_the_position() -> None:
    subscription, asked = to_validate(EARLIEST)
    assert subscription.complete_validation(A, asked, epoch=2, end_offset=8) is None
    assert subscription.assignment[A].position == Position(8, 2, 2, 4)
    assert subscription.assignment[A].state is FetchState.FETCHING

    subscription, asked = to_validate(NONE)
    error = subscription.complete_validation(A, asked, epoch=2, end_offset=8)
    assert isinstance(error, LogTruncationError)
    assert error.divergent_offsets == {A: OffsetAndMetadata(8, "", 2)}
    assert A in subscription.unready


def test_a_log_that_does_not_know_the_epoch() -> None:
    subscription, asked = to_validate(EARLIEST)
    assert subscription.complete_validation(A, asked, epoch=-1, end_offset=-1) is None
    assert subscription.assignment[A].state is FetchState.AWAIT_RESET
    subscription, asked = to_validate(NONE)
    error = subscription.complete_validation(A, asked, epoch=-1, end_offset=-1)
    assert isinstance(error, LogTruncationError)
    assert error.divergent_offsets == {A: None}


def test_an_answer_about_a_position_that_was_left() -> None:
    subscription, asked = to_validate(EARLIEST)
    subscription.seek(A, Position(1, None, 2, 4))
    assert subscription.complete_validation(A, asked, epoch=2, end_offset=8) is None
    assert subscription.assignment[A].position == Position(1, None, 2, 4)


def test_kinds_of_subscription_exclude_each_other() -> None:
    subscription = assigned()
    with pytest.raises(IllegalStateError, match="mutually exclusive"):
        subscription.subscribe_topics(["t"], None)
    subscription.unsubscribe()
    assert subscription.kind is SubscriptionKind.NONE
    assert subscription.subscribe_topics(["t"], None)
    assert not subscription.subscribe_topics(["t"], None)
    with pytest.raises(IllegalStateError):
        subscription.subscribe_server_pattern("t.*", None)


def test_partitions_that_stay_assigned_keep_their_positions() -> None:
    subscription = assigned()
    subscription.seek(A, Position(4))
    subscription.assign_by_user([A, TopicPartition("u", 0)])
    assert subscription.assignment[A].position == Position(4)
    assert B not in subscription.assignment
    assert subscription.unready == {TopicPartition("u", 0)}
    first = subscription.assignment[A].version
    subscription.assign_by_user([B])
    subscription.assign_by_user([A, B])
    # It has come back as another, so what was fetched for it before is dropped.
    assert subscription.assignment[A].version != first
    assert subscription.assignment[A].position is None


def test_topics_that_were_unsubscribed_from_are_not_read_on() -> None:
    subscription = SubscriptionState(EARLIEST)
    subscription.subscribe_topics(["t", "u"], None)
    subscription.add_assigned([A], awaits_listener=False)
    subscription.seek(A, Position(0))
    assert subscription.assignment[A].is_fetchable
    subscription.subscribe_topics(["u"], None)
    assert not subscription.assignment[A].is_fetchable
    subscription.subscribe_topics(["t"], None)
    assert subscription.assignment[A].is_fetchable
