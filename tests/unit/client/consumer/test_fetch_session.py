"""What a consumer's Fetch requests name, as the broker's session has it."""

from __future__ import annotations

from uuid import UUID

from moldau.client.consumer.machine.fetch_session import (
    ConsumerFetchSession,
    SessionRequest,
    Wanted,
)
from moldau.client.topics import TopicPartition
from moldau.wire.errors import ErrorCode

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
ID, OTHER_ID = UUID(int=1), UUID(int=2)


def wanted(offset: int, topic_id: UUID = ID) -> Wanted:
    return Wanted(topic_id, offset, 0, 100)


def opened(**partitions: Wanted) -> ConsumerFetchSession:
    session = ConsumerFetchSession()
    session.request({A: wanted(0), B: wanted(0)})
    assert session.answered(ErrorCode.NONE, 7)
    return session


def test_the_first_request_names_everything() -> None:
    session = ConsumerFetchSession()
    everything = {A: wanted(0), B: wanted(5)}
    assert session.request(everything) == SessionRequest(0, 0, everything, {})
    assert not session.is_open


def test_later_ones_name_what_changed() -> None:
    session = opened()
    assert session.is_open
    assert session.request({A: wanted(3), B: wanted(0)}) == (7, 1, {A: wanted(3)}, {})
    assert session.answered(ErrorCode.NONE, 7)
    assert session.request({A: wanted(3)}) == (7, 2, {}, {B: ID})
    assert session.answered(ErrorCode.NONE, 7)
    assert session.request({A: wanted(3), B: wanted(0)}) == (7, 3, {B: wanted(0)}, {})


def test_a_topic_made_anew_replaces_the_old_one() -> None:
    session = opened()
    new = {A: wanted(0, OTHER_ID), B: wanted(0)}
    assert session.request(new) == (7, 1, {A: wanted(0, OTHER_ID)}, {A: ID})


def test_after_a_failure_everything_is_named_and_the_old_session_closed() -> None:
    session = opened()
    session.request({A: wanted(3)})
    session.failed()
    assert session.request({A: wanted(3)}) == (7, 0, {A: wanted(3)}, {})
    assert session.answered(ErrorCode.NONE, 8)
    assert session.request({A: wanted(4)}) == (8, 1, {A: wanted(4)}, {})


def test_sessions_that_the_broker_no_longer_has() -> None:
    session = opened()
    session.request({A: wanted(3)})
    assert not session.answered(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)
    assert session.request({A: wanted(3)}) == (0, 0, {A: wanted(3)}, {})

    session = opened()
    session.request({A: wanted(3)})
    assert not session.answered(ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0)
    assert session.request({A: wanted(3)}) == (7, 0, {A: wanted(3)}, {})

    session = opened()
    session.request({A: wanted(3)})
    assert session.answered(ErrorCode.NONE, 0)
    assert session.request({A: wanted(3)}) == (0, 0, {A: wanted(3)}, {})


def test_brokers_without_room_for_sessions() -> None:
    session = ConsumerFetchSession()
    for _ in range(2):
        assert session.request({A: wanted(0)}) == (0, 0, {A: wanted(0)}, {})
        assert session.answered(ErrorCode.NONE, 0)


def test_the_last_request() -> None:
    assert opened().final_request() == SessionRequest(7, -1, {}, {})
