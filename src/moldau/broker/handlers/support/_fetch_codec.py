# cython: annotation_typing=False
"""Fetch requests read into plain tuples, and responses whose records stay views, v4-18.

A consumer of many partitions sends one long array of fixed-size entries: it is unpacked in one C
loop. A response is a list of buffers, small packed pieces between the log's own memory, so record
bytes are never copied in Python. Both agree with the general codec byte for byte.

Plain Python, and with `_fetch_codec.pxd` beside it also the source of a compiled module.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from moldau.broker.handlers.support._produce_codec import node_endpoints_section
from moldau.broker.replication.machine.fetch_data import (
    NO_REPLICA,
    SESSIONS_SINCE,
    TOPIC_IDS_SINCE,
    FetchBody,
    PartitionData,
    PartitionFetch,
)
from moldau.broker.replication.machine.names import NodeEndpoint, TopicKey
from moldau.wire._flexible import (
    compact_string,
    read_compact_string,
    read_text,
    read_varint,
    skip_tagged_fields,
    varint,
)
from moldau.wire.constants import Buffer
from moldau.wire.errors import WireError

FLEXIBLE_SINCE = 12
RACK_SINCE = 11
REPLICA_STATE_SINCE = 15
NODE_ENDPOINTS_SINCE = 16

_REPLICA_STATE_TAG = 1

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_HEAD_V4 = struct.Struct(">iiiib")
_HEAD_V7 = struct.Struct(">iiiibii")
_HEAD_V15 = struct.Struct(">iiibii")
_REPLICA_STATE = struct.Struct(">iq")
_PARTITION_V4 = struct.Struct(">iqi")
_PARTITION_V5 = struct.Struct(">iqqi")
_PARTITION_V9 = struct.Struct(">iiqqi")
_PARTITION_V12 = struct.Struct(">iiqiqi")
_PARTITION_V12_NO_TAGS = struct.Struct(">iiqiqix")
_new_tuple = tuple.__new__  # What NamedTuples do for themselves, less a call for each partition.


def decode_fetch(version: int, frame: memoryview, position: int) -> FetchBody:
    """Read the body of a Fetch request that starts at `position`; WireError if malformed."""
    try:
        if version < FLEXIBLE_SINCE:
            return _decode_classic(version, frame, position)
        return _decode_flexible(version, frame, position)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise WireError(f"Fetch v{version} request is malformed: {error}") from None


def _decode_classic(version: int, frame: memoryview, position: int) -> FetchBody:
    session_id, session_epoch = 0, -1
    if version >= SESSIONS_SINCE:
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch = (
            _HEAD_V7.unpack_from(frame, position)
        )
        position += _HEAD_V7.size
    else:
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation = _HEAD_V4.unpack_from(
            frame, position
        )
        position += _HEAD_V4.size
    topics: list[tuple[TopicKey, list[PartitionFetch]]] = []
    count, position = _read_count(frame, position)
    for _ in range(count):
        name, position = _read_name(frame, position)
        partitions, position = _classic_partitions(version, frame, position)
        topics.append((name, partitions))
    forgotten: list[tuple[TopicKey, list[int]]] = []
    if version >= SESSIONS_SINCE:
        count, position = _read_count(frame, position)
        for _ in range(count):
            name, position = _read_name(frame, position)
            indexes_count, position = _read_count(frame, position)
            indexes, position = _read_indexes(frame, position, indexes_count)
            forgotten.append((name, indexes))
    rack = ""
    if version >= RACK_SINCE:
        rack, position = _read_name(frame, position)
    return FetchBody(
        replica_id, -1, max_wait_ms, min_bytes, max_bytes, isolation,
        session_id, session_epoch, topics, forgotten, rack,
    )  # fmt: skip


def _read_count(frame: memoryview, position: int) -> tuple[int, int]:
    (count,) = _INT32.unpack_from(frame, position)
    if count < 0:
        raise WireError(f"array of {count} elements where Fetch allows no null")
    return count, position + 4


def _read_name(frame: memoryview, position: int) -> tuple[str, int]:
    (length,) = _INT16.unpack_from(frame, position)
    return read_text(frame, position + 2, length)


def _read_indexes(frame: memoryview, position: int, count: int) -> tuple[list[int], int]:
    end = position + 4 * count
    if end > len(frame):
        raise WireError(f"array of {count} partitions ends past the frame")
    return [index for (index,) in _INT32.iter_unpack(frame[position:end])], end


def _classic_partitions(
    version: int, frame: memoryview, position: int
) -> tuple[list[PartitionFetch], int]:
    count, position = _read_count(frame, position)
    layout = _PARTITION_V9 if version >= 9 else _PARTITION_V5 if version >= 5 else _PARTITION_V4
    end = position + count * layout.size
    if end > len(frame):
        raise WireError(f"array of {count} partitions ends past the frame")
    entries = layout.iter_unpack(frame[position:end])
    if version >= 9:
        partitions = [
            _new_tuple(PartitionFetch, (index, epoch, offset, -1, log_start, max_bytes))
            for index, epoch, offset, log_start, max_bytes in entries
        ]
    elif version >= 5:
        partitions = [
            _new_tuple(PartitionFetch, (index, -1, offset, -1, log_start, max_bytes))
            for index, offset, log_start, max_bytes in entries
        ]
    else:
        partitions = [
            _new_tuple(PartitionFetch, (index, -1, offset, -1, -1, max_bytes))
            for index, offset, max_bytes in entries
        ]
    return partitions, end


def _decode_flexible(version: int, frame: memoryview, position: int) -> FetchBody:
    replica_id, replica_epoch = -1, -1
    if version >= REPLICA_STATE_SINCE:
        max_wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch = (
            _HEAD_V15.unpack_from(frame, position)
        )
        position += _HEAD_V15.size
    else:
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch = (
            _HEAD_V7.unpack_from(frame, position)
        )
        position += _HEAD_V7.size
    topics: list[tuple[TopicKey, list[PartitionFetch]]] = []
    count, position = _read_compact_count(frame, position)
    for _ in range(count):
        key, position = _read_topic_key(version, frame, position)
        partitions, position = _flexible_partitions(frame, position)
        position = skip_tagged_fields(frame, position)
        topics.append((key, partitions))
    forgotten: list[tuple[TopicKey, list[int]]] = []
    count, position = _read_compact_count(frame, position)
    for _ in range(count):
        key, position = _read_topic_key(version, frame, position)
        indexes_count, position = _read_compact_count(frame, position)
        indexes, position = _read_indexes(frame, position, indexes_count)
        position = skip_tagged_fields(frame, position)
        forgotten.append((key, indexes))
    rack, position = read_compact_string(frame, position)
    if rack is None:
        raise WireError("Fetch request has a null rack id")
    if not frame[position]:
        pass
    elif version >= REPLICA_STATE_SINCE:
        replica_id, replica_epoch = _read_replica_state(frame, position)
    else:
        skip_tagged_fields(frame, position)
    return FetchBody(
        replica_id, replica_epoch, max_wait_ms, min_bytes, max_bytes, isolation,
        session_id, session_epoch, topics, forgotten, rack,
    )  # fmt: skip


def _read_compact_count(frame: memoryview, position: int) -> tuple[int, int]:
    count, position = read_varint(frame, position)
    if count == 0:
        raise WireError("null array where Fetch allows none")
    return count - 1, position


def _read_topic_key(version: int, frame: memoryview, position: int) -> tuple[TopicKey, int]:
    if version >= TOPIC_IDS_SINCE:
        end = position + 16
        if end > len(frame):
            raise WireError("topic id ends past the frame")
        return bytes(frame[position:end]), end
    name, position = read_compact_string(frame, position)
    if name is None:
        raise WireError("Fetch request has a topic without a name")
    return name, position


def _flexible_partitions(frame: memoryview, position: int) -> tuple[list[PartitionFetch], int]:
    count, position = _read_compact_count(frame, position)
    end = position + count * _PARTITION_V12_NO_TAGS.size
    if end <= len(frame):
        # Consumers send no tagged fields here, so the entries have one size unless one of what
        # would be the tag counts says otherwise.
        size = _PARTITION_V12_NO_TAGS.size
        if not any(frame[position + size - 1 : end : size]):
            entries = _PARTITION_V12_NO_TAGS.iter_unpack(frame[position:end])
            return [_new_tuple(PartitionFetch, entry) for entry in entries], end
    partitions = []
    for _ in range(count):
        partitions.append(PartitionFetch._make(_PARTITION_V12.unpack_from(frame, position)))
        position = skip_tagged_fields(frame, position + _PARTITION_V12.size)
    return partitions, position


def _read_replica_state(frame: memoryview, position: int) -> tuple[int, int]:
    replica_id, replica_epoch = -1, -1
    skip_tagged_fields(frame, position)
    count, position = read_varint(frame, position)
    for _ in range(count):
        tag, position = read_varint(frame, position)
        size, position = read_varint(frame, position)
        if tag == _REPLICA_STATE_TAG:
            replica_id, replica_epoch = _REPLICA_STATE.unpack_from(frame, position)
        position += size
    return replica_id, replica_epoch


_RESPONSE_V4 = struct.Struct(">iiii")
_RESPONSE_V7 = struct.Struct(">iiihii")
_RESPONSE_V12 = struct.Struct(">iibihi")
_DATA_V4 = struct.Struct(">ihqq")
_DATA_V5 = struct.Struct(">ihqqq")
# A partition with nothing to give: no transactions, no preferred replica, no records, no tags.
_EMPTY_V4 = struct.Struct(">ihqqii")
_EMPTY_V5 = struct.Struct(">ihqqqii")
_EMPTY_V11 = struct.Struct(">ihqqqiii")
_EMPTY_V12 = struct.Struct(">ihqqqbibb")
_ABORTED = struct.Struct(">qq")
_ABORTED_V12 = struct.Struct(">qqb")
_DIVERGING = struct.Struct(">bbiqb")
_LEADER = struct.Struct(">bbiib")
_NO_REPLICA = b"\xff\xff\xff\xff"


def encode_fetch_response(
    version: int,
    correlation_id: int,
    session_id: int,
    error_code: int,
    topics: Sequence[tuple[TopicKey, Sequence[PartitionData]]],
    node_endpoints: Sequence[NodeEndpoint] = (),
    throttle_time_ms: int = 0,
) -> list[Buffer]:
    """A complete response frame as buffers to be sent one after the other."""
    flexible = version >= FLEXIBLE_SINCE
    out: list[Buffer] = []
    piece = bytearray(_head_size(version))
    if flexible:
        piece += varint(len(topics) + 1)
    records_size = small_size = 0
    for topic, partitions in topics:
        _put_topic(piece, version, topic)
        piece += varint(len(partitions) + 1) if flexible else _INT32.pack(len(partitions))
        for data in partitions:
            if not data.records_size:
                _put_empty(piece, version, data)
                continue
            _put_partition(piece, version, data)
            small_size += len(piece)
            out.append(piece)
            out.extend(data.records)
            records_size += data.records_size
            piece = bytearray()
            if flexible:
                _put_partition_tags(piece, data)
        if flexible:
            piece.append(0)
    if flexible:
        piece += node_endpoints_section(node_endpoints if version >= NODE_ENDPOINTS_SINCE else ())
    if piece:
        small_size += len(piece)
        out.append(piece)
    first = out[0]
    head = (small_size + records_size - 4, correlation_id)
    if flexible:
        _RESPONSE_V12.pack_into(first, 0, *head, 0, throttle_time_ms, error_code, session_id)
    elif version >= SESSIONS_SINCE:
        _RESPONSE_V7.pack_into(
            first, 0, *head, throttle_time_ms, error_code, session_id, len(topics)
        )
    else:
        _RESPONSE_V4.pack_into(first, 0, *head, throttle_time_ms, len(topics))
    return out


def _head_size(version: int) -> int:
    if version >= FLEXIBLE_SINCE:
        return _RESPONSE_V12.size
    return _RESPONSE_V7.size if version >= SESSIONS_SINCE else _RESPONSE_V4.size


def _put_topic(piece: bytearray, version: int, topic: TopicKey) -> None:
    if isinstance(topic, bytes):
        piece += topic
    elif version >= FLEXIBLE_SINCE:
        piece += compact_string(topic)
    else:
        name = topic.encode()
        piece += _INT16.pack(len(name))
        piece += name


def _put_empty(piece: bytearray, version: int, data: PartitionData) -> None:
    """A partition without records; most have nothing else to return either."""
    if (
        data.aborted_transactions is not None
        or data.diverging_epoch
        or data.current_leader
        or data.preferred_read_replica != NO_REPLICA
    ):
        _put_partition(piece, version, data)
        if version >= FLEXIBLE_SINCE:
            _put_partition_tags(piece, data)
    elif version >= FLEXIBLE_SINCE:
        piece += _EMPTY_V12.pack(*data[:5], 0, -1, 1, 0)
    elif version >= 11:
        piece += _EMPTY_V11.pack(*data[:5], -1, -1, 0)
    elif version >= 5:
        piece += _EMPTY_V5.pack(*data[:5], -1, 0)
    else:
        piece += _EMPTY_V4.pack(*data[:4], -1, 0)


def _put_partition(piece: bytearray, version: int, data: PartitionData) -> None:
    """Everything of a partition up to its records, their size included."""
    if version >= 5:
        piece += _DATA_V5.pack(*data[:5])
    else:
        piece += _DATA_V4.pack(*data[:4])
    aborted = data.aborted_transactions
    if version >= FLEXIBLE_SINCE:
        if aborted is None:
            piece.append(0)
        else:
            piece += varint(len(aborted) + 1)
            for producer_id, first_offset in aborted:
                piece += _ABORTED_V12.pack(producer_id, first_offset, 0)
        # A client that is redirected gets no records.
        piece += _NO_REPLICA if data.records_size else _INT32.pack(data.preferred_read_replica)
        piece += varint(data.records_size + 1)
        return
    if aborted is None:
        piece += b"\xff\xff\xff\xff"
    else:
        piece += _INT32.pack(len(aborted))
        for entry in aborted:
            piece += _ABORTED.pack(*entry)
    if version >= RACK_SINCE:
        piece += _INT32.pack(data.preferred_read_replica)
    piece += _INT32.pack(data.records_size)


def _put_partition_tags(piece: bytearray, data: PartitionData) -> None:
    diverging, leader = data.diverging_epoch, data.current_leader
    if diverging is None and leader is None:
        piece.append(0)
        return
    piece.append((diverging is not None) + (leader is not None))
    if diverging is not None:
        piece += _DIVERGING.pack(0, 13, *diverging, 0)
    if leader is not None:
        piece += _LEADER.pack(1, 9, *leader, 0)
