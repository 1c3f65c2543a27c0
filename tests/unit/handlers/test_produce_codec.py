"""The hand-made Produce codec against the general one, which is made from the schemas."""

from __future__ import annotations

import contextlib
import struct
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.broker.handlers.support._produce_codec import (
    PartitionAnswer,
    decode_produce,
    decode_single_produce,
    encode_produce_response,
    encode_produce_success,
)
from moldau.broker.replication.machine.names import NodeEndpoint
from moldau.wire.codec import decode, encode
from moldau.wire.errors import WireError
from moldau.wire.messages import ProduceRequest, ProduceResponse

# The versions differ in little: all of them together try some hundred examples.
EACH_VERSION = settings(max_examples=max(10, settings.default.max_examples // 4))
VERSIONS = range(3, 14)
int16 = st.integers(-(2**15), 2**15 - 1)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
names = st.text(max_size=40) | st.just("n" * 249)
ids = st.uuids()


@st.composite
def requests(draw: st.DrawFn, version: int) -> ProduceRequest:
    partitions = st.builds(
        ProduceRequest.PartitionProduceData,
        index=int32,
        records=st.none() | st.binary(max_size=300),
    )
    topic = {"topic_id": ids} if version >= 13 else {"name": names}
    topics = st.builds(
        ProduceRequest.TopicProduceData,
        partition_data=st.lists(partitions, max_size=3),
        **topic,
    )
    return ProduceRequest(
        transactional_id=draw(st.none() | names),
        acks=draw(int16),
        timeout_ms=draw(int32),
        topic_data=draw(st.lists(topics, max_size=3)),
    )


def _key(topic: Any, version: int) -> str | bytes:
    return topic.topic_id.bytes if version >= 13 else topic.name


@pytest.mark.parametrize("version", VERSIONS)
@EACH_VERSION
@given(data=st.data(), prefix=st.binary(max_size=5))
def test_decodes_what_the_general_codec_encodes(
    version: int, data: st.DataObject, prefix: bytes
) -> None:
    request = data.draw(requests(version))
    frame = memoryview(prefix + encode(request, version))
    body = decode_produce(version, frame, len(prefix))
    assert body.transactional_id == request.transactional_id
    assert (body.acks, body.timeout_ms) == (request.acks, request.timeout_ms)
    assert [
        (key, [(index, None if records is None else bytes(records)) for index, records in parts])
        for key, parts in body.topics
    ] == [
        (_key(topic, version), [(part.index, part.records) for part in topic.partition_data])
        for topic in request.topic_data
    ]


@pytest.mark.parametrize("version", VERSIONS)
@EACH_VERSION
@given(data=st.data())
def test_a_cut_request_is_malformed(version: int, data: st.DataObject) -> None:
    whole = encode(data.draw(requests(version)), version)
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(WireError):
        decode_produce(version, memoryview(whole[:cut]), 0)


@pytest.mark.parametrize("version", VERSIONS)
@EACH_VERSION
@given(frame=st.binary(max_size=200))
def test_garbage_is_an_error_or_a_request_but_nothing_else(version: int, frame: bytes) -> None:
    with contextlib.suppress(WireError):
        decode_produce(version, memoryview(frame), 0)


def test_records_are_views_of_the_frame() -> None:
    request = ProduceRequest(
        acks=1,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name="t",
                partition_data=[ProduceRequest.PartitionProduceData(index=0, records=b"abc")],
            )
        ],
    )
    frame = bytearray(encode(request, 9))
    ((_, ((_, records),)),) = decode_produce(9, memoryview(frame), 0).topics
    assert records is not None
    frame[frame.index(b"abc")] = ord("x")
    assert bytes(records) == b"xbc"


@pytest.mark.parametrize("version", [9, 13])
def test_unknown_tagged_fields_are_skipped(version: int) -> None:
    request = ProduceRequest(
        acks=1,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name="t" if version < 13 else "",
                topic_id=UUID(int=7),
                partition_data=[ProduceRequest.PartitionProduceData(index=4, records=b"r")],
            )
        ],
    )
    request.topic_data[0].partition_data[0].unknown_tagged_fields = {5: b"x" * 200}
    request.topic_data[0].unknown_tagged_fields = {5: b"y"}
    request.unknown_tagged_fields = {300: b""}
    body = decode_produce(version, memoryview(encode(request, version)), 0)
    ((_, ((index, records),)),) = body.topics
    assert (index, bytes(records or b"")) == (4, b"r")


texts = st.none() | st.text(max_size=20)
answers = st.builds(
    PartitionAnswer,
    partition=int32,
    error_code=int16,
    base_offset=int64,
    log_append_time_ms=int64,
    log_start_offset=int64,
    record_errors=st.lists(st.tuples(int32, texts), max_size=2),
    error_message=texts,
    current_leader=st.none() | st.tuples(int32, int32).filter(lambda leader: leader != (-1, -1)),
)
endpoints = st.lists(
    st.builds(NodeEndpoint, node_id=int32, host=st.text(max_size=20), port=int32, rack=texts),
    max_size=2,
)


