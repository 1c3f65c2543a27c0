"""Every API can be answered with an error that its clients understand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from moldau.broker.network.interface import InvalidRequest
from moldau.testing.process.error_answers import error_answer, with_topic_errors
from moldau.wire.apis import API_BY_KEY, Api, ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.framing import decode_response, encode_request_frame, encode_response_frame
from moldau.wire.message import Message
from moldau.wire.messages import (
    FetchRequest,
    ListOffsetsRequest,
    MetadataRequest,
    MetadataResponse,
    OffsetFetchRequest,
    ProduceRequest,
)

ERROR = ErrorCode.NOT_LEADER_OR_FOLLOWER
#: The first never fails, and the second is tested on its own.
ELSEWHERE = {ApiKey.API_VERSIONS, ApiKey.METADATA}


def frame_of(api: Api, version: int, request: Message) -> memoryview:
    return memoryview(encode_request_frame(api, version, 7, "client", request))[4:]


def answer(key: ApiKey, version: int, request: Message) -> Any:
    api = API_BY_KEY[key]
    reply = error_answer(frame_of(api, version, request), ERROR)
    assert isinstance(reply, bytes)
    correlation_id, response = decode_response(api, version, memoryview(reply)[4:])
    assert correlation_id == 7
    return response


def errors_in(message: Any) -> Iterator[int]:
    for name, *_ in message.FIELDS:
        value = getattr(message, name)
        if name in ("error_code", "partition_error_code"):
            yield value
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, Message):
                yield from errors_in(each)


def sample(cls: type[Any], family: type[Message], version: int) -> Any:
    """A message that names one of everything."""
    made = cls()
    for name, kind, first, last, *_ in cls.FIELDS:
        if not first <= version <= last or not kind.startswith("[]"):
            continue
        element = getattr(family, kind[2:], None)
        if element is not None:
            setattr(made, name, [sample(element, family, version)])
        elif kind in ("[]int32", "[]string"):
            setattr(made, name, [3] if kind == "[]int32" else ["name"])
    return made


VERSIONS = [
    pytest.param(api, version, id=f"{api.name}-{version}")
    for api in API_BY_KEY.values()
    if "broker" in api.listeners and api.key not in ELSEWHERE
    for version in range(api.min_version, api.max_version + 1)
]


@pytest.mark.parametrize(("api", "version"), VERSIONS)
def test_the_error_is_in_the_answer(api: Api, version: int) -> None:
    request = sample(api.request, api.request, version)
    if isinstance(request, ProduceRequest):
        request.acks = -1
    try:
        response = answer(api.key, version, request)
    except InvalidRequest:
        pytest.fail("the connection would be closed")
    assert ERROR in set(errors_in(response))


def test_a_produce_is_answered_partition_by_partition() -> None:
    data = [ProduceRequest.PartitionProduceData(index=index) for index in (0, 4)]
    request = ProduceRequest(
        acks=-1, topic_data=[ProduceRequest.TopicProduceData(name="t", partition_data=data)]
    )
    (topic,) = answer(ApiKey.PRODUCE, 9, request).responses
    assert topic.name == "t"
    assert [(each.index, each.error_code) for each in topic.partition_responses] == [
        (0, ERROR),
        (4, ERROR),
    ]


def test_a_produce_that_wants_no_answer_gets_none() -> None:
    api = API_BY_KEY[ApiKey.PRODUCE]
    assert error_answer(frame_of(api, 9, ProduceRequest(acks=0)), ERROR) is None


def test_a_fetch_is_answered_partition_by_partition() -> None:
    partition = FetchRequest.FetchPartition(partition=4)
    request = FetchRequest(
        session_id=9, topics=[FetchRequest.FetchTopic(topic="t", partitions=[partition])]
    )
    response = answer(ApiKey.FETCH, 12, request)
    (found,) = response.responses[0].partitions
    assert (response.error_code, response.session_id) == (0, 9)
    assert (found.partition_index, found.error_code) == (4, ERROR)


def test_a_fetch_that_names_nothing_has_to_name_all_again() -> None:
    response = answer(ApiKey.FETCH, 12, FetchRequest(session_id=9, session_epoch=3))
    assert response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_numbers_alone_are_named_in_the_answer() -> None:
    topic = OffsetFetchRequest.OffsetFetchRequestTopic(name="t", partition_indexes=[5])
    (found,) = answer(
        ApiKey.OFFSET_FETCH, 1, OffsetFetchRequest(group_id="g", topics=[topic])
    ).topics
    assert (found.name, found.partitions[0].partition_index) == ("t", 5)
    partition = ListOffsetsRequest.ListOffsetsPartition(partition_index=6)
    (offsets,) = answer(
        ApiKey.LIST_OFFSETS,
        7,
        ListOffsetsRequest(
            topics=[ListOffsetsRequest.ListOffsetsTopic(name="t", partitions=[partition])]
        ),
    ).topics
    assert (offsets.partitions[0].partition_index, offsets.partitions[0].error_code) == (6, ERROR)


def test_metadata_keeps_the_brokers() -> None:
    api = API_BY_KEY[ApiKey.METADATA]
    real = MetadataResponse(
        brokers=[MetadataResponse.MetadataResponseBroker(node_id=1, host="h", port=2)],
        topics=[
            MetadataResponse.MetadataResponseTopic(
                name="t",
                partitions=[MetadataResponse.MetadataResponsePartition(partition_index=0)],
            )
        ],
    )
    reply = with_topic_errors(
        frame_of(api, 12, MetadataRequest()), encode_response_frame(api, 12, 7, real), ERROR
    )
    _, response = decode_response(api, 12, memoryview(reply)[4:])
    assert isinstance(response, MetadataResponse)
    assert [broker.node_id for broker in response.brokers] == [1]
    assert [(each.error_code, each.partitions) for each in response.topics] == [(ERROR, [])]
