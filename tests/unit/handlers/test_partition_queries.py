"""ListOffsets, DeleteRecords, OffsetForLeaderEpoch and DescribeProducers as clients see them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from moldau.broker.handlers.delete_records import DeleteRecordsHandler
from moldau.broker.handlers.describe_producers import DescribeProducersHandler
from moldau.broker.handlers.list_offsets import ListOffsetsHandler
from moldau.broker.handlers.offset_for_leader_epoch import OffsetForLeaderEpochHandler
from moldau.broker.network.context import RequestContext
from moldau.broker.replication import reading
from moldau.broker.replication.deletion import delete_records
from moldau.wire.apis import ApiKey
from moldau.wire.codec import encode
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    DeleteRecordsRequest,
    DescribeProducersRequest,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
)
from support.hosting import NODE_ID, OTHER_NODE_ID, Host


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


# ListOffsets.


def _offset(
    host: Host,
    timestamp: int,
    *,
    version: int = 11,
    topic: str = "a",
    index: int = 0,
    epoch: int = -1,
    isolation_level: int = 0,
    replica_id: int = -1,
) -> tuple[str, int, int, int]:
    """(error, timestamp, offset, leader epoch)"""
    wanted = ListOffsetsRequest.ListOffsetsPartition(
        partition_index=index, timestamp=timestamp, current_leader_epoch=epoch
    )
    request = ListOffsetsRequest(
        replica_id=replica_id,
        isolation_level=isolation_level,
        topics=[ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[wanted])],
    )
    handler = ListOffsetsHandler(host.replicas)
    response = handler.handle(RequestContext(ApiKey.LIST_OFFSETS, version), request)
    encode(response, version)
    ((answer,),) = (topic.partitions for topic in response.topics)
    return (
        ErrorCode(answer.error_code).name,
        answer.timestamp,
        answer.offset,
        answer.leader_epoch,
    )


@pytest.fixture
def timed(host: Host) -> Host:
    """Offsets 0 to 5 at 1000, 3000, 2000, 4000, 4000 and 1500 ms."""
    host.create_topic("a")
    start = host.loop.now_ms
    for value in (1000, 3000, 2000, 4000, 4000, 1500):
        host.loop.now_ms = start + value
        host.append("a", str(value).encode())
    host.loop.now_ms = start + 10_000
    return host


def test_the_named_places(timed: Host) -> None:
    delete_records(timed.partition("a"), 1)
    start = timed.loop.now_ms - 10_000
    assert _offset(timed, -1) == ("NONE", -1, 6, 0)
    assert _offset(timed, -2) == ("NONE", -1, 1, 0)
    assert _offset(timed, -3) == ("NONE", start + 4000, 3, 0)
    assert _offset(timed, -4) == ("NONE", -1, 1, 0)
    assert _offset(timed, -5) == ("NONE", -1, -1, -1)
    assert _offset(timed, -6) == ("NONE", -1, -1, -1)


@pytest.mark.parametrize(
    ("target", "offset", "found"),
    [(0, 0, 1000), (1001, 1, 3000), (3001, 3, 4000), (4001, -1, None)],
)
def test_the_first_record_at_or_after_a_time(
    timed: Host, target: int, offset: int, found: int | None
) -> None:
    start = timed.loop.now_ms - 10_000
    expected = ("NONE", -1 if found is None else start + found, offset, -1 if found is None else 0)
    assert _offset(timed, start + target) == expected


@pytest.mark.parametrize(
    ("timestamp", "since"), [(-3, 7), (-4, 8), (-5, 9), (-6, 11), (-7, None), (-1, 1), (-2, 1)]
)
def test_names_that_a_version_does_not_know(timed: Host, timestamp: int, since: int | None) -> None:
    for version in range(1, 12):
        known = since is not None and version >= since
        error = _offset(timed, timestamp, version=version)[0]
        assert error == ("NONE" if known else "UNSUPPORTED_VERSION")


def test_an_empty_log(host: Host) -> None:
    host.create_topic("a")
    assert _offset(host, -1) == ("NONE", -1, 0, 0)
    assert _offset(host, -2)[:3] == ("NONE", -1, 0)
    assert _offset(host, -3) == ("NONE", -1, -1, -1)
    assert _offset(host, 0) == ("NONE", -1, -1, -1)


def test_only_what_may_be_fetched_is_found(host: Host) -> None:
    host.create_topic("a")
    host.append("a", b"plain")
    host.append(
        "a", b"open", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    assert _offset(host, -1)[2] == 2
    assert _offset(host, -1, isolation_level=1)[2] == 1
    host.loop.now_ms += 5
    host.append("a", b"later")
    assert _offset(host, host.loop.now_ms)[2] == 2
    assert _offset(host, host.loop.now_ms, isolation_level=1)[2] == -1


def test_a_new_leader_that_does_not_know_the_watermark_yet(host: Host) -> None:
    topic_id = host.create_topic("a", replicas=(NODE_ID, OTHER_NODE_ID))
    host.append("a", b"x")
    host.change_partition(topic_id, leader=OTHER_NODE_ID)
    host.change_partition(topic_id, leader=NODE_ID)
    assert _offset(host, -1)[0] == "OFFSET_NOT_AVAILABLE"
    assert _offset(host, -1, version=4)[0] == "LEADER_NOT_AVAILABLE"
    assert _offset(host, host.loop.now_ms)[0] == "OFFSET_NOT_AVAILABLE"
    assert _offset(host, -2)[:3] == ("NONE", -1, 0)
    assert _offset(host, -1, replica_id=OTHER_NODE_ID)[2] == 1


def test_list_offsets_errors(host: Host) -> None:
    host.create_topic("a")
    host.create_topic("b", replicas=(OTHER_NODE_ID,), leader=OTHER_NODE_ID)
    assert _offset(host, -1, topic="nope")[0] == "UNKNOWN_TOPIC_OR_PARTITION"
    assert _offset(host, -1, topic="b")[0] == "NOT_LEADER_OR_FOLLOWER"
    assert _offset(host, -1, epoch=1)[0] == "UNKNOWN_LEADER_EPOCH"
    wanted = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(
        topics=[ListOffsetsRequest.ListOffsetsTopic(name="a", partitions=[wanted, wanted])]
    )
    response = ListOffsetsHandler(host.replicas).handle(
        RequestContext(ApiKey.LIST_OFFSETS, 5), request
    )
    assert [each.error_code for each in response.topics[0].partitions] == [42, 42]


# DeleteRecords.


def test_delete_records(host: Host) -> None:
    host.create_topic("a", 3)
    host.create_topic("c", config={"cleanup.policy": "compact"})
    host.create_topic("__consumer_offsets")
    for index in (0, 1):
        for value in (b"x", b"y"):
            host.append("a", value, index=index)
    wanted = [("a", 0, 1), ("a", 1, -1), ("a", 2, 1), ("a", 9, 0), ("c", 0, 0)]
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsRequest.DeleteRecordsTopic(
                name=topic,
                partitions=[
                    DeleteRecordsRequest.DeleteRecordsPartition(
                        partition_index=index, offset=offset
                    )
                ],
            )
            for topic, index, offset in [*wanted, ("__consumer_offsets", 0, 0)]
        ]
    )
    response = DeleteRecordsHandler(host.replicas).handle(
        RequestContext(ApiKey.DELETE_RECORDS, 2), request
    )
    assert [
        (each.low_watermark, ErrorCode(each.error_code).name)
        for topic in response.topics
        for each in topic.partitions
    ] == [
        (1, "NONE"),
        (2, "NONE"),
        (-1, "OFFSET_OUT_OF_RANGE"),
        (-1, "UNKNOWN_TOPIC_OR_PARTITION"),
        (-1, "POLICY_VIOLATION"),
        (-1, "INVALID_TOPIC_EXCEPTION"),
    ]
    assert host.partition("a", 0).log.log_start_offset == 1


# OffsetForLeaderEpoch.


def end_of_epoch(host: Host, epoch: int, current: int = -1, index: int = 0) -> tuple[str, int, int]:
    wanted = OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
        partition=index, leader_epoch=epoch, current_leader_epoch=current
    )
    topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic="a", partitions=[wanted])
    response = OffsetForLeaderEpochHandler(host.replicas).handle(
        RequestContext(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4),
        OffsetForLeaderEpochRequest(topics=[topic]),
    )
    ((answer,),) = (topic.partitions for topic in response.topics)
    return ErrorCode(answer.error_code).name, answer.leader_epoch, answer.end_offset


def test_where_leader_epochs_end(host: Host) -> None:
    topic_id = host.create_topic("a")
    host.append("a", b"x")
    for _ in range(3):
        host.change_partition(topic_id, leader=NODE_ID)
    host.append("a", b"y")
    ask = partial(end_of_epoch, host)
    assert ask(0) == ("NONE", 0, 1)
    assert ask(1) == ("NONE", 0, 1)
    assert ask(3) == ("NONE", 3, 2)
    assert ask(4) == ("NONE", -1, -1)
    assert ask(-1) == ("NONE", -1, -1)
    assert ask(0, current=3) == ("NONE", 0, 1)
    assert ask(0, current=2) == ("FENCED_LEADER_EPOCH", -1, -1)
    assert ask(0, current=4) == ("UNKNOWN_LEADER_EPOCH", -1, -1)
    assert ask(0, index=1) == ("UNKNOWN_TOPIC_OR_PARTITION", -1, -1)


@pytest.mark.parametrize("count", [0, 3], ids=["empty", "with records"])
def test_an_epoch_of_a_sole_replica_without_records_ends_at_the_log_end(
    host: Host, tmp_path: Path, count: int
) -> None:
    topic_id = host.create_topic("a")
    for _ in range(count):
        host.append("a", b"x")
    assert end_of_epoch(host, 0) == ("NONE", 0, count)
    host.change_partition(topic_id, leader=NODE_ID)
    host.change_partition(topic_id, leader=NODE_ID)
    assert end_of_epoch(host, 2) == ("NONE", 2, count)
    host = host.restarted(tmp_path)
    assert end_of_epoch(host, 2) == ("NONE", 2, count)
    assert end_of_epoch(host, 0)[2] == count
    read = reading.read(
        host.partition("a").log, count, 100, min_one_batch=True, last_fetched_epoch=2
    )
    assert (read.size, read.diverging_epoch) == (0, None)


# DescribeProducers.


def test_the_producers_a_partition_remembers(host: Host) -> None:
    host.create_topic("a")
    host.append("a", b"plain")
    host.append(
        "a", b"x", b"y", producer_id=7, producer_epoch=3, base_sequence=0, is_transactional=True
    )
    host.append("a", b"z", producer_id=8, producer_epoch=0, base_sequence=0)
    request = DescribeProducersRequest(
        topics=[DescribeProducersRequest.TopicRequest(name="a", partition_indexes=[0, 1])]
    )
    response = DescribeProducersHandler(host.replicas).handle(
        RequestContext(ApiKey.DESCRIBE_PRODUCERS, 0), request
    )
    good, bad = response.topics[0].partitions
    assert [
        (each.producer_id, each.producer_epoch, each.last_sequence, each.current_txn_start_offset)
        for each in good.active_producers
    ] == [(7, 3, 1, 1), (8, 0, 0, -1)]
    assert {each.last_timestamp for each in good.active_producers} == {host.loop.now_ms}
    assert (bad.error_code, bad.active_producers) == (3, [])
    assert bad.error_message