def _response(
    version: int,
    topics: list[tuple[str | bytes, list[PartitionAnswer]]],
    nodes: list[NodeEndpoint],
    throttle_time_ms: int = 0,
) -> ProduceResponse:
    def partition(answer: PartitionAnswer) -> Any:
        part = ProduceResponse.PartitionProduceResponse(
            index=answer.partition,
            error_code=answer.error_code,
            base_offset=answer.base_offset,
            log_append_time_ms=answer.log_append_time_ms,
            log_start_offset=answer.log_start_offset,
            record_errors=[
                ProduceResponse.BatchIndexAndErrorMessage(
                    batch_index=index, batch_index_error_message=message
                )
                for index, message in answer.record_errors
            ],
            error_message=answer.error_message,
        )
        if answer.current_leader is not None and version >= 10:
            part.current_leader = ProduceResponse.LeaderIdAndEpoch(
                leader_id=answer.current_leader[0], leader_epoch=answer.current_leader[1]
            )
        return part

    return ProduceResponse(
        responses=[
            ProduceResponse.TopicProduceResponse(
                name=key if isinstance(key, str) else "",
                topic_id=UUID(bytes=key) if isinstance(key, bytes) else UUID(int=0),
                partition_responses=[partition(answer) for answer in parts],
            )
            for key, parts in topics
        ],
        throttle_time_ms=throttle_time_ms,
        node_endpoints=[
            ProduceResponse.NodeEndpoint(
                node_id=node.node_id, host=node.host, port=node.port, rack=node.rack
            )
            for node in (nodes if version >= 10 else [])
        ],
    )


def _frame(version: int, correlation_id: int, response: ProduceResponse) -> bytes:
    body = struct.pack(">i", correlation_id) + (b"\0" if version >= 9 else b"")
    body += encode(response, version)
    return struct.pack(">i", len(body)) + body


def _keys(version: int) -> st.SearchStrategy[Any]:
    return st.binary(min_size=16, max_size=16) if version >= 13 else names


@pytest.mark.parametrize("version", VERSIONS)
@EACH_VERSION
@given(data=st.data())
def test_encodes_as_the_general_codec_does(version: int, data: st.DataObject) -> None:
    topics = data.draw(
        st.lists(st.tuples(_keys(version), st.lists(answers, max_size=2)), max_size=3)
    )
    nodes = data.draw(endpoints)
    throttle = data.draw(int32)
    assert encode_produce_response(version, 7, topics, nodes, throttle) == _frame(
        version, 7, _response(version, topics, nodes, throttle)
    )


@pytest.mark.parametrize("version", VERSIONS)
@EACH_VERSION
@given(data=st.data())
def test_the_fast_success_is_the_same_answer(version: int, data: st.DataObject) -> None:
    key = data.draw(_keys(version))
    index, base, append_time, start = data.draw(st.tuples(int32, int64, int64, int64))
    fast = encode_produce_success(version, -3, key, index, base, append_time, start)
    answer = PartitionAnswer(index, 0, base, append_time, start)
    assert fast == encode_produce_response(version, -3, [(key, [answer])])
    assert decode(ProduceResponse, version, fast, 9 if version >= 9 else 8) is not None


@pytest.mark.parametrize("version", VERSIONS)
@EACH_VERSION
@given(data=st.data(), prefix=st.binary(max_size=5))
def test_the_plain_form_is_read_the_same_way(
    version: int, data: st.DataObject, prefix: bytes
) -> None:
    request = data.draw(requests(version))
    frame = memoryview(prefix + encode(request, version))
    body = decode_produce(version, frame, len(prefix))
    single = decode_single_produce(version, frame, len(prefix))
    parts = [(key, *part) for key, partitions in body.topics for part in partitions]
    if single is None:
        plain = len(body.topics) == len(parts) == 1 and body.transactional_id is None
        long_name = plain and isinstance(parts[0][0], str) and len(parts[0][0].encode()) > 126
        assert not plain or parts[0][2] is None or long_name
    else:
        acks, timeout_ms, key, index, records = single
        assert (body.transactional_id, body.acks, body.timeout_ms) == (None, acks, timeout_ms)
        assert parts == [(key, index, records)]


@pytest.mark.parametrize("version", VERSIONS)
@EACH_VERSION
@given(data=st.data())
def test_the_plain_form_is_never_read_from_a_cut_request(version: int, data: st.DataObject) -> None:
    whole = encode(data.draw(requests(version)), version)
    cut = data.draw(st.integers(0, len(whole) - 1))
    assert decode_single_produce(version, memoryview(whole[:cut]), 0) is None
