"""Appending, committing and reading one partition."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from moldau.broker.log.context import AppendOrigin
from moldau.broker.replication import reading
from moldau.broker.replication.coordinator_appends import append_marker, append_records
from moldau.broker.replication.deletion import delete_records
from moldau.wire.compression import Compression
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.records import decode_batch, encode_end_txn_marker, read_header
from support.hosting import NODE_ID, OTHER_NODE_ID, Host, batch_of


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


class Bell:
    def __init__(self) -> None:
        self.rung = 0

    def on_partition_changed(self) -> None:
        self.rung += 1


def _refusal(call: object, *args: object, **fields: object) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        call(*args, **fields)  # type: ignore[operator]
    return caught.value.code


def test_watchers_are_told_once_and_find_the_new_watermark(host: Host) -> None:
    host.create_topic("a")
    partition = host.partition("a")
    bell = Bell()
    partition.waiters.changes[bell] = None
    host.append("a", b"x")
    host.append("a", b"y")
    assert (bell.rung, partition.high_watermark) == (1, 2)


def test_coordinator_records_are_one_committed_batch(host: Host) -> None:
    host.create_topic("__consumer_offsets")
    partition = host.partition("__consumer_offsets")
    assert append_records(partition, [(b"k", b"v"), (b"k", None)], 123) == 0
    assert append_records(partition, [(b"k2", b"v2")], 124) == 2
    assert partition.high_watermark == 3
    records = decode_batch(reading.read(partition.log, 0, 1, min_one_batch=True).buffers[0])
    assert [(each.key, each.value, each.timestamp) for each in records] == [
        (b"k", b"v", 123),
        (b"k", None, 123),
    ]


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.ZSTD])
def test_coordinator_records_of_a_transaction_wait_for_its_marker(
    host: Host, compression: Compression
) -> None:
    host.create_topic("__consumer_offsets")
    partition = host.partition("__consumer_offsets")
    guard = partition.log.producers.start_verification(
        7, 3, -1, supports_epoch_bump=True, now_ms=123
    )
    for _ in range(2):
        append_records(
            partition,
            [(b"k", b"v" * 500)],
            123,
            compression=compression,
            producer=(7, 3),
            guard=guard,
        )
    header = read_header(reading.read(partition.log, 0, 1, min_one_batch=True).buffers[0])
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, -1)
    assert (header.is_transactional, header.compression) == (True, compression)
    assert (partition.log.last_stable_offset, partition.high_watermark) == (0, 2)
    append_marker(
        partition,
        producer_id=7,
        producer_epoch=4,
        coordinator_epoch=0,
        committed=True,
        transaction_version=2,
        now_ms=124,
    )
    assert partition.log.last_stable_offset == partition.high_watermark == 3
    # The guard has been used: the next transaction must ask for another.
    late = _refusal(
        partial(append_records, partition),
        [(b"k", b"v")],
        125,
        producer=(7, 4),
        guard=guard,
    )
    assert late is ErrorCode.INVALID_TXN_STATE


def test_coordinators_may_ask_for_enough_in_sync_too(host: Host) -> None:
    host.create_topic(
        "__transaction_state",
        replicas=(NODE_ID, OTHER_NODE_ID),
        isr=(NODE_ID,),
        config={"min.insync.replicas": "2"},
    )
    append = partial(append_records, host.partition("__transaction_state"))
    assert _refusal(append, [(b"k", b"v")], 1, acks_all=True) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert append([(b"k", b"v")], 1) == 0


def test_acks_all_needs_enough_in_sync(host: Host) -> None:
    host.create_topic(
        "a",
        replicas=(NODE_ID, OTHER_NODE_ID),
        isr=(NODE_ID,),
        config={"min.insync.replicas": "2"},
    )
    batch = memoryview(bytearray(batch_of(b"x")))
    partition = host.partition("a")
    refused = _refusal(partition.append, batch, now_ms=0, acks=-1)
    assert refused is ErrorCode.NOT_ENOUGH_REPLICAS
    partition.append(batch, now_ms=host.loop.now_ms, acks=1)
    assert (partition.log.log_end_offset, partition.high_watermark) == (1, 0)
    host.set_config("a", "min.insync.replicas", "1")
    assert partition.high_watermark == 1


def test_committed_with_fewer_in_sync_than_promised_is_told(host: Host) -> None:
    host.create_topic("a", replicas=(NODE_ID, OTHER_NODE_ID), isr=(NODE_ID,))
    host.append("a", b"x")
    partition = host.partition("a")
    assert partition.high_watermark == 1
    host.set_config("a", "min.insync.replicas", "2")
    heard: list[ErrorCode] = []
    partition.when_committed(1, heard.append)
    assert heard == [ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND]


def test_commit_waiters_hear_of_commits_and_of_lost_leadership(host: Host) -> None:
    topic_id = host.create_topic("a", replicas=(NODE_ID, OTHER_NODE_ID))
    partition = host.partition("a")
    heard: list[tuple[str, ErrorCode]] = []
    host.append("a", b"x")
    partition.when_committed(1, lambda error: heard.append(("first", error)))
    assert heard == []
    host.change_partition(topic_id, isr=[NODE_ID])
    assert heard == [("first", ErrorCode.NONE)]
    host.change_partition(topic_id, isr=[NODE_ID, OTHER_NODE_ID])
    host.append("a", b"y")
    partition.when_committed(2, lambda error: heard.append(("second", error)))
    host.change_partition(topic_id, leader=OTHER_NODE_ID)
    assert heard[1:] == [("second", ErrorCode.NOT_LEADER_OR_FOLLOWER)]
    partition.when_committed(2, lambda error: heard.append(("third", error)))
    assert heard[2:] == [("third", ErrorCode.NOT_LEADER_OR_FOLLOWER)]


def test_leader_epochs_are_checked(host: Host) -> None:
    topic_id = host.create_topic("a")
    host.change_partition(topic_id, leader=NODE_ID)
    check = host.partition("a").role.check_leader_epoch
    check(-1)
    check(1)
    assert _refusal(check, 0) is ErrorCode.FENCED_LEADER_EPOCH
    assert _refusal(check, 2) is ErrorCode.UNKNOWN_LEADER_EPOCH


def test_reading_at_the_edges(host: Host) -> None:
    topic_id = host.create_topic("a", replicas=(NODE_ID, OTHER_NODE_ID), isr=(NODE_ID,))
    host.append("a", b"x")
    host.change_partition(topic_id, isr=[NODE_ID, OTHER_NODE_ID])
    host.append("a", b"y")
    read = partial(reading.read, host.partition("a").log)
    assert read(1, 1000, min_one_batch=True).size == 0  # Written but not committed.
    assert read(2, 1000, min_one_batch=True).size == 0
    assert read(1, 1000, min_one_batch=True, up_to_log_end=True).size > 0
    assert _refusal(read, 3, 1000, min_one_batch=True) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert _refusal(read, -1, 1000, min_one_batch=True) is ErrorCode.OFFSET_OUT_OF_RANGE


def test_limits_give_whole_first_batches_or_nothing(host: Host) -> None:
    host.create_topic("a")
    host.append("a", b"x" * 500)
    read = partial(reading.read, host.partition("a").log)
    assert read(0, 10, min_one_batch=True).size > 500
    assert read(0, 10, min_one_batch=False).size == 0
    assert read(0, 0, min_one_batch=False).size == 0


def test_a_follower_whose_last_epoch_differs_is_told_where(host: Host) -> None:
    topic_id = host.create_topic("a")
    host.append("a", b"x")
    host.append("a", b"y")
    host.change_partition(topic_id, leader=NODE_ID)
    host.append("a", b"z")
    read = partial(reading.read, host.partition("a").log)
    assert read(3, 100, min_one_batch=True, last_fetched_epoch=1).diverging_epoch is None
    assert read(3, 100, min_one_batch=True, last_fetched_epoch=0).diverging_epoch == (0, 2)
    assert _refusal(read, 1, 100, min_one_batch=True, last_fetched_epoch=9) is (
        ErrorCode.OFFSET_OUT_OF_RANGE
    )


def test_open_and_aborted_transactions(host: Host) -> None:
    host.create_topic("a")
    partition = host.partition("a")
    fields = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True}
    host.append("a", b"plain")
    host.append("a", b"doubtful", base_sequence=0, **fields)
    open_read = reading.read(partition.log, 0, 1000, min_one_batch=True, read_committed=True)
    assert (open_read.last_stable_offset, open_read.high_watermark) == (1, 2)
    assert [each.value for each in decode_batch(open_read.buffers[0])] == [b"plain"]
    assert reading.read(partition.log, 1, 1000, min_one_batch=True, read_committed=True).size == 0
    marker = encode_end_txn_marker(
        producer_id=7, producer_epoch=0, committed=False, coordinator_epoch=0, timestamp=0
    )
    info = partition.log.append_as_leader(
        bytearray(marker), leader_epoch=0, now_ms=0, origin=AppendOrigin.COORDINATOR
    )
    partition._on_appended(partition._leader, info.last_offset + 1)  # type: ignore[arg-type]
    decided = reading.read(partition.log, 0, 1000, min_one_batch=True, read_committed=True)
    assert decided.aborted_transactions == [(7, 1)]
    assert decided.last_stable_offset == 3
    assert reading.read(partition.log, 0, 1000, min_one_batch=True).aborted_transactions is None


def test_deleting_records(host: Host) -> None:
    host.create_topic("a")
    host.create_topic("compacted", config={"cleanup.policy": "compact"})
    for value in (b"x", b"y", b"z"):
        host.append("a", value)
    partition = host.partition("a")
    assert delete_records(partition, 2) == 2
    assert delete_records(partition, 1) == 2
    assert _refusal(delete_records, partition, 4) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert _refusal(delete_records, partition, -2) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert delete_records(partition, -1) == 3
    assert _refusal(delete_records, host.partition("compacted"), 0) is ErrorCode.POLICY_VIOLATION
    assert (
        _refusal(reading.read, partition.log, 2, 100, min_one_batch=True)
        is ErrorCode.OFFSET_OUT_OF_RANGE
    )
