"""Markers as the transaction coordinator and WriteTxnMarkers see them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from moldau.broker.coordinator.machine.decision import TransactionEnding
from moldau.broker.coordinator.transaction.machine.values import Marker, MarkerResult
from moldau.broker.handlers.write_txn_markers import WriteTxnMarkersHandler
from moldau.broker.machine.topics import GROUP_OFFSETS_TOPIC
from moldau.broker.network.context import RequestContext
from moldau.broker.transactions.markers import LocalMarkers
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import WriteTxnMarkersRequest
from support.hosting import NODE_ID, OTHER_NODE_ID, Host

PID = 7


class Offsets:
    """A group coordinator that notes what it is told."""

    def __init__(self) -> None:
        self.ended: list[tuple[int, TransactionEnding]] = []
        self.error: Exception | None = None

    async def complete_transaction(self, partition: int, ending: TransactionEnding) -> None:
        if self.error is not None:
            raise self.error
        self.ended.append((partition, ending))


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


@pytest.fixture
def offsets() -> Offsets:
    return Offsets()


def marker(*partitions: tuple[str, int], epoch: int = 0, **fields: int) -> Marker:
    values = {"coordinator_epoch": 5, "transaction_version": 1} | fields
    return Marker(
        producer_id=PID, producer_epoch=epoch, committed=False, partitions=partitions, **values
    )


def begin(host: Host, topic: str, index: int = 0, epoch: int = 0) -> None:
    host.append(
        topic,
        b"x",
        index=index,
        producer_id=PID,
        producer_epoch=epoch,
        base_sequence=0,
        is_transactional=True,
    )


def write(host: Host, offsets: Offsets, *markers: Marker, wait_ms: int = 50) -> list[MarkerResult]:
    async def scene() -> list[MarkerResult]:
        writer = LocalMarkers(
            host.replicas,
            offsets,
            loop=asyncio.get_running_loop(),
            clock=host.loop.clock,
            timeout_ms=lambda: wait_ms,
        )
        return await writer.write(markers)

    return asyncio.run(scene())


def test_a_marker_ends_the_transaction_in_each_partition(host: Host, offsets: Offsets) -> None:
    host.create_topic("a", 2)
    begin(host, "a", 0)
    begin(host, "a", 1)
    results = write(host, offsets, marker(("a", 0), ("a", 1)))
    assert results == [{("a", 0): ErrorCode.NONE, ("a", 1): ErrorCode.NONE}]
    for index in (0, 1):
        log = host.partition("a", index).log
        assert log.last_stable_offset == log.high_watermark == 2
        (aborted,) = log.aborted_transactions(0, 2)
        assert (aborted.producer_id, aborted.first_offset) == (PID, 0)
        assert log.producers.entries[PID].coordinator_epoch == 5


def test_each_partition_has_its_own_outcome(host: Host, offsets: Offsets) -> None:
    host.create_topic("a")
    host.create_topic("theirs", replicas=(NODE_ID, OTHER_NODE_ID), leader=OTHER_NODE_ID)
    begin(host, "a", epoch=3)
    results = write(
        host,
        offsets,
        marker(("a", 0), ("a", 9), ("nope", 0), ("theirs", 0), epoch=2),
        marker(("a", 0), epoch=3),
        marker(("a", 0), epoch=3, coordinator_epoch=4),
    )
    assert results == [
        {
            ("a", 0): ErrorCode.INVALID_PRODUCER_EPOCH,
            ("a", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("nope", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("theirs", 0): ErrorCode.NOT_LEADER_OR_FOLLOWER,
        },
        {("a", 0): ErrorCode.NONE},
        {("a", 0): ErrorCode.TRANSACTION_COORDINATOR_FENCED},
    ]


def test_markers_of_version_2_have_an_epoch_of_their_own(host: Host, offsets: Offsets) -> None:
    host.create_topic("a")
    begin(host, "a", epoch=3)
    late = marker(("a", 0), epoch=3, transaction_version=2)
    due = marker(("a", 0), epoch=4, transaction_version=2)
    (refused,), (done,), (again,) = (
        result.values() for result in write(host, offsets, late, due, due)
    )
    # Written twice it ends nothing twice, so a coordinator may repeat what it is not sure of.
    assert [refused, done, again] == [
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.NONE,
        ErrorCode.NONE,
    ]
    assert len(host.partition("a").log.aborted_transactions(0, 9)) == 1


def test_none_is_told_only_after_commit(host: Host, offsets: Offsets) -> None:
    topic_id = host.create_topic("a", replicas=(NODE_ID, OTHER_NODE_ID))
    assert write(host, offsets, marker(("a", 0))) == [{("a", 0): ErrorCode.REQUEST_TIMED_OUT}]

    async def scene() -> list[MarkerResult]:
        writer = LocalMarkers(
            host.replicas,
            offsets,
            loop=asyncio.get_running_loop(),
            clock=host.loop.clock,
            timeout_ms=lambda: 60_000,
        )
        task = asyncio.create_task(writer.write([marker(("a", 0))]))
        await asyncio.sleep(0)
        assert not task.done()
        host.change_partition(topic_id, isr=[NODE_ID])
        return await task

    assert asyncio.run(scene()) == [{("a", 0): ErrorCode.NONE}]


def test_too_few_replicas_take_no_marker(host: Host, offsets: Offsets) -> None:
    host.create_topic(
        "a",
        replicas=(NODE_ID, OTHER_NODE_ID),
        isr=(NODE_ID,),
        config={"min.insync.replicas": "2"},
    )
    assert write(host, offsets, marker(("a", 0))) == [{("a", 0): ErrorCode.NOT_ENOUGH_REPLICAS}]
    assert host.partition("a").log.log_end_offset == 0


def test_offsets_go_through_the_group_coordinator(host: Host, offsets: Offsets) -> None:
    host.create_topic(GROUP_OFFSETS_TOPIC, 2)
    ending = marker((GROUP_OFFSETS_TOPIC, 1))
    assert write(host, offsets, ending) == [{(GROUP_OFFSETS_TOPIC, 1): ErrorCode.NONE}]
    assert offsets.ended == [(1, ending)]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_a_group_coordinator_that_is_not_ready(
    host: Host, offsets: Offsets, error: ErrorCode, told: ErrorCode
) -> None:
    host.create_topic(GROUP_OFFSETS_TOPIC)
    offsets.error = ApiError(error, "as told")
    assert write(host, offsets, marker((GROUP_OFFSETS_TOPIC, 0))) == [
        {(GROUP_OFFSETS_TOPIC, 0): told}
    ]


def test_a_bug_costs_one_partition(host: Host, offsets: Offsets) -> None:
    host.create_topic("a")
    host.create_topic(GROUP_OFFSETS_TOPIC)
    offsets.error = RuntimeError("a bug")
    assert write(host, offsets, marker(("a", 0), (GROUP_OFFSETS_TOPIC, 0))) == [
        {
            ("a", 0): ErrorCode.NONE,
            (GROUP_OFFSETS_TOPIC, 0): ErrorCode.UNKNOWN_SERVER_ERROR,
        }
    ]


def test_the_api_answers_once_per_producer() -> None:
    class Writer:
        async def write(self, markers: list[Marker]) -> list[MarkerResult]:
            assert [each.transaction_version for each in markers] == [0, 2]
            return [
                dict.fromkeys(each.partitions, ErrorCode(index * 3))
                for index, each in enumerate(markers)
            ]

    topic = WriteTxnMarkersRequest.WritableTxnMarkerTopic
    request = WriteTxnMarkersRequest(
        markers=[
            WriteTxnMarkersRequest.WritableTxnMarker(
                producer_id=1, topics=[topic(name="a", partition_indexes=[0, 1])]
            ),
            WriteTxnMarkersRequest.WritableTxnMarker(
                producer_id=1,
                transaction_version=2,
                topics=[topic(name="a", partition_indexes=[1]), topic(name="b")],
            ),
        ]
    )
    context = RequestContext(ApiKey.WRITE_TXN_MARKERS, 2, 1, None)
    response = asyncio.run(WriteTxnMarkersHandler(Writer()).handle(context, request))  # type: ignore[arg-type]
    (result,) = response.markers
    assert result.producer_id == 1
    assert [
        (each.name, [(part.partition_index, part.error_code) for part in each.partitions])
        for each in result.topics
    ] == [("a", [(0, 0), (1, 3)])]
