"""Reads a Fetch response without copying its records: for followers and consumers.

Versions from 13 on, which have topic ids, are read here. Older ones, of brokers before Kafka 3.1,
go through the general codec, which copies. Invariants: nothing is read beyond the response,
and `records` is a view of it, or None when there are none.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from moldau.wire._flexible import read_compact_string, read_varint, skip_tagged_fields
from moldau.wire.codec import decode
from moldau.wire.errors import WireError
from moldau.wire.messages import FetchResponse

__all__ = ["FetchedNode", "FetchedPart", "FetchedResponse", "read_fetch_response"]

#: The first with topic ids instead of names.
TOPIC_ID_VERSION = 13

_HEAD = struct.Struct(">ihi")
_PARTITION = struct.Struct(">ihqqq")
_ABORTED = struct.Struct(">qq")
_INT32 = struct.Struct(">i")
_EPOCH_END = struct.Struct(">iq")
_LEADER = struct.Struct(">ii")
_DIVERGING_EPOCH_TAG = 0
_CURRENT_LEADER_TAG = 1
_NODE_ENDPOINTS_TAG = 0


class FetchedPart(NamedTuple):
    """One partition's part. Pairs: aborted transactions (producer id, first offset), the diverging
    epoch and its end offset, the current leader's id and epoch; None where the broker sent none."""

    partition: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: list[tuple[int, int]] | None
    preferred_read_replica: int
    records: memoryview | None
    diverging_epoch: tuple[int, int] | None = None
    current_leader: tuple[int, int] | None = None


class FetchedNode(NamedTuple):
    """Where a leader that a part names can be reached (KIP-951)."""

    node_id: int
    host: str
    port: int
    rack: str | None


class FetchedResponse(NamedTuple):
    """`parts` by topic: its id of 16 bytes, before version 13 its name."""

    throttle_time_ms: int
    error_code: int
    session_id: int
    parts: list[tuple[bytes | str, FetchedPart]]
    nodes: list[FetchedNode]


def read_fetch_response(version: int, body: memoryview) -> FetchedResponse:
    """The response that starts with `body`; WireError if it is none."""
    if version < TOPIC_ID_VERSION:
        return _from_message(decode(FetchResponse, version, body))
    try:
        return _read(body)
    except (struct.error, IndexError) as error:
        raise WireError(f"Fetch v{version} response is malformed: {error}") from None


def _read(body: memoryview) -> FetchedResponse:
    throttle_time_ms, error_code, session_id = _HEAD.unpack_from(body, 0)
    parts: list[tuple[bytes | str, FetchedPart]] = []
    topics_count, position = read_varint(body, _HEAD.size)
    for _ in range(topics_count - 1):
        topic_id = bytes(body[position : position + 16])
        partitions_count, position = read_varint(body, position + 16)
        for _ in range(partitions_count - 1):
            part, position = _read_part(body, position)
            parts.append((topic_id, part))
        position = skip_tagged_fields(body, position)
    nodes = _read_nodes(body, position)
    return FetchedResponse(throttle_time_ms, error_code, session_id, parts, nodes)


def _read_part(body: memoryview, position: int) -> tuple[FetchedPart, int]:
    index, error_code, high_watermark, last_stable_offset, log_start_offset = (
        _PARTITION.unpack_from(body, position)
    )
    aborted: list[tuple[int, int]] | None = None
    count, position = read_varint(body, position + _PARTITION.size)
    if count > 0:
        aborted = []
        for _ in range(count - 1):
            aborted.append(_ABORTED.unpack_from(body, position))
            position = skip_tagged_fields(body, position + _ABORTED.size)
    (preferred_read_replica,) = _INT32.unpack_from(body, position)
    size, position = read_varint(body, position + _INT32.size)
    records: memoryview | None = None
    if size > 1:
        records = body[position : position + size - 1]
        position += size - 1
        if position > len(body):
            raise WireError("records end past the response")
    diverging_epoch, current_leader, position = _read_part_tags(body, position)
    part = FetchedPart(
        index,
        error_code,
        high_watermark,
        last_stable_offset,
        log_start_offset,
        aborted,
        preferred_read_replica,
        records,
        diverging_epoch,
        current_leader,
    )
    return part, position


def _read_part_tags(
    body: memoryview, position: int
) -> tuple[tuple[int, int] | None, tuple[int, int] | None, int]:
    diverging_epoch: tuple[int, int] | None = None
    current_leader: tuple[int, int] | None = None
    count, position = read_varint(body, position)
    for _ in range(count):
        tag, position = read_varint(body, position)
        size, position = read_varint(body, position)
        if tag == _DIVERGING_EPOCH_TAG:
            epoch, end_offset = _EPOCH_END.unpack_from(body, position)
            diverging_epoch = epoch, end_offset
        elif tag == _CURRENT_LEADER_TAG:
            leader_id, leader_epoch = _LEADER.unpack_from(body, position)
            current_leader = leader_id, leader_epoch
        position += size
    return diverging_epoch, current_leader, position


def _read_nodes(body: memoryview, position: int) -> list[FetchedNode]:
    nodes: list[FetchedNode] = []
    count, position = read_varint(body, position)
    for _ in range(count):
        tag, position = read_varint(body, position)
        size, position = read_varint(body, position)
        if tag == _NODE_ENDPOINTS_TAG:
            nodes = _read_endpoints(body, position)
        position += size
    return nodes


def _read_endpoints(body: memoryview, position: int) -> list[FetchedNode]:
    nodes = []
    count, position = read_varint(body, position)
    for _ in range(count - 1):
        (node_id,) = _INT32.unpack_from(body, position)
        host, position = read_compact_string(body, position + _INT32.size)
        (port,) = _INT32.unpack_from(body, position)
        rack, position = read_compact_string(body, position + _INT32.size)
        position = skip_tagged_fields(body, position)
        nodes.append(FetchedNode(node_id, host or "", port, rack))
    return nodes


def _from_message(response: FetchResponse) -> FetchedResponse:
    parts: list[tuple[bytes | str, FetchedPart]] = []
    for topic in response.responses:
        for each in topic.partitions:
            aborted = each.aborted_transactions
            leader = each.current_leader
            part = FetchedPart(
                each.partition_index,
                each.error_code,
                each.high_watermark,
                each.last_stable_offset,
                each.log_start_offset,
                None
                if aborted is None
                else [(one.producer_id, one.first_offset) for one in aborted],
                each.preferred_read_replica,
                memoryview(each.records) if each.records else None,
                None,
                None if leader.leader_epoch < 0 else (leader.leader_id, leader.leader_epoch),
            )
            parts.append((topic.topic, part))
    return FetchedResponse(
        response.throttle_time_ms, response.error_code, response.session_id, parts, []
    )
