"""Reads a leader's Fetch response without copying its records, versions 13 to 18."""

from __future__ import annotations

import struct
from typing import NamedTuple

from moldau.broker.handlers.flexible import read_varint, skip_tagged_fields
from moldau.broker.replication.fetch_session import PartitionKey
from moldau.broker.replication.follower import FetchedPartition
from moldau.wire.errors import ErrorCode, WireError

LOWEST_VERSION = 13

_HEAD = struct.Struct(">ihi")
_PARTITION = struct.Struct(">ihqqq")
_EPOCH_END = struct.Struct(">iq")
_ABORTED_SIZE = 17
_DIVERGING_EPOCH_TAG = 0


class FetchResponseBody(NamedTuple):
    error: ErrorCode
    session_id: int
    partitions: dict[PartitionKey, FetchedPartition]


def decode_fetch_response(version: int, body: memoryview) -> FetchResponseBody:
    """The response that starts with `body`; WireError if it is none."""
    if version < LOWEST_VERSION:
        raise WireError(f"Fetch v{version} knows no topic ids: brokers must speak v13 or newer")
    try:
        return _decode(body)
    except (struct.error, IndexError) as error:
        raise WireError(f"Fetch v{version} response is malformed: {error}") from None


def _decode(body: memoryview) -> FetchResponseBody:
    _, error, session_id = _HEAD.unpack_from(body, 0)
    partitions: dict[PartitionKey, FetchedPartition] = {}
    topics_count, position = read_varint(body, _HEAD.size)
    for _ in range(topics_count - 1):
        topic_id = bytes(body[position : position + 16])
        partitions_count, position = read_varint(body, position + 16)
        for _ in range(partitions_count - 1):
            index, fetched, position = _decode_partition(body, position)
            partitions[topic_id, index] = fetched
        position = skip_tagged_fields(body, position)
    return FetchResponseBody(_code(error), session_id, partitions)


def _decode_partition(body: memoryview, position: int) -> tuple[int, FetchedPartition, int]:
    index, error, high_watermark, _, log_start_offset = _PARTITION.unpack_from(body, position)
    aborted_count, position = read_varint(body, position + _PARTITION.size)
    for _ in range(aborted_count - 1):
        position = skip_tagged_fields(body, position + _ABORTED_SIZE - 1)
    # The preferred read replica is not for followers.
    size, position = read_varint(body, position + 4)
    records: memoryview | None = None
    if size > 1:
        records = body[position : position + size - 1]
        position += size - 1
        if position > len(body):
            raise WireError("records end past the response")
    diverging_epoch, position = _decode_tags(body, position)
    fetched = FetchedPartition(
        _code(error), high_watermark, log_start_offset, records, diverging_epoch
    )
    return index, fetched, position


def _decode_tags(body: memoryview, position: int) -> tuple[tuple[int, int] | None, int]:
    diverging_epoch: tuple[int, int] | None = None
    count, position = read_varint(body, position)
    for _ in range(count):
        tag, position = read_varint(body, position)
        size, position = read_varint(body, position)
        if tag == _DIVERGING_EPOCH_TAG:
            epoch, end_offset = _EPOCH_END.unpack_from(body, position)
            diverging_epoch = epoch, end_offset
        position += size
    return diverging_epoch, position


def _code(number: int) -> ErrorCode:
    if not number:
        return ErrorCode.NONE
    try:
        return ErrorCode(number)
    except ValueError:
        # Of a newer version than this one: it passes, or an operator reads the leader's log.
        return ErrorCode.UNKNOWN_SERVER_ERROR
