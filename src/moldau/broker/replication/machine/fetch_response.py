"""A leader's Fetch response, versions 13 to 18, as a follower reads it."""

from __future__ import annotations

from typing import NamedTuple, cast

from moldau.broker.replication.machine.fetch_session import PartitionKey
from moldau.broker.replication.machine.follower import FetchedPartition
from moldau.wire.errors import ErrorCode, WireError
from moldau.wire.fetch_response import TOPIC_ID_VERSION, read_fetch_response


class FetchResponseBody(NamedTuple):
    error: ErrorCode
    session_id: int
    partitions: dict[PartitionKey, FetchedPartition]


def decode_fetch_response(version: int, body: memoryview) -> FetchResponseBody:
    """The decoded response; WireError if `body` is malformed."""
    if version < TOPIC_ID_VERSION:
        raise WireError(f"Fetch v{version} knows no topic ids: brokers must speak v13 or newer")
    response = read_fetch_response(version, body)
    # The preferred read replica and aborted transactions are not for followers.
    partitions = {
        (cast(bytes, topic_id), part.partition): FetchedPartition(
            _code(part.error_code),
            part.high_watermark,
            part.log_start_offset,
            part.records,
            part.diverging_epoch,
        )
        for topic_id, part in response.parts
    }
    return FetchResponseBody(_code(response.error_code), response.session_id, partitions)


def _code(number: int) -> ErrorCode:
    if not number:
        return ErrorCode.NONE
    try:
        return ErrorCode(number)
    except ValueError:
        # Of a newer version than this one: treat it as temporary.
        return ErrorCode.UNKNOWN_SERVER_ERROR
