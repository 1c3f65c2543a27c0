"""Fetch as a client sees it: limits, waiting, errors, sessions."""

from __future__ import annotations

import itertools
import struct
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from moldau.broker.handlers.fetch import FetchHandler
from moldau.broker.network.context import RequestContext
from moldau.broker.replication.deletion import delete_records
from moldau.wire.apis import ApiKey
from moldau.wire.codec import decode, encode
from moldau.wire.errors import ErrorCode, WireError
from moldau.wire.messages import FetchRequest, FetchResponse
from moldau.wire.records import decode_batches
from support.hosting import NODE_ID, OTHER_NODE_ID, Host, VirtualFuture

VERSIONS = range(4, 19)
MAX = 2**31 - 1


class Client:
    def __init__(self, host: Host, **limits: int) -> None:
        self.host = host
        ids = itertools.count(1000)
        self.handler = FetchHandler(
            host.replicas,
            loop=host.loop,
            clock=host.loop.clock,
            random_id=lambda: next(ids),
            **limits,
        )

    def send(
        self,
        *wanted: tuple[Any, ...],
        version: int = 12,
        max_wait_ms: int = 0,
        min_bytes: int = 1,
        max_bytes: int = MAX,
        partition_max_bytes: int = MAX,
        isolation_level: int = 0,
        session: tuple[int, int] = (0, -1),
        forget: tuple[tuple[Any, int], ...] = (),
        replica_id: int = -1,
        **fields: int,
    ) -> Any:
        """Each of `wanted` is (topic, partition, offset) with fields of its own, if any."""
        topics = []
        for topic, index, offset, *own in wanted:
            part = FetchRequest.FetchPartition(
                partition=index,
                fetch_offset=offset,
                partition_max_bytes=partition_max_bytes,
                **{**fields, **(own[0] if own else {})},
            )
            topics.append(FetchRequest.FetchTopic(partitions=[part], **_topic(topic)))
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            isolation_level=isolation_level,
            topics=topics,
        )
        if version >= 7:
            request.session_id, request.session_epoch = session
            request.forgotten_topics_data = [
                FetchRequest.ForgottenTopic(partitions=[index], **_topic(topic))
                for topic, index in forget
            ]
        if version >= 15:
            request.replica_state = FetchRequest.ReplicaState(replica_id=replica_id)
        else:
            request.replica_id = replica_id
        context = RequestContext(ApiKey.FETCH, version, 42)
        return self.handler.handle(context, memoryview(b"head" + encode(request, version)), 4)

    def fetch(self, *wanted: tuple[Any, ...], version: int = 12, **options: Any) -> FetchResponse:
        return decoded(self.send(*wanted, version=version, **options), version)


def _topic(topic: str | UUID) -> dict[str, Any]:
    return {"topic_id": topic} if isinstance(topic, UUID) else {"topic": topic}


def decoded(frame: Any, version: int = 12) -> FetchResponse:
    if isinstance(frame, VirtualFuture):
        frame = frame.result()
    frame = b"".join(frame)
    assert struct.unpack_from(">ii", frame) == (len(frame) - 4, 42)
    return decode(FetchResponse, version, frame, 9 if version >= 12 else 8)


def parts(response: FetchResponse) -> list[tuple[str, int, str, list[bytes | None]]]:
    """(topic, partition, error, values) of everything in the response."""
    return [
        (topic.topic, part.partition_index, ErrorCode(part.error_code).name, values(part))
        for topic in response.responses
        for part in topic.partitions
    ]


def values(part: FetchResponse.PartitionData) -> list[bytes | None]:
    return [
        record.value for _, records in decode_batches(part.records or b"") for record in records
    ]


def only(response: FetchResponse) -> FetchResponse.PartitionData:
    ((part,),) = (topic.partitions for topic in response.responses)
    return part


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


@pytest.fixture
def client(host: Host) -> Client:
    return Client(host)


# Reading.


@pytest.mark.parametrize("version", VERSIONS)
def test_batches_come_back_as_they_were_stored(host: Host, client: Client, version: int) -> None:
    topic_id = host.create_topic("a")
    host.append("a", b"x", b"y")
    host.append("a", b"z")
    key = topic_id if version >= 13 else "a"
    part = only(client.fetch((key, 0, 0), version=version))
    assert values(part) == [b"x", b"y", b"z"]
    assert (part.error_code, part.high_watermark, part.last_stable_offset) == (0, 3, 3)
    assert part.aborted_transactions is None
    assert only(client.fetch((key, 0, 3), version=version)).records == b""
    # The batch that holds the offset comes whole.
    assert values(only(client.fetch((key, 0, 1), version=version))) == [b"x", b"y", b"z"]


