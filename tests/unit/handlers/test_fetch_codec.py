"""The hand-made Fetch codec against the general one, which is made from the schemas."""

from __future__ import annotations

import contextlib
import struct
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.broker.handlers.support._fetch_codec import decode_fetch, encode_fetch_response
from moldau.broker.replication.machine.fetch_data import PartitionData, PartitionFetch
from moldau.broker.replication.machine.names import NodeEndpoint
from moldau.wire.codec import encode
from moldau.wire.errors import WireError
from moldau.wire.messages import FetchRequest, FetchResponse

# The versions differ in little: all of them together try some hundred examples.
EACH_VERSION = settings(max_examples=max(10, settings.default.max_examples // 4))
VERSIONS = range(4, 19)
int8 = st.integers(-(2**7), 2**7 - 1)
int16 = st.integers(-(2**15), 2**15 - 1)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
names = st.text(max_size=40) | st.just("n" * 249)


def _topic(version: int, name: str) -> dict[str, st.SearchStrategy[Any]]:
    return {"topic_id": st.uuids()} if version >= 13 else {name: names}


def _partitions(version: int) -> st.SearchStrategy[Any]:
    fields: dict[str, st.SearchStrategy[Any]] = {
        "partition": int32,
        "fetch_offset": int64,
        "partition_max_bytes": int32,
    }
    if version >= 5:
        fields["log_start_offset"] = int64
    if version >= 9:
        fields["current_leader_epoch"] = int32
    if version >= 12:
        fields["last_fetched_epoch"] = int32
    if version >= 17:
        fields["replica_directory_id"] = st.just(UUID(int=0)) | st.uuids()
    if version >= 18:
        fields["high_watermark"] = st.just(2**63 - 1) | int64
    return st.builds(FetchRequest.FetchPartition, **fields)


@st.composite
def requests(draw: st.DrawFn, version: int) -> FetchRequest:
    topics = st.builds(
        FetchRequest.FetchTopic,
        partitions=st.lists(_partitions(version), max_size=4),
        **_topic(version, "topic"),
    )
    request = FetchRequest(
        max_wait_ms=draw(int32),
        min_bytes=draw(int32),
        max_bytes=draw(int32),
        isolation_level=draw(int8),
        topics=draw(st.lists(topics, max_size=3)),
    )
    if version >= 15:
        request.replica_state = FetchRequest.ReplicaState(
            replica_id=draw(st.just(-1) | int32), replica_epoch=draw(st.just(-1) | int64)
        )
    else:
        request.replica_id = draw(int32)
    if version >= 7:
        request.session_id = draw(int32)
        request.session_epoch = draw(int32)
        forgotten = st.builds(
            FetchRequest.ForgottenTopic,
            partitions=st.lists(int32, max_size=4),
            **_topic(version, "topic"),
        )
        request.forgotten_topics_data = draw(st.lists(forgotten, max_size=2))
    if version >= 11:
        request.rack_id = draw(st.text(max_size=9))
    if version >= 12:
        request.cluster_id = draw(st.none() | st.text(max_size=9))
    return request


def _key(topic: Any, version: int) -> str | bytes:
    return topic.topic_id.bytes if version >= 13 else topic.topic


@pytest.mark.parametrize("version", VERSIONS)
@EACH_VERSION
@given(data=st.data(), prefix=st.binary(max_size=5))
def test_decodes_what_the_general_codec_encodes(
    version: int, data: st.DataObject, prefix: bytes
) -> None:
    request = data.draw(requests(version))
    body = decode_fetch(version, memoryview(prefix + encode(request, version)), len(prefix))
    replica = (
        (request.replica_state.replica_id, request.replica_state.replica_epoch)
        if version >= 15
        else (request.replica_id, -1)
    )
    assert body[:8] == (
        *replica,
        request.max_wait_ms,
        request.min_bytes,
        request.max_bytes,
        request.isolation_level,
        request.session_id,
        request.session_epoch,
    )
    assert body.topics == [
        (
            _key(topic, version),
            [
                PartitionFetch(
                    part.partition,
                    part.current_leader_epoch,
                    part.fetch_offset,
                    part.last_fetched_epoch,
                    part.log_start_offset,
                    part.partition_max_bytes,
                )
                for part in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    assert body.forgotten == [
        (_key(topic, version), topic.partitions) for topic in request.forgotten_topics_data
    ]


@pytest.mark.parametrize("version", VERSIONS)
@EACH_VERSION
@given(data=st.data())
def test_a_cut_request_is_malformed(version: int, data: st.DataObject) -> None:
    whole = encode(data.draw(requests(version)), version)
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(WireError):
        decode_fetch(version, memoryview(whole[:cut]), 0)


@pytest.mark.parametrize("version", VERSIONS)
@EACH_VERSION
@given(frame=st.binary(max_size=200))
def test_garbage_is_an_error_or_a_request_but_nothing_else(version: int, frame: bytes) -> None:
    with contextlib.suppress(WireError):
        decode_fetch(version, memoryview(frame), 0)


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(struct.pack(">iiiibi", -1, 0, 0, 0, 0, 2**31 - 1), id="topics"),
        pytest.param(
            struct.pack(">iiiibihi", -1, 0, 0, 0, 0, 1, 0, 2**31 - 1) + bytes(64), id="partitions"
        ),
    ],
)
def test_a_count_beyond_the_frame_is_malformed(frame: bytes) -> None:
    with pytest.raises(WireError):
        decode_fetch(4, memoryview(frame), 0)


pairs = st.tuples(int32, int32).filter(lambda pair: pair != (-1, -1))


@st.composite
def partition_data(draw: st.DrawFn) -> PartitionData:
    records = [memoryview(part) for part in draw(st.lists(st.binary(min_size=1), max_size=2))]
    return PartitionData(
        draw(int32),
        draw(int16),
        draw(int64),
        draw(int64),
        draw(int64),
        records,
        sum(map(len, records)),
        draw(st.none() | st.lists(st.tuples(int64, int64), max_size=2)),
        draw(st.none() | st.tuples(int32, int64).filter(lambda pair: pair != (-1, -1))),
        draw(st.none() | pairs),
    )


def _partition(version: int, data: PartitionData) -> Any:
    part = FetchResponse.PartitionData(
        partition_index=data.partition,
        error_code=data.error_code,
        high_watermark=data.high_watermark,
        last_stable_offset=data.last_stable_offset,
        log_start_offset=data.log_start_offset,
        aborted_transactions=None
        if data.aborted_transactions is None
        else [
            FetchResponse.AbortedTransaction(producer_id=producer_id, first_offset=first)
            for producer_id, first in data.aborted_transactions
        ],
        records=b"".join(data.records),
    )
    if version >= 12 and data.diverging_epoch is not None:
        part.diverging_epoch = FetchResponse.EpochEndOffset(
            epoch=data.diverging_epoch[0], end_offset=data.diverging_epoch[1]
        )
    if version >= 12 and data.current_leader is not None:
        part.current_leader = FetchResponse.LeaderIdAndEpoch(
            leader_id=data.current_leader[0], leader_epoch=data.current_leader[1]
        )
    return part


@pytest.mark.parametrize("version", VERSIONS)
@EACH_VERSION
@given(data=st.data())
def test_encodes_as_the_general_codec_does(version: int, data: st.DataObject) -> None:
    keys: st.SearchStrategy[Any] = st.binary(min_size=16, max_size=16) if version >= 13 else names
    topics = data.draw(
        st.lists(st.tuples(keys, st.lists(partition_data(), max_size=3)), max_size=3)
    )
    nodes = data.draw(
        st.lists(st.builds(NodeEndpoint, int32, st.text(max_size=9), int32, st.none()), max_size=2)
    )
    session_id, error_code, throttle = data.draw(st.tuples(int32, int16, int32))
    response = FetchResponse(
        throttle_time_ms=throttle,
        responses=[
            FetchResponse.FetchableTopicResponse(
                topic=key if isinstance(key, str) else "",
                topic_id=UUID(bytes=key) if isinstance(key, bytes) else UUID(int=0),
                partitions=[_partition(version, part) for part in parts],
            )
            for key, parts in topics
        ],
    )
    if version >= 7:
        response.session_id, response.error_code = session_id, error_code
    if version >= 16:
        response.node_endpoints = [
            FetchResponse.NodeEndpoint(node_id=node.node_id, host=node.host, port=node.port)
            for node in nodes
        ]
    body = struct.pack(">i", 99) + (b"\0" if version >= 12 else b"") + encode(response, version)
    assert (
        b"".join(
            encode_fetch_response(version, 99, session_id, error_code, topics, nodes, throttle)
        )
        == struct.pack(">i", len(body)) + body
    )


def test_records_are_not_copied() -> None:
    records = bytearray(b"abc")
    data = PartitionData(0, records=[memoryview(records)], records_size=3)
    frame = encode_fetch_response(12, 0, 0, 0, [("t", [data])])
    records[0] = ord("x")
    assert b"xbc" in b"".join(frame)
