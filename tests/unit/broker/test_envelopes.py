"""What goes into an envelope comes out of it; what is wrong with one has Kafka's error code."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.broker.handlers.envelope import EnvelopeHandler
from moldau.broker.machine.envelopes import (
    decode_address,
    decode_principal,
    encode_address,
    encode_principal,
    is_not_controller,
    unwrap_request,
    wrap_request,
)
from moldau.broker.network.context import RequestContext
from moldau.broker.network.machine.refusals import refusal
from moldau.wire.apis import API_BY_KEY, Api, ApiKey
from moldau.wire.codec import decode, encode
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    AlterPartitionReassignmentsResponse,
    CreateTopicsResponse,
    DefaultPrincipalData,
    EnvelopeRequest,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from support.message_samples import Samples

FORWARDED = [api for api in API_BY_KEY.values() if api.forwarded]


def samples(api: Api) -> Iterator[tuple[int, Message]]:
    source = random.Random(api.name)
    for version in range(api.min_version, api.max_version + 1):
        for _ in range(8):
            yield version, Samples(source).message(api.request, version)


def context(api: Api, version: int) -> RequestContext:
    return RequestContext(
        api.key, version, 5, "client", principal="User:CN=a:b", client_host="10.1.2.3"
    )


@pytest.mark.parametrize("api", FORWARDED, ids=lambda api: api.name)
def test_every_forwarded_request_survives_its_envelope(api: Api) -> None:
    for version, request in samples(api):
        forwarded = unwrap_request(wrap_request(context(api, version), request))
        assert forwarded.api is api
        assert (forwarded.principal, forwarded.client_host) == ("User:CN=a:b", "10.1.2.3")
        header = forwarded.header
        assert (header.api_version, header.correlation_id, header.client_id) == (
            version,
            5,
            "client",
        )
        assert decode(api.request, version, forwarded.frame, header.body_position) == request


@pytest.mark.parametrize("api", FORWARDED, ids=lambda api: api.name)
def test_every_forwarded_request_can_be_refused(api: Api) -> None:
    told = 0
    for version, request in samples(api):
        response = refusal(api, version, request, ErrorCode.REQUEST_TIMED_OUT, "too late")
        assert response is not None
        again = decode(api.response, version, encode(response, version))
        codes = _codes(again)
        # Nothing was asked for if nothing is told.
        assert codes <= {ErrorCode.REQUEST_TIMED_OUT}
        told += bool(codes)
    assert told > 3


def _codes(message: Message) -> set[int]:
    found = set()
    for name, *_ in message.FIELDS:
        value = getattr(message, name)
        if name == "error_code":
            found.add(value)
        elif isinstance(value, list):
            found |= {code for each in value if isinstance(each, Message) for code in _codes(each)}
    return found - {0}


def test_the_principal_is_written_as_kafka_writes_it() -> None:
    # Version 0, then type and name as compact strings, the flag, no tagged fields.
    assert encode_principal("User:bob") == b"\0\0\x05User\x04bob\0\0"
    assert decode_principal(b"\0\0\x05User\x04bob\0\0") == ("User:bob", False)
    assert decode_principal(b"\0\0\x05User\x04bob\x01\0") == ("User:bob", True)
    by_token = encode_principal("User:bob", token_authenticated=True)
    assert by_token == b"\0\0\x05User\x04bob\x01\0"
    assert DefaultPrincipalData(type="User", name="bob").token_authenticated is False


@pytest.mark.parametrize("data", [None, b"", b"\0", b"\0\x09abc", b"\0\0\x05Us", b"\xff\xff"])
def test_a_principal_that_cannot_be_read(data: bytes | None) -> None:
    with pytest.raises(ApiError) as error:
        decode_principal(data)
    assert error.value.code is ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE


@pytest.mark.parametrize("host", ["127.0.0.1", "255.1.0.9", "::1", "2001:db8::5"])
def test_addresses(host: str) -> None:
    assert decode_address(encode_address(host)) == host


def envelope(**changes: Any) -> EnvelopeRequest:
    api = API_BY_KEY[ApiKey.UPDATE_FEATURES]
    good = wrap_request(context(api, 1), UpdateFeaturesRequest())
    for name, value in changes.items():
        setattr(good, name, value)
    return good


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"client_host_address": b"abc"}, ErrorCode.INVALID_REQUEST),
        ({"client_host_address": b""}, ErrorCode.INVALID_REQUEST),
        ({"request_principal": b"?"}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"request_principal": None}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"request_data": b""}, ErrorCode.UNSUPPORTED_VERSION),
        ({"request_data": b"\0\x39\0\1\0\0\0\1\0\x20ab"}, ErrorCode.UNSUPPORTED_VERSION),
        ({"request_data": b"\x7f\0\0\0\0\0\0\1\0\1a"}, ErrorCode.UNSUPPORTED_VERSION),
        # Metadata is not for the controller.
        ({"request_data": b"\0\3\0\1\0\0\0\1\0\1a"}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_bad_envelope_is_answered_with_the_error(
    changes: dict[str, Any], code: ErrorCode
) -> None:
    def dispatch(connection: Any, frame: memoryview) -> Any:
        raise AssertionError("must not get this far")

    async def scenario() -> None:
        asking = RequestContext(ApiKey.ENVELOPE, 0)
        response = await EnvelopeHandler(dispatch).handle(asking, envelope(**changes))
        assert (response.error_code, response.response_data) == (code, None)

    asyncio.run(scenario())


def test_not_controller_is_found_wherever_it_stands() -> None:
    code = ErrorCode.NOT_CONTROLLER
    create, update = API_BY_KEY[ApiKey.CREATE_TOPICS], API_BY_KEY[ApiKey.UPDATE_FEATURES]
    result = CreateTopicsResponse.CreatableTopicResult
    deep = CreateTopicsResponse(topics=[result(name="a"), result(name="b", error_code=code)])
    assert is_not_controller(create, deep)
    assert not is_not_controller(create, CreateTopicsResponse(topics=[result(name="a")]))
    assert is_not_controller(update, UpdateFeaturesResponse(error_code=code))
    deeper = AlterPartitionReassignmentsResponse.ReassignablePartitionResponse(error_code=code)
    topic = AlterPartitionReassignmentsResponse.ReassignableTopicResponse(partitions=[deeper])
    assert is_not_controller(
        API_BY_KEY[ApiKey.ALTER_PARTITION_REASSIGNMENTS],
        AlterPartitionReassignmentsResponse(responses=[topic]),
    )