def test_errors_per_partition(host: Host, client: Client) -> None:
    host.create_topic("a")
    host.create_topic("b", replicas=(OTHER_NODE_ID,), leader=OTHER_NODE_ID)
    host.append("a", b"x")
    response = client.fetch(
        ("a", 0, 0), ("a", 0, 5), ("a", 7, 0), ("b", 0, 0), ("nope", 0, 0), ("a", 0, 2)
    )
    # Of a partition named more than once the last mention counts.
    assert parts(response) == [
        ("a", 0, "OFFSET_OUT_OF_RANGE", []),
        ("a", 7, "UNKNOWN_TOPIC_OR_PARTITION", []),
        ("b", 0, "NOT_LEADER_OR_FOLLOWER", []),
        ("nope", 0, "UNKNOWN_TOPIC_OR_PARTITION", []),
    ]
    assert only(client.fetch((UUID(int=3), 0, 0), version=13)).error_code == 100


@pytest.mark.parametrize(
    ("epoch", "error"), [(-1, "NONE"), (1, "NONE"), (0, "FENCED"), (2, "UNKNOWN")]
)
def test_leader_epochs_are_checked(host: Host, client: Client, epoch: int, error: str) -> None:
    host.change_partition(host.create_topic("a"), leader=NODE_ID)
    part = only(client.fetch(("a", 0, 0), current_leader_epoch=epoch))
    assert ErrorCode(part.error_code).name.startswith(error)


def test_a_diverging_epoch_is_told_at_once(host: Host, client: Client) -> None:
    topic_id = host.create_topic("a")
    host.append("a", b"x")
    host.change_partition(topic_id, leader=NODE_ID)
    host.append("a", b"y")
    part = only(client.fetch(("a", 0, 2), last_fetched_epoch=0, max_wait_ms=500))
    assert (part.diverging_epoch.epoch, part.diverging_epoch.end_offset) == (0, 1)
    assert part.records == b""


@pytest.mark.parametrize("version", [12, 16, 18])
def test_who_leads_is_told_from_version_16(host: Host, client: Client, version: int) -> None:
    topic_id = host.create_topic("b", replicas=(OTHER_NODE_ID,), leader=OTHER_NODE_ID)
    response = client.fetch((topic_id if version >= 13 else "b", 0, 0), version=version)
    leader = only(response).current_leader
    nodes = [(node.node_id, node.host, node.port) for node in response.node_endpoints]
    if version >= 16:
        assert (leader.leader_id, nodes) == (OTHER_NODE_ID, [(OTHER_NODE_ID, "host2", 9002)])
    else:
        assert (leader.leader_id, nodes) == (-1, [])


@pytest.mark.parametrize(("version", "error"), [(5, 6), (6, 56)])
def test_storage_errors_as_each_version_knows_them(
    host: Host, client: Client, version: int, error: int
) -> None:
    host.create_topic("a")
    host.logs.dirs[0].fail("reading", OSError("broken"))
    assert only(client.fetch(("a", 0, 0), version=version)).error_code == error


def test_zstd_topics_need_version_10(host: Host, client: Client) -> None:
    host.create_topic("a", config={"compression.type": "zstd"})
    assert only(client.fetch(("a", 0, 0), version=9)).error_code == 76
    assert only(client.fetch(("a", 0, 0), version=10)).error_code == 0


def test_replicas_read_to_the_end_and_consumers_to_the_watermark(
    host: Host, client: Client
) -> None:
    host.create_topic("a", replicas=(NODE_ID, OTHER_NODE_ID))
    host.append("a", b"x")
    assert values(only(client.fetch(("a", 0, 0)))) == []
    follower = {"replica_id": OTHER_NODE_ID, "current_leader_epoch": 0}
    assert values(only(client.fetch(("a", 0, 0), **follower))) == [b"x"]
    stranger = {"replica_id": 9, "current_leader_epoch": 0}
    assert only(client.fetch(("a", 0, 0), **stranger)).error_code == 75
    assert only(client.fetch(("a", 0, 0), replica_id=9)).error_code == 6


