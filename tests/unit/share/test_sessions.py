"""Share sessions: epochs, limits, what a response mentions, and whose turn it is."""

from __future__ import annotations

from uuid import UUID

import pytest

from moldau.broker.network.context import ConnectionInfo
from moldau.broker.share.machine.sessions import (
    SessionKey,
    ShareSessions,
    TopicIdPartition,
    next_epoch,
    rotated,
)
from moldau.wire.errors import ApiError, ErrorCode

A, B, C = (TopicIdPartition(UUID(int=1), index) for index in range(3))
KEY, OTHER = SessionKey("g", "m"), SessionKey("g", "n")


def _refusal(call: object, *arguments: object) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        call(*arguments)  # type: ignore[operator]
    return caught.value.code


def test_epochs_count_up_and_begin_anew() -> None:
    assert [next_epoch(epoch) for epoch in (0, 1, 2**31 - 1)] == [1, 2, 1]
    sessions = ShareSessions(2)
    assert _refusal(sessions.proceed, KEY, 1) is ErrorCode.SHARE_SESSION_NOT_FOUND
    session = sessions.open(KEY, [A], "c")
    assert _refusal(sessions.proceed, KEY, 2) is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert sessions.proceed(KEY, 1) is session
    assert _refusal(sessions.proceed, KEY, 1) is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert sessions.proceed(KEY, 2) is session


def test_a_new_session_takes_the_place_of_the_former_one() -> None:
    sessions = ShareSessions(1)
    former = sessions.open(KEY, [A], "c1")
    assert sessions.open(KEY, [A], "c2") is not former
    assert (sessions.of_connection("c1"), sessions.of_connection("c2")) == (set(), {KEY})
    assert _refusal(sessions.open, OTHER, [A], "c3") is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert sessions.remove(KEY) is not None
    assert sessions.remove(KEY) is None
    assert not sessions.has_members("g")
    sessions.open(OTHER, [A], "c3")
    assert sessions.has_members("g")


def test_a_response_mentions_what_is_new() -> None:
    session = ShareSessions(1).open(KEY, [A, B], "c")
    session.update([C], [B])
    assert list(session.partitions) == [A, C]
    quiet = {"has_records": False, "failed": False}
    assert not session.must_mention(A, **quiet)
    assert session.must_mention(C, **quiet), "it was added"
    assert not session.must_mention(C, **quiet)
    assert session.must_mention(A, has_records=True, failed=False)
    assert session.must_mention(A, has_records=False, failed=True)
    assert session.must_mention(A, **quiet), "the error is over"
    assert not session.must_mention(A, **quiet)


def test_partitions_take_turns() -> None:
    partitions = [A, B, C]
    assert [rotated(partitions, epoch)[0] for epoch in range(5)] == [A, B, C, A, B]
    assert sorted(rotated(partitions, 2)) == partitions


def test_a_closed_connection_tells_each_listener_once() -> None:
    told: list[str] = []

    def listener(connection: ConnectionInfo) -> None:
        told.append(connection.connection_id)

    connection = ConnectionInfo(connection_id="c")
    connection.when_closed(listener)
    connection.when_closed(listener)
    connection.closed()
    connection.closed()
    assert told == ["c"]
    connection.when_closed(listener)
    assert told == ["c", "c"], "it is closed already"
