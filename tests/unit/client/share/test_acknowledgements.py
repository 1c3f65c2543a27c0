"""What is said about acquired records, how, and what the application still has."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as some

from moldau.client._records import ConsumerRecord
from moldau.client.errors import IllegalStateError, NotLeaderOrFollowerError
from moldau.client.share.machine.acknowledgements import (
    GAP,
    Acknowledgements,
    AcknowledgeType,
    TopicIdPartition,
)
from moldau.client.share.machine.in_flight import InFlight
from moldau.client.share.machine.session import ShareSession
from moldau.client.topics import TopicPartition
from moldau.wire.errors import ErrorCode

ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType
P0 = TopicIdPartition(UUID(int=7), "t", 0)
P1 = TopicIdPartition(UUID(int=7), "t", 1)


def record(offset: int, partition: TopicIdPartition = P0) -> ConsumerRecord:
    return ConsumerRecord(partition.topic, partition.partition, offset, delivery_count=1)


def in_flight(*offsets: int) -> InFlight:
    found = InFlight()
    found.add(P0, 1, map(record, offsets), Acknowledgements())
    return found


@pytest.mark.parametrize(
    ("types", "batches"),
    [
        pytest.param({5: ACCEPT}, [(5, 5, [1])], id="one"),
        pytest.param({5: ACCEPT, 6: ACCEPT}, [(5, 6, [1])], id="the same type is said once"),
        pytest.param({5: ACCEPT, 6: REJECT}, [(5, 6, [1, 3])], id="types one by one"),
        pytest.param({5: ACCEPT, 7: ACCEPT}, [(5, 5, [1]), (7, 7, [1])], id="not neighbours"),
        pytest.param({5: GAP, 6: RELEASE}, [(5, 6, [0, 2])], id="gaps"),
        pytest.param(
            {offset: ACCEPT if offset else REJECT for offset in range(12)},
            [(0, 0, [3]), (1, 11, [1])],
            id="a long run has a batch of its own",
        ),
    ],
)
def test_batches(types: dict[int, int], batches: list[tuple[int, int, list[int]]]) -> None:
    assert Acknowledgements(types.items()).batches() == batches


@given(some.dictionaries(some.integers(0, 60), some.sampled_from([GAP, *AcknowledgeType])))
def test_batches_say_exactly_what_was_acknowledged(types: dict[int, int]) -> None:
    said: dict[int, int] = {}
    for first, last, kinds in Acknowledgements(types.items()).batches():
        count = last - first + 1
        assert len(kinds) in (1, count)
        each = kinds * count if len(kinds) == 1 else kinds
        said.update(zip(range(first, last + 1), each, strict=True))
    assert said == types


def test_what_was_acknowledged_is_no_longer_in_flight() -> None:
    flight = in_flight(0, 1, 2)
    flight.acknowledge(record(0), ACCEPT)
    flight.acknowledge(record(2), REJECT)
    assert not flight.all_acknowledged
    (taken,) = flight.take().values()
    assert taken.node_id == 1
    assert dict(taken.acknowledgements.items()) == {0: ACCEPT, 2: REJECT}
    assert [each.offset for each in flight.records()[P0.topic_partition]] == [1]
    with pytest.raises(IllegalStateError, match="cannot be acknowledged"):
        flight.acknowledge(record(0), ACCEPT)
    assert flight.take() == {}


def test_the_last_acknowledgement_counts() -> None:
    flight = in_flight(0)
    flight.acknowledge(record(0), ACCEPT)
    flight.acknowledge(record(0), RELEASE)
    (taken,) = flight.take().values()
    assert dict(taken.acknowledgements.items()) == {0: RELEASE}


def test_accepting_all_leaves_what_was_said_before() -> None:
    flight = in_flight(0, 1)
    flight.acknowledge(record(1), REJECT)
    flight.acknowledge_all(ACCEPT)
    assert flight.all_acknowledged
    (taken,) = flight.take().values()
    assert dict(taken.acknowledgements.items()) == {0: ACCEPT, 1: REJECT}
    assert flight.is_empty


def test_renewed_records_are_given_again() -> None:
    flight = in_flight(0, 1)
    flight.lock_timeout_ms = 10
    flight.acknowledge(record(0), RENEW)
    flight.acknowledge(record(1), ACCEPT)
    (taken,) = flight.take().values()
    assert flight.is_empty
    assert flight.renews
    flight.on_acknowledged(P0, taken.acknowledgements, None, 20)
    assert flight.lock_timeout_ms == 10
    flight.take_renewed()
    assert [each.offset for each in flight.records()[P0.topic_partition]] == [0]
    assert not flight.renews
    assert flight.lock_timeout_ms == 20
    assert not flight.all_acknowledged


def test_records_that_were_not_renewed_are_gone() -> None:
    flight = in_flight(0)
    flight.acknowledge(record(0), RENEW)
    (taken,) = flight.take().values()
    flight.on_acknowledged(P0, taken.acknowledgements, NotLeaderOrFollowerError(), None)
    assert not flight.renews
    flight.take_renewed()
    assert flight.is_empty


def test_a_record_that_could_not_be_read_may_be_rejected_until_it_is_released() -> None:
    flight = InFlight()
    flight.add(P0, 1, [], Acknowledgements([(4, RELEASE)]), {4})
    assert flight.all_acknowledged
    with pytest.raises(IllegalStateError):
        flight.acknowledge_unreadable(TopicPartition("t", 0), 5, REJECT)
    with pytest.raises(IllegalStateError):
        flight.acknowledge_unreadable(TopicPartition("t", 1), 4, REJECT)
    flight.acknowledge_unreadable(TopicPartition("t", 0), 4, REJECT)
    (taken,) = flight.take().values()
    assert dict(taken.acknowledgements.items()) == {4: REJECT}
    with pytest.raises(IllegalStateError):
        flight.acknowledge_unreadable(TopicPartition("t", 0), 4, REJECT)


def test_a_session_says_what_changes() -> None:
    session = ShareSession()
    assert session.is_new
    assert session.change([P0]) == ({P0}, set())
    session.on_answered(ErrorCode.NONE)
    assert session.epoch == 1
    assert session.change([P0]) == (set(), set())
    session.on_answered(ErrorCode.NONE)
    assert session.change([P1]) == ({P1}, {P0})
    assert session.epoch == 2


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    ],
)
def test_a_session_that_is_lost_begins_anew_with_everything(code: ErrorCode) -> None:
    session = ShareSession()
    session.change([P0])
    session.on_answered(ErrorCode.NONE)
    session.on_answered(code)
    assert session.is_new
    assert session.change([P0, P1]) == ({P0, P1}, set())


def test_other_errors_keep_a_session() -> None:
    session = ShareSession()
    session.change([P0])
    session.on_answered(ErrorCode.NONE)
    session.on_answered(ErrorCode.UNKNOWN_TOPIC_ID)
    assert session.epoch == 2
    session.on_failed()
    assert session.is_new


def test_epochs_begin_again_at_one() -> None:
    session = ShareSession()
    session.epoch = 2**31 - 1
    session.on_answered(ErrorCode.NONE)
    assert session.epoch == 1