def test_read_committed_stops_at_the_open_transaction(host: Host, client: Client) -> None:
    host.create_topic("a")
    host.append("a", b"plain")
    host.append(
        "a", b"open", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    part = only(client.fetch(("a", 0, 0), isolation_level=1))
    assert (values(part), part.last_stable_offset, part.high_watermark) == ([b"plain"], 1, 2)
    assert part.aborted_transactions == []
    waiting = client.send(("a", 0, 1), isolation_level=1, max_wait_ms=100)
    host.append("a", b"also after the open one")
    host.loop.turn()
    assert not waiting.done()


# Limits.


def test_the_first_partition_with_data_gives_a_whole_batch(host: Host, client: Client) -> None:
    host.create_topic("a", 3)
    for index in (1, 2):
        host.append("a", b"x" * 1000, index=index)
    wanted = [("a", index, 0) for index in range(3)]
    for limits in ({"max_bytes": 1}, {"partition_max_bytes": 1}, {"max_bytes": 0}):
        response = client.fetch(*wanted, **limits)
        assert [len(each[3]) for each in parts(response)] == [0, 1, 0]
    both = client.fetch(*wanted, max_bytes=10_000)
    assert [len(each[3]) for each in parts(both)] == [0, 1, 1]


def test_the_brokers_own_limit(host: Host) -> None:
    host.create_topic("a", 2)
    for index in (0, 1):
        host.append("a", b"x" * 1000, index=index)
    small = Client(host, fetch_max_bytes=500)
    response = small.fetch(("a", 0, 0), ("a", 1, 0))
    assert [len(each[3]) for each in parts(response)] == [1, 0]


def test_partition_limits_cut_what_comes_after_the_first_batch(host: Host, client: Client) -> None:
    host.create_topic("a")
    for _ in range(10):
        host.append("a", b"x" * 100)
    part = only(client.fetch(("a", 0, 0), partition_max_bytes=500))
    assert 0 < len(part.records or b"") <= 500


# Waiting.


def test_a_fetch_waits_for_data(host: Host, client: Client) -> None:
    host.create_topic("a", 2)
    waiting = client.send(("a", 0, 0), ("a", 1, 0), max_wait_ms=500)
    assert not waiting.done()
    host.append("a", b"x", index=1)
    host.loop.turn()
    assert parts(decoded(waiting)) == [("a", 0, "NONE", []), ("a", 1, "NONE", [b"x"])]
    assert (len(client.handler.purgatory), host.loop.timers_count) == (0, 0)
    assert not host.partition("a", 0).waiters.changes
    assert not host.partition("a", 1).waiters.changes


def test_a_fetch_waits_no_longer_than_asked(host: Host, client: Client) -> None:
    host.create_topic("a")
    waiting = client.send(("a", 0, 0), max_wait_ms=500)
    host.loop.advance(499)
    assert not waiting.done()
    host.loop.advance(1)
    assert parts(decoded(waiting)) == [("a", 0, "NONE", [])]
    host.append("a", b"x")
    host.loop.turn()


@pytest.mark.parametrize("spread", [1, 2])
def test_min_bytes_are_gathered_over_partitions(host: Host, client: Client, spread: int) -> None:
    host.create_topic("a", spread)
    one = len(only(client.fetch(("a", 0, host.append("a", b"x" * 100)))).records or b"")
    wanted = [("a", index, int(index == 0)) for index in range(spread)]
    waiting = client.send(*wanted, min_bytes=3 * one, max_wait_ms=500)
    for count in range(3):
        assert not waiting.done()
        host.append("a", b"x" * 100, index=count % spread)
        host.loop.turn()
    assert sum(len(each[3]) for each in parts(decoded(waiting))) == 3


def test_min_bytes_are_gathered_anew_by_each_fetch_of_a_session(host: Host, client: Client) -> None:
    host.create_topic("a")
    session = _open(client, ("a", 0, 0))
    for offset in range(3):
        waiting = client.send(
            ("a", 0, offset), session=(session, offset + 1), min_bytes=1000, max_wait_ms=500
        )
        host.append("a", b"x" * 1000)
        host.loop.turn()
        assert waiting.done()


def test_min_bytes_above_the_limit_do_not_wait_for_ever(host: Host, client: Client) -> None:
    host.create_topic("a")
    host.append("a", b"x" * 1000)
    part = only(client.fetch(("a", 0, 0), min_bytes=10**6, max_bytes=500, max_wait_ms=500))
    assert values(part)


def test_what_came_is_given_when_time_is_over(host: Host, client: Client) -> None:
    host.create_topic("a")
    host.append("a", b"x")
    waiting = client.send(("a", 0, 0), min_bytes=10_000, max_wait_ms=500)
    host.loop.advance(500)
    assert values(only(decoded(waiting))) == [b"x"]


def test_what_came_while_it_waited_is_given_when_time_is_over(host: Host, client: Client) -> None:
    host.create_topic("a")
    session = _open(client, ("a", 0, 0))
    waiting = [
        client.send(("a", 0, 0), min_bytes=10_000, max_wait_ms=500),
        client.send(session=(session, 1), min_bytes=10_000, max_wait_ms=500),
    ]
    host.loop.advance(100)
    host.append("a", b"x")
    host.loop.advance(100)
    host.append("a", b"y")
    host.loop.advance(299)
    assert not any(each.done() for each in waiting)
    host.loop.advance(1)
    assert [values(only(decoded(each))) for each in waiting] == [[b"x", b"y"]] * 2


@pytest.mark.parametrize("min_bytes", [1, 1000])
def test_a_deleted_topic_ends_the_wait(host: Host, client: Client, min_bytes: int) -> None:
    topic_id = host.create_topic("a")
    host.create_topic("b")
    named = client.send(("a", 0, 0), ("b", 0, 0), max_wait_ms=500, min_bytes=min_bytes)
    by_id = client.send((topic_id, 0, 0), version=13, max_wait_ms=500, min_bytes=min_bytes)
    host.delete_topic(topic_id)
    host.loop.turn()
    assert parts(decoded(named))[0] == ("a", 0, "UNKNOWN_TOPIC_OR_PARTITION", [])
    assert only(decoded(by_id, 13)).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_lost_leadership_and_a_broken_disk_end_the_wait(host: Host, client: Client) -> None:
    moved = host.create_topic("moved", replicas=(NODE_ID, OTHER_NODE_ID))
    host.create_topic("broken")
    # Before version 11 only leaders are read from.
    old = client.send(("moved", 0, 0), max_wait_ms=500, version=10)
    first = client.send(("moved", 0, 0), max_wait_ms=500, current_leader_epoch=0)
    second = client.send(("broken", 0, 0), max_wait_ms=500)
    host.change_partition(moved, leader=OTHER_NODE_ID)
    host.loop.turn()
    assert only(decoded(old, 10)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert only(decoded(first)).error_code == ErrorCode.FENCED_LEADER_EPOCH
    host.logs.dirs[0].fail("writing", OSError("broken"))
    host.loop.turn()
    assert only(decoded(second)).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_an_unknown_partition_alone_is_answered_at_once_but_with_others_in_time(
    host: Host, client: Client
) -> None:
    host.create_topic("a")
    assert only(client.fetch(("nope", 0, 0), max_wait_ms=500)).error_code == 3
    waiting = client.send(("nope", 0, 0), ("a", 0, 0), max_wait_ms=500)
    assert not waiting.done()
    host.loop.advance(500)
    assert [each[2] for each in parts(decoded(waiting))] == ["UNKNOWN_TOPIC_OR_PARTITION", "NONE"]


def test_an_empty_request_is_answered_at_once(client: Client) -> None:
    assert client.fetch(max_wait_ms=500).responses == []


def test_a_client_that_went_away_leaves_nothing_behind(host: Host, client: Client) -> None:
    host.create_topic("a")
    client.send(("a", 0, 0), max_wait_ms=500).cancel()
    assert (len(client.handler.purgatory), host.loop.timers_count) == (0, 0)
    assert not host.partition("a").waiters.changes


def test_beyond_the_bound_nobody_waits(host: Host) -> None:
    host.create_topic("a")
    client = Client(host, waiters_max=1)
    waiting = client.send(("a", 0, 0), max_wait_ms=500)
    assert parts(client.fetch(("a", 0, 0), max_wait_ms=500)) == [("a", 0, "NONE", [])]
    assert not waiting.done()


# Sessions.


def _open(client: Client, *wanted: tuple[Any, ...], **options: Any) -> int:
    session_id = client.fetch(*wanted, session=(0, 0), **options).session_id
    assert session_id > 0
    return session_id


@pytest.mark.parametrize("version", [7, 12, 13, 18])
def test_an_incremental_fetch_holds_only_what_is_new(
    host: Host, client: Client, version: int
) -> None:
    topic_id = host.create_topic("a", 2)
    key: Any = topic_id if version >= 13 else "a"
    full = client.fetch((key, 0, 0), (key, 1, 0), session=(0, 0), version=version)
    assert len(parts(full)) == 2
    session = full.session_id
    assert client.fetch(session=(session, 1), version=version).responses == []
    host.append("a", b"x", index=1)
    news = client.fetch(session=(session, 2), version=version)
    assert [each[1:] for each in parts(news)] == [(1, "NONE", [b"x"])]
    # Not told of a new offset, the broker gives the same again.
    again = client.fetch(session=(session, 3), version=version)
    assert [each[1:] for each in parts(again)] == [(1, "NONE", [b"x"])]
    moved_on = client.fetch((key, 1, 1), session=(session, 4), version=version)
    assert parts(moved_on) == []
    assert moved_on.session_id == session


def test_an_incremental_fetch_waits_for_all_its_partitions(host: Host, client: Client) -> None:
    host.create_topic("a", 3)
    session = _open(client, *(("a", index, 0) for index in range(3)))
    waiting = client.send(session=(session, 1), max_wait_ms=500)
    host.append("a", b"x", index=2)
    host.append("a", b"y", index=0)
    host.loop.turn()
    assert sorted(parts(decoded(waiting))) == [
        ("a", 0, "NONE", [b"y"]),
        ("a", 2, "NONE", [b"x"]),
    ]
    idle = client.send(("a", 0, 1), ("a", 2, 1), session=(session, 2), max_wait_ms=500)
    host.loop.advance(500)
    assert decoded(idle).responses == []


def test_partitions_are_added_changed_and_forgotten(host: Host, client: Client) -> None:
    host.create_topic("a", 3)
    for index in range(3):
        host.append("a", b"x", index=index)
    session = _open(client, ("a", 0, 1), ("a", 1, 0))
    news = client.fetch(("a", 2, 0), session=(session, 1), forget=(("a", 1),))
    assert parts(news) == [("a", 2, "NONE", [b"x"])]
    host.append("a", b"y", index=1)
    assert client.fetch(("a", 2, 1), session=(session, 2)).responses == []
    back = client.fetch(("a", 0, 0), session=(session, 3))
    assert parts(back) == [("a", 0, "NONE", [b"x"])]


def test_a_watermark_or_log_start_that_moved_is_told_without_data(
    host: Host, client: Client
) -> None:
    host.create_topic("a")
    host.append("a", b"x")
    host.append(
        "a", b"open", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    session = _open(client, ("a", 0, 1), isolation_level=1)
    assert client.fetch(session=(session, 1), isolation_level=1).responses == []
    host.append("a", b"y")
    part = only(client.fetch(session=(session, 2), isolation_level=1))
    assert (part.high_watermark, values(part)) == (3, [])
    delete_records(host.partition("a"), 1)
    assert only(client.fetch(session=(session, 3), isolation_level=1)).log_start_offset == 1
    assert client.fetch(session=(session, 4), isolation_level=1).responses == []


def test_errors_are_told_at_every_poll_until_they_are_gone(host: Host, client: Client) -> None:
    host.create_topic("a")
    session = _open(client, ("a", 0, 0), ("later", 0, 0))
    for epoch in (1, 2):
        news = client.fetch(session=(session, epoch))
        assert parts(news) == [("later", 0, "UNKNOWN_TOPIC_OR_PARTITION", [])]
    host.create_topic("later")
    host.append("later", b"x")
    assert parts(client.fetch(session=(session, 3))) == [("later", 0, "NONE", [b"x"])]


def test_a_topic_made_anew_under_its_name_goes_on_in_the_session(
    host: Host, client: Client
) -> None:
    host.create_topic("a", topic_id=UUID(int=500))
    session = _open(client, ("a", 0, 0))
    host.delete_topic(UUID(int=500))
    host.create_topic("a", topic_id=UUID(int=501))
    host.append("a", b"new")
    assert parts(client.fetch(session=(session, 1))) == [("a", 0, "NONE", [b"new"])]


def test_everybody_gets_a_turn_under_a_small_limit(host: Host, client: Client) -> None:
    host.create_topic("a", 3)
    session = _open(client, *(("a", index, 0) for index in range(3)))
    for index in range(3):
        host.append("a", b"x" * 1000, index=index)
    served = []
    for epoch in range(1, 7):
        response = client.fetch(session=(session, epoch), max_bytes=500)
        served += [index for _, index, _, records in parts(response) if records]
    assert served == [0, 1, 2, 0, 1, 2]


def test_session_errors(host: Host, client: Client) -> None:
    topic_id = host.create_topic("a")
    session = _open(client, ("a", 0, 0))
    for options, error in (
        ({"session": (session + 1, 1)}, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        ({"session": (session, 2)}, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        ({"session": (session, 1), "version": 13}, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
    ):
        response = client.fetch(**options)  # type: ignore[arg-type]
        assert (response.error_code, response.session_id) == (error, 0)
        assert response.responses == []
    assert client.fetch(session=(session, 1)).error_code == 0
    with_ids = _open(client, (topic_id, 0, 0), version=13)
    wrong = client.fetch(session=(with_ids, 1), version=12)
    assert wrong.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_full_and_final_fetches_close_the_session_they_name(host: Host, client: Client) -> None:
    host.create_topic("a")
    first = _open(client, ("a", 0, 0))
    second = client.fetch(("a", 0, 0), session=(first, 0)).session_id
    assert client.fetch(session=(first, 1)).error_code == 70
    assert client.fetch(("a", 0, 0), session=(second, -1)).session_id == 0
    assert client.fetch(session=(second, 1)).error_code == 70
    assert len(client.handler.sessions) == 0
    assert not host.partition("a").waiters.changes


def test_a_session_that_lost_all_partitions_is_dropped(host: Host, client: Client) -> None:
    host.create_topic("a")
    session = _open(client, ("a", 0, 0))
    last = client.fetch(session=(session, 1), forget=(("a", 0),))
    assert (last.error_code, last.session_id, last.responses) == (0, 0, [])
    assert len(client.handler.sessions) == 0


def test_a_request_while_the_former_waits_makes_that_one_fail(host: Host, client: Client) -> None:
    host.create_topic("a")
    session = _open(client, ("a", 0, 0))
    former = client.send(session=(session, 1), max_wait_ms=500)
    waiting = client.send(session=(session, 2), max_wait_ms=500)
    assert decoded(former).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    host.append("a", b"x")
    host.loop.turn()
    assert parts(decoded(waiting)) == [("a", 0, "NONE", [b"x"])]


def test_an_evicted_session_answers_the_fetch_that_waits(host: Host) -> None:
    host.create_topic("a", 2)
    client = Client(host, session_slots_max=1)
    session = _open(client, ("a", 0, 0))
    host.loop.advance(60_001)
    assert client.fetch(session=(session, 1)).error_code == 0
    host.loop.advance(60_001)
    waiting = client.send(session=(session, 2), max_wait_ms=500)
    bigger = client.fetch(("a", 0, 0), ("a", 1, 0), session=(0, 0))
    assert bigger.session_id > 0
    assert decoded(waiting).error_code == 0
    assert client.fetch(session=(session, 3)).error_code == 70


def test_without_a_free_place_a_full_fetch_is_served_without_session(host: Host) -> None:
    host.create_topic("a")
    host.append("a", b"x")
    client = Client(host, session_slots_max=0)
    response = client.fetch(("a", 0, 0), session=(0, 0))
    assert (response.session_id, parts(response)) == (0, [("a", 0, "NONE", [b"x"])])


def test_a_waiting_full_fetch_opens_its_session_when_it_answers(host: Host, client: Client) -> None:
    host.create_topic("a", 2)
    waiting = client.send(("a", 0, 0), ("a", 1, 0), session=(0, 0), max_wait_ms=500)
    assert len(client.handler.sessions) == 0
    host.append("a", b"x")
    host.loop.turn()
    session = decoded(waiting).session_id
    host.append("a", b"y", index=1)
    news = client.fetch(("a", 0, 1), session=(session, 1))
    assert parts(news) == [("a", 1, "NONE", [b"y"])]


def test_an_idle_session_looks_at_no_partition(host: Host, client: Client) -> None:
    host.create_topic("a", 50)
    session = _open(client, *(("a", index, 0) for index in range(50)))
    looked: list[int] = []
    reader = client.handler._reader
    read_one = reader.read_one
    reader.read_one = lambda slot, *args: (  # type: ignore[method-assign]
        looked.append(slot.wanted.partition) or read_one(slot, *args)
    )
    assert client.fetch(session=(session, 1)).responses == []
    host.append("a", b"x", index=33)
    assert len(parts(client.fetch(session=(session, 2)))) == 1
    assert looked == [33]


def test_a_malformed_body_is_a_wire_error(client: Client) -> None:
    with pytest.raises(WireError):
        client.handler.handle(RequestContext(ApiKey.FETCH, 12), memoryview(b"\xff" * 9), 0)
