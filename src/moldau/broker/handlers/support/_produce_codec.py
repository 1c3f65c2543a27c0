# cython: annotation_typing=False
"""Produce requests read straight from the receive buffer, and their responses, versions 3 to 13.

The message codecs made from the schemas copy records into bytes objects; here the records of each
partition stay a view of the frame. The response for a single partition, as of nearly all requests,
is two precompiled packs around the topic. Both agree with the general codec byte for byte.

Plain Python, and with `_produce_codec.pxd` beside it also the source of a compiled module.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from moldau.broker.replication.machine.names import NodeEndpoint, TopicKey
from moldau.wire._flexible import (
    compact_string,
    read_compact_string,
    read_text,
    read_varint,
    skip_tagged_fields,
    varint,
)
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.errors import WireError
from moldau.wire.framing import decode_response, encode_response_frame

FLEXIBLE_SINCE = 9
TOPIC_IDS_SINCE = 13
RECORD_ERRORS_SINCE = 8
LOG_START_SINCE = 5
CURRENT_LEADER_SINCE = 10
_COMPACT_ONE_BYTE_MAX = 126

PartitionRecords = tuple[int, memoryview | None]


class ProduceBody(NamedTuple):
    """A Produce request; records are views of the frame, valid until the handler returns."""

    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: list[tuple[TopicKey, list[PartitionRecords]]]
    # Topics that the client may not write to.
    denied: frozenset[TopicKey] = frozenset()


class PartitionAnswer(NamedTuple):
    """The result of one partition."""

    partition: int
    error_code: int = 0
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: Sequence[tuple[int, str | None]] = ()
    error_message: str | None = None
    current_leader: tuple[int, int] | None = None


_PRODUCE = API_BY_KEY[ApiKey.PRODUCE]
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INDEX_AND_SIZE = struct.Struct(">ii")
_ACKS_TIMEOUT = struct.Struct(">hi")
_NO_TRANSACTION_HEAD = struct.Struct(">hhii")
_ACKS_TIMEOUT_COUNT = struct.Struct(">hii")


def decode_produce(version: int, frame: memoryview, position: int) -> ProduceBody:
    """Read the body of a Produce request that starts at `position`; WireError if malformed."""
    try:
        if version < FLEXIBLE_SINCE:
            return _decode_classic(frame, position)
        return _decode_flexible(frame, position, version >= TOPIC_IDS_SINCE)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise WireError(f"Produce v{version} request is malformed: {error}") from None


SingleProduce = tuple[int, int, TopicKey, int, memoryview]
"""acks, timeout_ms, topic, partition and records."""

_SINGLE_CLASSIC = struct.Struct(">hhiih")
_SINGLE_CLASSIC_PARTITION = struct.Struct(">iii")
_SINGLE_FLEXIBLE = struct.Struct(">bhiBB")
_SINGLE_FLEXIBLE_PARTITION = struct.Struct(">BiB")
_SINGLE_TOPIC_ID = struct.Struct(">bhiB16sBiB")
_NO_TAGS = struct.Struct(">3s")
_NO_TAGS_VALUE = (b"\0\0\0",)


def decode_single_produce(version: int, frame: memoryview, position: int) -> SingleProduce | None:
    """Read a request of the plainest form: one partition, no transactional id, no tagged fields.

    None for any other form, including malformed ones: `decode_produce` handles those.
    """
    try:
        if version >= FLEXIBLE_SINCE:
            return _decode_single_flexible(version, frame, position)
        null, acks, timeout_ms, topics, length = _SINGLE_CLASSIC.unpack_from(frame, position)
        position += _SINGLE_CLASSIC.size
        if null != -1 or topics != 1 or length < 0:
            return None
        name = str(frame[position : position + length], "utf-8")
        position += length
        partitions, index, size = _SINGLE_CLASSIC_PARTITION.unpack_from(frame, position)
        position += _SINGLE_CLASSIC_PARTITION.size
        end = position + size
        if partitions != 1 or size < 0 or end > len(frame):
            return None
        return acks, timeout_ms, name, index, frame[position:end]
    except (struct.error, IndexError, UnicodeDecodeError):
        return None


def _decode_single_flexible(version: int, frame: memoryview, position: int) -> SingleProduce | None:
    key: TopicKey
    if version >= TOPIC_IDS_SINCE:
        null, acks, timeout_ms, topics, key, partitions, index, size = _SINGLE_TOPIC_ID.unpack_from(
            frame, position
        )
        position += _SINGLE_TOPIC_ID.size
    else:
        null, acks, timeout_ms, topics, length = _SINGLE_FLEXIBLE.unpack_from(frame, position)
        position += _SINGLE_FLEXIBLE.size
        if not 0 < length <= _COMPACT_ONE_BYTE_MAX + 1:
            return None
        name_end = position + length - 1
        key = str(frame[position:name_end], "utf-8")
        partitions, index, size = _SINGLE_FLEXIBLE_PARTITION.unpack_from(frame, name_end)
        position = name_end + _SINGLE_FLEXIBLE_PARTITION.size
    if null or topics != 2 or partitions != 2:
        return None
    if size >= 0x80:
        size, position = read_varint(frame, position - 1)
    end = position + size - 1
    if not size or _NO_TAGS.unpack_from(frame, end) != _NO_TAGS_VALUE:
        return None
    return acks, timeout_ms, key, index, frame[position:end]


def _decode_classic(frame: memoryview, position: int) -> ProduceBody:
    transactional_id: str | None = None
    length, acks, timeout_ms, count = _NO_TRANSACTION_HEAD.unpack_from(frame, position)
    position += 12
    if length != -1:
        transactional_id, position = read_text(frame, position - 10, length)
        acks, timeout_ms, count = _ACKS_TIMEOUT_COUNT.unpack_from(frame, position)
        position += 10
    end = len(frame)
    topics: list[tuple[TopicKey, list[PartitionRecords]]] = []
    for _ in range(_counted(count)):
        (length,) = _INT16.unpack_from(frame, position)
        name, position = read_text(frame, position + 2, length)
        (partition_count,) = _INT32.unpack_from(frame, position)
        position += 4
        partitions: list[PartitionRecords] = []
        for _ in range(_counted(partition_count)):
            index, size = _INDEX_AND_SIZE.unpack_from(frame, position)
            position += 8
            if size < 0:
                if size != -1:
                    raise WireError(f"Produce records at byte {position} have size {size}")
                partitions.append((index, None))
                continue
            records_end = position + size
            if records_end > end:
                raise WireError(f"Produce records of {size} bytes end past the frame")
            partitions.append((index, frame[position:records_end]))
            position = records_end
        topics.append((name, partitions))
    return ProduceBody(transactional_id, acks, timeout_ms, topics)


def _counted(count: int) -> int:
    if count < 0:
        raise WireError(f"array of {count} elements where Produce allows no null")
    return count


def _decode_flexible(frame: memoryview, position: int, topic_ids: bool) -> ProduceBody:
    transactional_id: str | None = None
    if frame[position]:
        transactional_id, position = read_compact_string(frame, position)
    else:
        position += 1
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(frame, position)
    count, position = read_varint(frame, position + 6)
    topics: list[tuple[TopicKey, list[PartitionRecords]]] = []
    for _ in range(_counted(count - 1)):
        key: TopicKey | None
        if topic_ids:
            key = bytes(frame[position : position + 16])
            position += 16
        else:
            key, position = read_compact_string(frame, position)
            if key is None:
                raise WireError("Produce request has a topic without a name")
        partition_count, position = read_varint(frame, position)
        partitions, position = _flexible_partitions(frame, position, _counted(partition_count - 1))
        position = position + 1 if not frame[position] else skip_tagged_fields(frame, position)
        topics.append((key, partitions))
    skip_tagged_fields(frame, position)
    return ProduceBody(transactional_id, acks, timeout_ms, topics)


def _flexible_partitions(
    frame: memoryview, position: int, count: int
) -> tuple[list[PartitionRecords], int]:
    partitions: list[PartitionRecords] = []
    end = len(frame)
    for _ in range(count):
        (index,) = _INT32.unpack_from(frame, position)
        size, position = read_varint(frame, position + 4)
        records: memoryview | None = None
        if size:
            records_end = position + size - 1
            if records_end > end:
                raise WireError(f"Produce records of {size - 1} bytes end past the frame")
            records = frame[position:records_end]
            position = records_end
        position = position + 1 if not frame[position] else skip_tagged_fields(frame, position)
        partitions.append((index, records))
    return partitions, position


# One topic, one partition, no error: (size, correlation id, [header tags], topic count, name size)
# + topic + (partition count, index, error, base offset, append time, [log start],
# [record errors, message], [tags], throttle time, [tags]).
_ONE_HEAD_CLASSIC = struct.Struct(">iiih")
_ONE_HEAD_FLEXIBLE = struct.Struct(">iibbb")
_ONE_HEAD_TOPIC_ID = struct.Struct(">iibb16sbihqqqbbbbib")
_ONE_TAIL_V3 = struct.Struct(">iihqqi")
_ONE_TAIL_V5 = struct.Struct(">iihqqqi")
_ONE_TAIL_V8 = struct.Struct(">iihqqqihi")
_ONE_TAIL_V9 = struct.Struct(">bihqqqbbbbib")


def encode_produce_success(
    version: int,
    correlation_id: int,
    topic: TopicKey,
    index: int,
    base_offset: int,
    log_append_time_ms: int,
    log_start_offset: int,
) -> bytes:
    """The response frame for a request of one partition that was appended."""
    if version >= TOPIC_IDS_SINCE:
        return _ONE_HEAD_TOPIC_ID.pack(
            _ONE_HEAD_TOPIC_ID.size - 4, correlation_id, 0, 2, topic, 2, index, 0, base_offset,
            log_append_time_ms, log_start_offset, 1, 0, 0, 0, 0, 0,
        )  # fmt: skip
    name = topic.encode() if isinstance(topic, str) else topic
    length = len(name)
    if version >= FLEXIBLE_SINCE:
        if length > _COMPACT_ONE_BYTE_MAX:
            answer = PartitionAnswer(index, 0, base_offset, log_append_time_ms, log_start_offset)
            return encode_produce_response(version, correlation_id, [(topic, [answer])])
        return (
            _ONE_HEAD_FLEXIBLE.pack(
                _ONE_HEAD_FLEXIBLE.size - 4 + length + _ONE_TAIL_V9.size,
                correlation_id, 0, 2, length + 1,
            )
            + name
            + _ONE_TAIL_V9.pack(
                2, index, 0, base_offset, log_append_time_ms, log_start_offset, 1, 0, 0, 0, 0, 0
            )
        )  # fmt: skip
    if version >= RECORD_ERRORS_SINCE:
        tail = _ONE_TAIL_V8.pack(
            1, index, 0, base_offset, log_append_time_ms, log_start_offset, 0, -1, 0
        )
    elif version >= LOG_START_SINCE:
        tail = _ONE_TAIL_V5.pack(1, index, 0, base_offset, log_append_time_ms, log_start_offset, 0)
    else:
        tail = _ONE_TAIL_V3.pack(1, index, 0, base_offset, log_append_time_ms, 0)
    size = _ONE_HEAD_CLASSIC.size - 4 + length + len(tail)
    return _ONE_HEAD_CLASSIC.pack(size, correlation_id, 1, length) + name + tail


_ANSWER_V3 = struct.Struct(">ihqq")
_ANSWER_V5 = struct.Struct(">ihqqq")
_LEADER = struct.Struct(">bbiib")


def encode_produce_response(
    version: int,
    correlation_id: int,
    topics: Sequence[tuple[TopicKey, Sequence[PartitionAnswer]]],
    node_endpoints: Sequence[NodeEndpoint] = (),
    throttle_time_ms: int = 0,
) -> bytes:
    """A complete response frame for any number of partitions, with or without errors."""
    flexible = version >= FLEXIBLE_SINCE
    out = bytearray(8)
    if flexible:
        out.append(0)
        out += varint(len(topics) + 1)
    else:
        out += _INT32.pack(len(topics))
    for topic, answers in topics:
        _put_topic(out, version, topic)
        out += varint(len(answers) + 1) if flexible else _INT32.pack(len(answers))
        for answer in answers:
            _put_answer(out, version, answer)
        if flexible:
            out.append(0)
    out += _INT32.pack(throttle_time_ms)
    if flexible:
        out += node_endpoints_section(node_endpoints if version >= CURRENT_LEADER_SINCE else ())
    _INDEX_AND_SIZE.pack_into(out, 0, len(out) - 4, correlation_id)
    return bytes(out)


def with_throttle_time(version: int, frame: bytes, throttle_time_ms: int) -> bytes:
    """A response frame with another throttle time. Few responses have one, so it costs a pass
    through the general codec instead of an argument on the hot path."""
    correlation_id, response = decode_response(_PRODUCE, version, frame[_INT32.size :])
    response.throttle_time_ms = throttle_time_ms  # type: ignore[attr-defined]
    return encode_response_frame(_PRODUCE, version, correlation_id, response)


def _put_topic(out: bytearray, version: int, topic: TopicKey) -> None:
    if isinstance(topic, bytes):
        out += topic
    elif version >= FLEXIBLE_SINCE:
        out += compact_string(topic)
    else:
        name = topic.encode()
        out += _INT16.pack(len(name))
        out += name


def _put_answer(out: bytearray, version: int, answer: PartitionAnswer) -> None:
    head = (answer.partition, answer.error_code, answer.base_offset, answer.log_append_time_ms)
    if version < LOG_START_SINCE:
        out += _ANSWER_V3.pack(*head)
        return
    out += _ANSWER_V5.pack(*head, answer.log_start_offset)
    if version < RECORD_ERRORS_SINCE:
        return
    flexible = version >= FLEXIBLE_SINCE
    count = len(answer.record_errors)
    out += varint(count + 1) if flexible else _INT32.pack(count)
    for batch_index, message in answer.record_errors:
        out += _INT32.pack(batch_index)
        _put_text(out, message, flexible)
        if flexible:
            out.append(0)
    _put_text(out, answer.error_message, flexible)
    if not flexible:
        return
    if answer.current_leader is None or version < CURRENT_LEADER_SINCE:
        out.append(0)
    else:
        out.append(1)
        out += _LEADER.pack(0, 9, *answer.current_leader, 0)


def _put_text(out: bytearray, text: str | None, flexible: bool) -> None:
    if flexible:
        out += compact_string(text)
    elif text is None:
        out += b"\xff\xff"
    else:
        data = text.encode()
        out += _INT16.pack(len(data))
        out += data


def node_endpoints_section(node_endpoints: Sequence[NodeEndpoint]) -> bytes:
    """The tagged fields that end a response: field 0 with the endpoints, or none."""
    if not node_endpoints:
        return b"\x00"
    content = bytearray(varint(len(node_endpoints) + 1))
    for node in node_endpoints:
        content += _INT32.pack(node.node_id)
        content += compact_string(node.host)
        content += _INT32.pack(node.port)
        content += compact_string(node.rack)
        content.append(0)
    return b"\x01\x00" + varint(len(content)) + bytes(content)
