"""Fetch responses read without the general codec say what it says."""

from __future__ import annotations

from uuid import UUID

import pytest

from moldau.wire.codec import encode
from moldau.wire.errors import WireError
from moldau.wire.fetch_response import FetchedNode, FetchedPart, read_fetch_response
from moldau.wire.messages import FetchResponse

TOPIC_ID = UUID(int=77)


def response(version: int) -> bytes:
    aborted = [FetchResponse.AbortedTransaction(producer_id=5, first_offset=2)]
    part = FetchResponse.PartitionData(
        partition_index=3,
        high_watermark=90,
        last_stable_offset=80,
        log_start_offset=1,
        aborted_transactions=aborted,
        preferred_read_replica=2 if version >= 11 else -1,
        records=b"batches",
    )
    moved = FetchResponse.PartitionData(
        partition_index=4, error_code=6, high_watermark=-1, aborted_transactions=None
    )
    message = FetchResponse(throttle_time_ms=9, session_id=8)
    if version >= 12:
        moved.current_leader = FetchResponse.LeaderIdAndEpoch(leader_id=2, leader_epoch=11)
    if version >= 16:
        message.node_endpoints = [
            FetchResponse.NodeEndpoint(node_id=2, host="far", port=9, rack="r")
        ]
    message.responses = [
        FetchResponse.FetchableTopicResponse(topic="t", topic_id=TOPIC_ID, partitions=[part, moved])
    ]
    return bytes(encode(message, version))


@pytest.mark.parametrize("version", range(7, 19))
def test_every_version(version: int) -> None:
    found = read_fetch_response(version, memoryview(response(version)))
    assert (found.throttle_time_ms, found.error_code, found.session_id) == (9, 0, 8)
    topic = "t" if version < 13 else TOPIC_ID.bytes
    records = memoryview(b"batches")
    replica = 2 if version >= 11 else -1
    leader = (2, 11) if version >= 12 else None
    assert found.parts == [
        (topic, FetchedPart(3, 0, 90, 80, 1, [(5, 2)], replica, records, None, None)),
        (topic, FetchedPart(4, 6, -1, -1, -1, None, -1, None, None, leader)),
    ]
    assert found.nodes == ([FetchedNode(2, "far", 9, "r")] if version >= 16 else [])


@pytest.mark.parametrize("version", [11, 13, 18])
def test_cut_off_responses(version: int) -> None:
    whole = response(version)
    for size in range(len(whole)):
        with pytest.raises(WireError):
            read_fetch_response(version, memoryview(whole[:size]))
