"""Produce as a client sees it."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from moldau.broker.handlers.produce import ProduceHandler
from moldau.broker.network.context import RequestContext
from moldau.broker.network.interface import InvalidRequest
from moldau.broker.replication import reading
from moldau.wire.apis import ApiKey
from moldau.wire.codec import decode, encode
from moldau.wire.compression import Compression
from moldau.wire.errors import ErrorCode, WireError
from moldau.wire.messages import ProduceRequest, ProduceResponse
from moldau.wire.records import decode_batch, encode_end_txn_marker
from support.hosting import NODE_ID, OTHER_NODE_ID, Host, VirtualFuture, batch_of

VERSIONS = range(3, 14)


class Client:
    def __init__(self, host: Host) -> None:
        self.host = host
        self.handler = ProduceHandler(host.replicas, loop=host.loop, clock=host.loop.clock)

    def send(
        self,
        *records: tuple[str | UUID, int, bytes | None],
        version: int = 9,
        acks: int = 1,
        timeout_ms: int = 1000,
        client_id: str | None = None,
        transactional_id: str | None = None,
    ) -> Any:
        topics: dict[str | UUID, Any] = {}
        for topic, index, data in records:
            entry = topics.setdefault(
                topic,
                ProduceRequest.TopicProduceData(
                    **({"topic_id": topic} if isinstance(topic, UUID) else {"name": topic})
                ),
            )
            entry.partition_data.append(
                ProduceRequest.PartitionProduceData(index=index, records=data)
            )
        request = ProduceRequest(
            acks=acks,
            timeout_ms=timeout_ms,
            topic_data=list(topics.values()),
            transactional_id=transactional_id,
        )
        context = RequestContext(ApiKey.PRODUCE, version, 42, client_id)
        frame = memoryview(bytearray(b"head" + encode(request, version)))
        return self.handler.handle(context, frame, 4)


def decoded(frame: Any, version: int = 9) -> ProduceResponse:
    if isinstance(frame, VirtualFuture):
        frame = frame.result()
    size, correlation_id = struct.unpack_from(">ii", frame)
    assert (size, correlation_id) == (len(frame) - 4, 42)
    return decode(ProduceResponse, version, frame, 9 if version >= 9 else 8)


def only(frame: Any, version: int = 9) -> ProduceResponse.PartitionProduceResponse:
    ((partition,),) = (topic.partition_responses for topic in decoded(frame, version).responses)
    return partition


def code(frame: Any, version: int = 9) -> ErrorCode:
    return ErrorCode(only(frame, version).error_code)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


@pytest.fixture
def client(host: Host) -> Client:
    return Client(host)


def _values(host: Host, topic: str, index: int = 0) -> list[bytes | None]:
    read = reading.read(host.partition(topic, index).log, 0, 10**6, min_one_batch=True)
    data = b"".join(read.buffers)
    values: list[bytes | None] = []
    position = 0
    while position < len(data):
        values += [record.value for record in decode_batch(data, position)]
        position += 12 + struct.unpack_from(">i", data, position + 8)[0]
    return values


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_batch_is_appended_and_answered(
    host: Host, client: Client, version: int, acks: int
) -> None:
    topic_id = host.create_topic("a", 2)
    key = topic_id if version >= 13 else "a"
    assert only(
        client.send((key, 1, batch_of(b"x", b"y")), version=version, acks=acks), version
    ).base_offset == (0)
    answer = only(client.send((key, 1, batch_of(b"z")), version=version, acks=acks), version)
    assert (answer.index, answer.error_code, answer.base_offset) == (1, 0, 2)
    assert answer.log_append_time_ms == -1
    assert answer.log_start_offset == (0 if version >= 5 else -1)
    assert _values(host, "a", 1) == [b"x", b"y", b"z"]


def test_many_partitions_each_have_their_own_outcome(host: Host, client: Client) -> None:
    host.create_topic("a", 2)
    response = decoded(
        client.send(
            ("a", 0, batch_of(b"x")),
            ("a", 1, b"garbage"),
            ("a", 2, batch_of(b"y")),
            ("nope", 0, batch_of(b"z")),
        )
    )
    assert [
        (topic.name, part.index, ErrorCode(part.error_code).name)
        for topic in response.responses
        for part in topic.partition_responses
    ] == [
        ("a", 0, "NONE"),
        ("a", 1, "INVALID_RECORD"),
        ("a", 2, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("nope", 0, "UNKNOWN_TOPIC_OR_PARTITION"),
    ]
    assert _values(host, "a") == [b"x"]


def test_an_unknown_topic_id(client: Client) -> None:
    frame = client.send((UUID(int=9), 0, batch_of(b"x")), version=13)
    assert code(frame, 13) is ErrorCode.UNKNOWN_TOPIC_ID


def test_acks_zero_has_no_answer_but_closes_on_errors(host: Host, client: Client) -> None:
    host.create_topic("a")
    assert client.send(("a", 0, batch_of(b"x")), acks=0) is None
    assert _values(host, "a") == [b"x"]
    with pytest.raises(InvalidRequest, match="a-1: UNKNOWN_TOPIC_OR_PARTITION"):
        client.send(("a", 1, batch_of(b"x")), acks=0)
    with pytest.raises(InvalidRequest, match="a-0: INVALID_RECORD"):
        client.send(("a", 0, b""), ("a", 1, batch_of(b"x")), acks=0)


@pytest.mark.parametrize("acks", [2, -2])
def test_other_acks_are_refused(host: Host, client: Client, acks: int) -> None:
    host.create_topic("a")
    frame = client.send(("a", 0, batch_of(b"x")), acks=acks)
    assert code(frame) is ErrorCode.INVALID_REQUIRED_ACKS
    assert _values(host, "a") == []


_WHOLE = batch_of(b"x")
_OLD_MAGIC = _WHOLE[:16] + b"\x01" + _WHOLE[17:]
_BAD_CRC = _WHOLE[:-1] + bytes([_WHOLE[-1] ^ 1])


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        pytest.param(None, ErrorCode.INVALID_RECORD, id="null"),
        pytest.param(b"", ErrorCode.INVALID_RECORD, id="empty"),
        pytest.param(_WHOLE[:16], ErrorCode.INVALID_RECORD, id="no header"),
        pytest.param(_WHOLE[:-1], ErrorCode.INVALID_RECORD, id="cut"),
        pytest.param(_WHOLE + _WHOLE, ErrorCode.INVALID_RECORD, id="two batches"),
        pytest.param(_OLD_MAGIC, ErrorCode.INVALID_RECORD, id="magic 1"),
        pytest.param(_BAD_CRC, ErrorCode.CORRUPT_MESSAGE, id="bad crc"),
        pytest.param(
            _WHOLE[:8] + struct.pack(">i", -5) + _WHOLE[12:],
            ErrorCode.CORRUPT_MESSAGE,
            id="negative length",
        ),
        pytest.param(
            encode_end_txn_marker(
                producer_id=1, producer_epoch=0, committed=True, coordinator_epoch=0, timestamp=0
            ),
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            id="a marker",
        ),
    ],
)
def test_anything_but_one_good_batch_is_refused(
    host: Host, client: Client, records: bytes | None, expected: ErrorCode
) -> None:
    host.create_topic("a")
    answer = only(client.send(("a", 0, records)))
    assert (answer.error_code, answer.base_offset) == (expected, -1)
    assert answer.error_message
    assert _values(host, "a") == []


def test_an_incomplete_second_batch_is_cut_off(host: Host, client: Client) -> None:
    host.create_topic("a")
    assert code(client.send(("a", 0, _WHOLE + _WHOLE[:-1]))) is ErrorCode.NONE
    assert _values(host, "a") == [b"x"]


@pytest.mark.parametrize(
    ("version", "expected"), [(6, "UNSUPPORTED_COMPRESSION_TYPE"), (7, "NONE")]
)
def test_zstd_needs_version_7(host: Host, client: Client, version: int, expected: str) -> None:
    host.create_topic("a")
    batch = batch_of(b"x" * 100, compression=Compression.ZSTD)
    assert code(client.send(("a", 0, batch), version=version), version).name == expected


def test_record_errors_are_listed(host: Host, client: Client) -> None:
    host.create_topic("a", config={"cleanup.policy": "compact"})
    answer = only(client.send(("a", 0, batch_of(b"x", b"y"))))
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors] == [0, 1]
    assert answer.error_message
    assert answer.log_start_offset == 0


def test_log_append_time_is_told(host: Host, client: Client) -> None:
    host.create_topic("a", config={"message.timestamp.type": "LogAppendTime"})
    answer = only(client.send(("a", 0, batch_of(b"x", now_ms=5))))
    assert answer.log_append_time_ms == host.loop.now_ms


@pytest.mark.parametrize(("client_id", "expected"), [("me", 17), (None, 17), ("__admin_client", 0)])
def test_internal_topics_are_for_the_admin_client(
    host: Host, client: Client, client_id: str | None, expected: int
) -> None:
    host.create_topic("__consumer_offsets", config={"cleanup.policy": "delete"})
    frame = client.send(("__consumer_offsets", 0, batch_of(b"x")), client_id=client_id)
    assert code(frame) == expected


def test_a_repeated_batch_gets_its_first_offset(host: Host, client: Client) -> None:
    host.create_topic("a")
    fields = {"producer_id": 5, "producer_epoch": 0}
    first, second = (batch_of(b"x", base_sequence=seq, **fields) for seq in (0, 1))
    assert only(client.send(("a", 0, first))).base_offset == 0
    assert only(client.send(("a", 0, second))).base_offset == 1
    again = only(client.send(("a", 0, first), acks=-1))
    assert (again.error_code, again.base_offset) == (0, 0)
    assert len(_values(host, "a")) == 2
    gap = batch_of(b"x", base_sequence=9, **fields)
    assert code(client.send(("a", 0, gap))) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    old = batch_of(b"x", base_sequence=2, producer_id=5, producer_epoch=-1)
    assert code(client.send(("a", 0, old))) is not ErrorCode.NONE


def test_transactional_records_need_a_transactional_id(host: Host, client: Client) -> None:
    host.create_topic("a", 2)
    batch = batch_of(b"x", producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
    response = decoded(client.send(("a", 0, batch_of(b"y")), ("a", 1, batch)))
    assert [part.error_code for part in response.responses[0].partition_responses] == [53, 53]
    assert code(client.send(("a", 1, batch))) is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert code(client.send(("a", 1, batch), transactional_id="t")) is ErrorCode.NONE


@pytest.mark.parametrize("version", [9, 10, 13])
def test_who_leads_is_told_from_version_10(host: Host, client: Client, version: int) -> None:
    topic_id = host.create_topic("b", replicas=(OTHER_NODE_ID,), leader=OTHER_NODE_ID)
    key = topic_id if version >= 13 else "b"
    response = decoded(client.send((key, 0, batch_of(b"x")), version=version), version)
    answer = response.responses[0].partition_responses[0]
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    leader = (answer.current_leader.leader_id, answer.current_leader.leader_epoch)
    nodes = [(node.node_id, node.host, node.port) for node in response.node_endpoints]
    if version >= 10:
        assert (leader, nodes) == ((OTHER_NODE_ID, 0), [(OTHER_NODE_ID, "host2", 9002)])
    else:
        assert (leader, nodes) == ((-1, -1), [])


def test_acks_all_waits_for_the_high_watermark(host: Host, client: Client) -> None:
    topic_id = host.create_topic("a", 2, replicas=(NODE_ID, OTHER_NODE_ID))
    waiting = client.send(("a", 0, batch_of(b"x")), ("a", 1, batch_of(b"y")), acks=-1)
    assert not waiting.done()
    host.change_partition(topic_id, 0, isr=[NODE_ID])
    assert not waiting.done()
    host.change_partition(topic_id, 1, isr=[NODE_ID])
    parts = decoded(waiting).responses[0].partition_responses
    assert [(part.error_code, part.base_offset) for part in parts] == [(0, 0), (0, 0)]
    assert (len(client.handler.purgatory), host.loop.timers_count) == (0, 0)


def test_acks_all_gives_up_after_the_timeout(host: Host, client: Client) -> None:
    topic_id = host.create_topic("a", replicas=(NODE_ID, OTHER_NODE_ID))
    waiting = client.send(("a", 0, batch_of(b"x")), acks=-1, timeout_ms=500)
    host.loop.advance(499)
    assert not waiting.done()
    host.loop.advance(1)
    assert code(waiting) is ErrorCode.REQUEST_TIMED_OUT
    host.change_partition(topic_id, isr=[NODE_ID])
    assert len(client.handler.purgatory) == 0


def test_acks_all_learns_of_lost_leadership(host: Host, client: Client) -> None:
    lost = host.create_topic("lost", replicas=(NODE_ID, OTHER_NODE_ID))
    waiting = client.send(("lost", 0, batch_of(b"x")), acks=-1)
    host.change_partition(lost, leader=OTHER_NODE_ID)
    assert code(waiting) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_too_few_in_sync(host: Host, client: Client) -> None:
    host.create_topic(
        "a",
        replicas=(NODE_ID, OTHER_NODE_ID),
        isr=(NODE_ID,),
        config={"min.insync.replicas": "2"},
    )
    frame = client.send(("a", 0, batch_of(b"x")), acks=-1)
    assert code(frame) is ErrorCode.NOT_ENOUGH_REPLICAS


def test_a_client_that_went_away_leaves_nothing_behind(host: Host, client: Client) -> None:
    topic_id = host.create_topic("a", replicas=(NODE_ID, OTHER_NODE_ID))
    client.send(("a", 0, batch_of(b"x")), acks=-1).cancel()
    assert (len(client.handler.purgatory), host.loop.timers_count) == (0, 0)
    host.change_partition(topic_id, isr=[NODE_ID])


def test_flush_messages_is_on_disk_before_it_is_acknowledged(host: Host, client: Client) -> None:
    host.create_topic("a", config={"flush.messages": "1"})
    assert only(client.send(("a", 0, batch_of(b"x")))).base_offset == 0
    assert host.partition("a").log.recovery_point == 1
    assert client.send(("a", 0, batch_of(b"x")), acks=0) is None
    assert host.partition("a").log.recovery_point == 2


def test_a_failing_disk_is_answered_and_others_go_on(tmp_path: Path) -> None:
    host = Host(tmp_path, directories=("one", "two"))
    host.create_topic("a", 2)
    client = Client(host)
    host.partition("a", 0).log.segments.active.file = FullDisk()  # type: ignore[assignment]
    assert code(client.send(("a", 0, batch_of(b"x")))) is ErrorCode.KAFKA_STORAGE_ERROR
    assert code(client.send(("a", 0, batch_of(b"x")))) is ErrorCode.KAFKA_STORAGE_ERROR
    assert code(client.send(("a", 1, batch_of(b"x")))) is ErrorCode.NONE


class FullDisk:
    size = 0

    def write(self, *args: object) -> None:
        raise OSError(28, "No space left on device")


def test_a_malformed_body_is_a_wire_error(client: Client) -> None:
    with pytest.raises(WireError):
        client.handler.handle(RequestContext(ApiKey.PRODUCE, 9), memoryview(b"\xff" * 9), 0)
