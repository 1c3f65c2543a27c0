"""Error codes are found wherever a response has them."""

from __future__ import annotations

from moldau.broker.network.machine.response_errors import error_codes
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    ApiVersionsResponse,
    HeartbeatResponse,
    ListOffsetsResponse,
    MetadataResponse,
)


def test_at_the_top() -> None:
    code = ErrorCode.UNKNOWN_MEMBER_ID
    assert list(error_codes(HeartbeatResponse(error_code=code))) == [code]
    assert list(error_codes(HeartbeatResponse())) == []
    assert list(error_codes(ApiVersionsResponse())) == []


def test_in_partitions() -> None:
    partition, topic = (
        ListOffsetsResponse.ListOffsetsPartitionResponse,
        ListOffsetsResponse.ListOffsetsTopicResponse,
    )
    response = ListOffsetsResponse(
        topics=[
            topic(partitions=[partition(error_code=6), partition(error_code=0)]),
            topic(partitions=[partition(error_code=3)]),
        ]
    )
    assert list(error_codes(response)) == [6, 3]


def test_of_metadata_only_topics_are_searched() -> None:
    partition = MetadataResponse.MetadataResponsePartition(error_code=5)
    topic = MetadataResponse.MetadataResponseTopic(error_code=3, partitions=[partition])
    assert list(error_codes(MetadataResponse(topics=[topic]))) == [3]
