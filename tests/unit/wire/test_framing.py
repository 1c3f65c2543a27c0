"""Frames, headers, and the table of APIs they are made by."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.codec import decode
from moldau.wire.errors import WireError
from moldau.wire.framing import (
    RequestHeader,
    decode_request_header,
    decode_response,
    encode_request_frame,
    encode_request_parts,
    encode_response_frame,
)
from moldau.wire.message import OPEN_END
from moldau.wire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    ProduceRequest,
)
from moldau.wire.messages import RequestHeader as RequestHeaderMessage

HEARTBEAT = API_BY_KEY[ApiKey.HEARTBEAT]
API_VERSIONS = API_BY_KEY[ApiKey.API_VERSIONS]


class TestApis:
    def test_every_live_key_is_there(self) -> None:
        assert set(API_BY_KEY) == set(range(93)) - {4, 5, 6, 7}
        assert set(API_BY_KEY) == {int(key) for key in ApiKey}

    def test_versions_of_4_3(self) -> None:
        produce = API_BY_KEY[ApiKey.PRODUCE]
        assert (produce.min_version, produce.max_version, produce.flexible_from) == (3, 13, 9)
        assert produce.listeners == ("broker",)
        assert not produce.forwarded
        assert API_BY_KEY[ApiKey.CREATE_TOPICS].forwarded
        assert API_BY_KEY[ApiKey.ALTER_PARTITION].cluster_action

    def test_an_unstable_version_is_not_the_maximum(self) -> None:
        init = API_BY_KEY[ApiKey.INIT_PRODUCER_ID]
        assert (init.max_version, init.max_version_unstable, init.latest_unstable) == (5, 6, True)
        assert [api.name for api in API_BY_KEY.values() if api.latest_unstable] == [
            "InitProducerId"
        ]

    def test_classes_belong_to_their_api(self) -> None:
        for number, api in API_BY_KEY.items():
            for cls in (api.request, api.response):
                assert number == cls.TYPE
                assert api.min_version == cls.LOWEST_VERSION
                assert api.max_version_unstable == cls.HIGHEST_VERSION
                assert api.flexible_from == cls.FLEXIBLE_FROM

    @pytest.mark.parametrize(
        ("key", "version", "header_version"),
        [
            (ApiKey.HEARTBEAT, 3, 0),
            (ApiKey.HEARTBEAT, 4, 1),
            (ApiKey.API_VERSIONS, 2, 0),
            (ApiKey.API_VERSIONS, 3, 0),
            (ApiKey.SASL_HANDSHAKE, 1, 0),
            (ApiKey.VOTE, 0, 1),
        ],
    )
    def test_response_header_versions(self, key: ApiKey, version: int, header_version: int) -> None:
        assert API_BY_KEY[key].response_header_version(version) == header_version

    def test_some_apis_are_never_flexible(self) -> None:
        never = [api.name for api in API_BY_KEY.values() if api.flexible_from == OPEN_END]
        assert never == ["SaslHandshake", "OffsetDelete"]


class TestRequests:
    @pytest.mark.parametrize(
        ("version", "client_id", "expected"),
        [
            (0, "me", "00000015 000c 0000 00000007 0002 6d65 0001 67 00000001 0000"),
            (0, None, "00000013 000c 0000 00000007 ffff 0001 67 00000001 0000"),
            (4, "me", "00000016 000c 0004 00000007 0002 6d65 00 02 67 00000001 01 00 00"),
        ],
    )
    def test_known_bytes(self, version: int, client_id: str | None, expected: str) -> None:
        request = HeartbeatRequest(group_id="g", generation_id=1)
        frame = encode_request_frame(HEARTBEAT, version, 7, client_id, request)
        assert frame.hex() == bytes.fromhex(expected).hex()
        header = decode_request_header(frame, 4)
        assert header[:4] == (12, version, 7, client_id)
        assert frame[header.body_position :].startswith(b"\x00\x01g" if version == 0 else b"\x02g")

    def test_any_buffer_at_any_position(self) -> None:
        frame = encode_request_frame(HEARTBEAT, 4, 7, "me", HeartbeatRequest())
        expected = RequestHeader(12, 4, 7, "me", 17)
        for buffer in (frame, bytearray(frame), memoryview(frame)):
            assert decode_request_header(buffer, 4) == expected

    def test_tagged_fields_of_the_header_are_skipped(self) -> None:
        data = bytes.fromhex("000c 0004 00000007 ffff 02 00 01 aa 8001 02 bbcc")
        assert decode_request_header(data).body_position == len(data)

    def test_header_of_unknown_things_is_read_to_the_client_id(self) -> None:
        unknown_api = bytes.fromhex("03e8 0000 00000007 0002 6d65")
        assert decode_request_header(unknown_api) == RequestHeader(1000, 0, 7, "me", 12)
        unknown_version = bytes.fromhex("0012 0063 00000007 0002 6d65 00")
        assert decode_request_header(unknown_version) == RequestHeader(18, 99, 7, "me", 12)
        negative = bytes.fromhex("ffff ffff 00000007 ffff")
        assert decode_request_header(negative) == RequestHeader(-1, -1, 7, None, 10)

    @pytest.mark.parametrize(
        "data",
        [
            "",
            "000c 0004 00000007",
            "000c 0004 00000007 0005 6d65",
            "000c 0004 00000007 0001 ff 00",
            "000c 0004 00000007 0000",
            "000c 0004 00000007 0000 01",
            "000c 0004 00000007 0000 01 00 05 aa",
            "000c 0004 00000007 0000 ffffffff0f 00 00",
        ],
    )
    def test_malformed_headers(self, data: str) -> None:
        with pytest.raises(WireError):
            decode_request_header(bytes.fromhex(data))

    @given(st.binary(max_size=64))
    def test_noise_raises_nothing_but_wire_error(self, noise: bytes) -> None:
        try:
            header = decode_request_header(noise)
        except WireError:
            return
        assert 10 <= header.body_position <= len(noise)

    def test_client_id_too_long(self) -> None:
        with pytest.raises(WireError):
            encode_request_frame(HEARTBEAT, 4, 7, "x" * 32768, HeartbeatRequest())

    def test_header_message_agrees(self) -> None:
        from moldau.wire.codec import encode

        header = RequestHeaderMessage(
            request_api_key=12, request_api_version=4, correlation_id=7, client_id="me"
        )
        data = encode(header, 2)
        assert decode_request_header(data) == RequestHeader(12, 4, 7, "me", len(data))


class TestResponses:
    @pytest.mark.parametrize(
        ("version", "expected"),
        [(0, "00000006 00000007 001b"), (4, "0000000c 00000007 00 00000000 001b 00")],
    )
    def test_known_bytes(self, version: int, expected: str) -> None:
        response = HeartbeatResponse(error_code=27)
        frame = encode_response_frame(HEARTBEAT, version, 7, response)
        assert frame.hex() == bytes.fromhex(expected).hex()
        assert decode_response(HEARTBEAT, version, frame, 4) == (7, response)

    def test_api_versions_keeps_the_old_header(self) -> None:
        frame = encode_response_frame(API_VERSIONS, 3, 7, ApiVersionsResponse())
        assert frame[4:10].hex() == "000000070000"
        assert decode_response(API_VERSIONS, 3, frame, 4) == (7, ApiVersionsResponse())

    def test_cut_off(self) -> None:
        frame = encode_response_frame(HEARTBEAT, 4, 7, HeartbeatResponse())
        for size in range(4, len(frame)):
            with pytest.raises(WireError):
                decode_response(HEARTBEAT, 4, frame[:size], 4)


def test_request_round_trip_through_a_frame() -> None:
    request = ApiVersionsRequest(client_software_name="n", client_software_version="1")
    frame = encode_request_frame(API_VERSIONS, 4, 1, None, request)
    from moldau.wire.codec import decode

    header = decode_request_header(frame, 4)
    assert decode(API_VERSIONS.request, 4, frame, header.body_position) == request


def test_long_byte_strings_of_a_request_are_not_copied() -> None:
    def part(index: int, records: Any) -> ProduceRequest.PartitionProduceData:
        return ProduceRequest.PartitionProduceData(index=index, records=records)

    long, short = bytearray(b"x" * 20_000), b"y" * 300
    topics = [
        ProduceRequest.TopicProduceData(name="a", partition_data=[part(0, long), part(1, short)]),
        ProduceRequest.TopicProduceData(name="b", partition_data=[part(2, long)]),
    ]
    request = ProduceRequest(acks=-1, timeout_ms=5, topic_data=topics)
    api = API_BY_KEY[ApiKey.PRODUCE]
    parts = encode_request_parts(api, 12, 7, "me", request)
    assert [each is long for each in parts] == [False, True, False, True, False]
    frame = b"".join(parts)
    assert frame == encode_request_frame(api, 12, 7, "me", request)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    header = decode_request_header(frame, 4)
    decoded = decode(ProduceRequest, 12, frame, header.body_position)
    assert [each.records for topic in decoded.topic_data for each in topic.partition_data] == [
        long,
        short,
        long,
    ]


def test_a_request_without_long_byte_strings_is_one_part() -> None:
    (part,) = encode_request_parts(HEARTBEAT, 4, 7, "me", HeartbeatRequest())
    assert part == encode_request_frame(HEARTBEAT, 4, 7, "me", HeartbeatRequest())
