"""Bytes worked out by hand, and what must not be written or read."""

from __future__ import annotations

from uuid import UUID

import pytest

from moldau.wire.codec import (
    decode,
    decode_prefix,
    encode,
    encode_into,
    read_unsigned_varint,
    write_unsigned_varint,
)
from moldau.wire.errors import WireError
from moldau.wire.message import Message
from moldau.wire.messages import (
    ApiVersionsRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupMemberMetadataValue,
    DescribeTopicPartitionsRequest,
    FetchRequest,
    FetchSnapshotResponse,
    FindCoordinatorRequest,
    HeartbeatRequest,
    MetadataRequest,
    OffsetCommitRequest,
    PartitionChangeRecord,
    ProduceRequest,
    TransactionLogValue,
)

TOPIC_ID = UUID("00112233-4455-6677-8899-aabbccddeeff")


@pytest.mark.parametrize(
    ("message", "version", "expected"),
    [
        pytest.param(
            HeartbeatRequest(group_id="g", generation_id=7, member_id="m"),
            0,
            "0001 67 00000007 0001 6d",
            id="fixed-length sizes",
        ),
        pytest.param(
            HeartbeatRequest(group_id="g", generation_id=7, member_id="m", group_instance_id="i"),
            4,
            "02 67 00000007 02 6d 02 69 00",
            id="compact strings and a tag section",
        ),
        pytest.param(
            HeartbeatRequest(group_id="g", generation_id=7, member_id="m"),
            3,
            "0001 67 00000007 0001 6d ffff",
            id="null string",
        ),
        pytest.param(MetadataRequest(topics=None), 1, "ffffffff", id="null array"),
        pytest.param(MetadataRequest(topics=[]), 0, "00000000", id="empty array"),
        pytest.param(MetadataRequest(topics=None), 9, "00 01 00 00 00", id="null compact array"),
        pytest.param(
            MetadataRequest(
                topics=[MetadataRequest.MetadataRequestTopic(topic_id=TOPIC_ID, name=None)],
                allow_auto_topic_creation=False,
            ),
            12,
            "02 00112233445566778899aabbccddeeff 00 00 00 00 00",
            id="uuid",
        ),
        pytest.param(
            DescribeTopicPartitionsRequest(topics=[], response_partition_limit=1, cursor=None),
            0,
            "01 00000001 ff 00",
            id="null struct",
        ),
        pytest.param(
            DescribeTopicPartitionsRequest(
                response_partition_limit=1,
                cursor=DescribeTopicPartitionsRequest.Cursor(topic_name="t", partition_index=2),
            ),
            0,
            "01 00000001 01 02 74 00000002 00 00",
            id="struct that could be null",
        ),
        pytest.param(
            PartitionChangeRecord(partition_id=1, topic_id=TOPIC_ID, leader=3),
            0,
            "00000001 00112233445566778899aabbccddeeff 01 01 04 00000003",
            id="one tagged field of many",
        ),
        pytest.param(
            TransactionLogValue(producer_id=1, next_producer_epoch=5, client_transaction_version=2),
            1,
            "0000000000000001 0000 00000000 00 01 0000000000000000 0000000000000000"
            "02 02 02 0002 03 02 0005",
            id="tags ascend whatever the order of the fields",
        ),
        pytest.param(
            ConsumerGroupMemberMetadataValue(classic_member_metadata=None, rack_id=None),
            0,
            "01 00 01 01 01 01 ffffffff 01 01 00 01 00",
            id="null struct in a tagged field, whose default is not null",
        ),
        pytest.param(
            ConsumerGroupMemberMetadataValue(
                classic_member_metadata=ConsumerGroupMemberMetadataValue.ClassicMemberMetadata(
                    session_timeout_ms=9
                )
            ),
            0,
            "01 01 01 01 01 01 ffffffff 01 01 00 07 01 00000009 01 00",
            id="struct in a tagged field that could be null",
        ),
    ],
)
def test_known_bytes(message: Message, version: int, expected: str) -> None:
    data = bytes.fromhex(expected)
    assert encode(message, version).hex() == data.hex()
    assert decode(type(message), version, data) == message


def test_unknown_tags_are_kept_and_written_in_order_with_known_ones() -> None:
    data = bytes.fromhex("02 67 00000007 02 6d 00") + bytes.fromhex("02 05 01 aa 8001 02 bbcc")
    message = decode(HeartbeatRequest, 4, data)
    assert message.unknown_tagged_fields == {5: b"\xaa", 128: b"\xbb\xcc"}
    assert encode(message, 4) == data
    change = PartitionChangeRecord(leader=3)
    change.unknown_tagged_fields = {0x7F: b"z"}
    tail = encode(change, 0)[20:]
    assert tail.hex() == "02" + "010400000003" + "7f017a"


def test_unknown_tags_cannot_be_written_in_an_inflexible_version() -> None:
    message = HeartbeatRequest(group_id="g")
    message.unknown_tagged_fields = {5: b"x"}
    with pytest.raises(WireError, match="no tagged fields"):
        encode(message, 3)


