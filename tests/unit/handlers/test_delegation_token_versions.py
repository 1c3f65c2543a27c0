"""Responses about delegation tokens can be written in every version: older ones do not say who
requested a token."""

from __future__ import annotations

import asyncio

import pytest

from moldau.broker.handlers.create_delegation_token import (
    ForwardedCreateDelegationTokenHandler,
    refused_creation,
)
from moldau.broker.handlers.support.tokens import without_requester
from moldau.broker.network.context import RequestContext
from moldau.wire.apis import ApiKey
from moldau.wire.codec import decode, encode
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenResponse,
)

VERSIONS = [1, 2, 3]


def context(key: ApiKey, version: int) -> RequestContext:
    return RequestContext(key, version, principal="User:alice", security_protocol="SASL_PLAINTEXT")


def requester(version: int) -> tuple[str, str]:
    return ("User", "alice") if version >= 3 else ("", "")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_token_is_created(version: int) -> None:
    async def forward(context: RequestContext, request: Message) -> Message:
        return CreateDelegationTokenResponse(
            token_id="t",
            token_requester_principal_type="User",
            token_requester_principal_name="alice",
        )

    handler = ForwardedCreateDelegationTokenHandler(forward)
    response = asyncio.run(
        handler.handle(
            context(ApiKey.CREATE_DELEGATION_TOKEN, version), CreateDelegationTokenRequest()
        )
    )
    read = decode(CreateDelegationTokenResponse, version, encode(response, version))
    assert read.token_id == "t"
    named = (read.token_requester_principal_type, read.token_requester_principal_name)
    assert named == requester(version)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_creation_is_refused(version: int) -> None:
    response = refused_creation(
        context(ApiKey.CREATE_DELEGATION_TOKEN, version),
        CreateDelegationTokenRequest(),
        ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
    )
    read = decode(CreateDelegationTokenResponse, version, encode(response, version))
    assert (read.principal_type, read.principal_name) == ("User", "alice")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_token_is_described(version: int) -> None:
    token = DescribeDelegationTokenResponse.DescribedDelegationToken(
        token_requester_principal_type="User", token_requester_principal_name="alice"
    )
    without_requester(context(ApiKey.DESCRIBE_DELEGATION_TOKEN, version), token)
    encode(DescribeDelegationTokenResponse(tokens=[token]), version)
    named = (token.token_requester_principal_type, token.token_requester_principal_name)
    assert named == requester(version)