@pytest.mark.parametrize(
    ("message", "version", "reason"),
    [
        pytest.param(
            HeartbeatRequest(group_id="g", group_instance_id="static"),
            2,
            "group_instance_id does not exist in v2 but is 'static'",
            id="value in a version without the field",
        ),
        pytest.param(
            FetchRequest(replica_state=FetchRequest.ReplicaState(replica_id=3)),
            14,
            "replica_state does not exist",
            id="struct in a version without it",
        ),
        pytest.param(
            FindCoordinatorRequest(coordinator_keys=["a"]), 3, "coordinator_keys", id="array"
        ),
        pytest.param(MetadataRequest(topics=None), 0, "cannot be written", id="null array"),
        pytest.param(
            HeartbeatRequest(group_id=None),  # type: ignore[arg-type]
            0,
            "cannot be written",
            id="null string",
        ),
        pytest.param(HeartbeatRequest(generation_id=2**31), 0, "cannot be written", id="range"),
        pytest.param(HeartbeatRequest(group_id="x" * 32768), 0, "cannot be written", id="long"),
        pytest.param(HeartbeatRequest(group_id="x" * 32768), 4, "too long", id="long, compact"),
        pytest.param(HeartbeatRequest(group_id="\ud800"), 0, "surrogates", id="lone surrogate"),
        pytest.param(HeartbeatRequest(), 5, "no version 5: versions are 0 to 4", id="version"),
        pytest.param(ProduceRequest(), 2, "no version 2", id="removed version"),
    ],
)
def test_what_cannot_be_written(message: Message, version: int, reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        encode(message, version)


def test_ignorable_fields_are_dropped_silently() -> None:
    message = FetchRequest(rack_id="r1", session_id=9)
    assert decode(FetchRequest, 4, encode(message, 4)) == FetchRequest()
    # ReplicaId of v14 is not ignorable in v15, but has its default here.
    assert decode(FetchRequest, 15, encode(message, 15)) == message


def test_absent_fields_read_as_their_defaults() -> None:
    old = decode(
        OffsetCommitRequest, 2, bytes.fromhex("0000 00000001 0000 0000000000000005 00000000")
    )
    assert old.retention_time_ms == 5
    new = decode(OffsetCommitRequest, 8, bytes.fromhex("01 00000001 01 00 01 00"))
    assert new.retention_time_ms == -1
    assert new.group_instance_id is None


@pytest.mark.parametrize(
    ("cls", "version", "data", "reason"),
    [
        pytest.param(HeartbeatRequest, 0, "ffff", "group_id must not be null", id="null"),
        pytest.param(HeartbeatRequest, 4, "00", "group_id must not be null", id="compact null"),
        pytest.param(HeartbeatRequest, 0, "0001 ff 00000000 0000", "utf-8", id="not UTF-8"),
        pytest.param(HeartbeatRequest, 4, "8180808080", "varint", id="endless varint"),
        pytest.param(HeartbeatRequest, 4, "ffffffff7f", "varint", id="varint above 32 bits"),
        pytest.param(HeartbeatRequest, 4, "818002 61", "32767", id="string above 32767"),
        pytest.param(MetadataRequest, 1, "7fffffff 0000", "more elements", id="huge count"),
        pytest.param(MetadataRequest, 9, "ffffffff0f 00", "more elements", id="huge varint count"),
        pytest.param(HeartbeatRequest, 4, "0100000000010005 00", "tagged", id="tag count"),
        pytest.param(HeartbeatRequest, 4, "010000000001000100ff01", "cut off", id="tag size"),
        pytest.param(
            PartitionChangeRecord,
            0,
            "00000001" + "00" * 16 + "01 01 05 00000003 00",
            "leader has a wrong size",
            id="tag of another size than its value",
        ),
        pytest.param(FetchSnapshotResponse, 9, "", "no version 9", id="unknown version"),
    ],
)
def test_what_cannot_be_read(cls: type[Message], version: int, data: str, reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        decode(cls, version, bytes.fromhex(data))


def test_a_nested_struct_is_no_message() -> None:
    with pytest.raises(TypeError, match="part of a message"):
        encode(FetchRequest.FetchTopic(), 4)


def test_encode_into_appends() -> None:
    out = bytearray(b"head")
    encode_into(ApiVersionsRequest(client_software_name="n", client_software_version="1"), 3, out)
    assert out == b"head\x02n\x021\x00"


def test_position_after_the_message() -> None:
    data = b"\x00\x00\x00\x00" + b"rest"
    assert decode_prefix(MetadataRequest, 1, data) == (MetadataRequest(), 4)
    assert decode_prefix(MetadataRequest, 1, memoryview(b"xx" + data), 2)[1] == 6


def test_values_of_any_buffer_are_written() -> None:
    partition = ProduceRequest.PartitionProduceData(records=memoryview(b"batch"))
    topic = ProduceRequest.TopicProduceData(name="t", partition_data=[partition])
    for version in (3, 12):
        data = encode(ProduceRequest(acks=1, topic_data=[topic]), version)
        decoded = decode(ProduceRequest, version, data)
        assert decoded.topic_data[0].partition_data[0].records == b"batch"


def test_struct_with_presence_byte_needs_its_body() -> None:
    # Throttle time, error, message, member id, epoch, interval; then the assignment's mark.
    head = bytes.fromhex("00000000 0000 00 00 00000001 00000005")
    assert decode(ConsumerGroupHeartbeatResponse, 0, head + b"\xff\x00").assignment is None
    with pytest.raises(WireError):
        decode(ConsumerGroupHeartbeatResponse, 0, head + b"\x01")


@pytest.mark.parametrize(
    ("value", "data"),
    [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02"), (2**32 - 1, "ffffffff0f")],
)
def test_unsigned_varint(value: int, data: str) -> None:
    out = bytearray()
    write_unsigned_varint(out, value)
    assert out.hex() == data
    assert read_unsigned_varint(b"#" + out, 1) == (value, 1 + len(out))


@pytest.mark.parametrize("data", ["", "80", "ffffffff", "8080808080", "ffffffff10"])
def test_bad_unsigned_varint(data: str) -> None:
    with pytest.raises(WireError):
        read_unsigned_varint(bytes.fromhex(data), 0)
