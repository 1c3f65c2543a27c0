"""A client's request inside an Envelope (key 58): what a broker sends to the active controller.

Decided here: how requests and responses are put into envelopes and taken out of them, and which
error means that the request, rather than the envelope, could not be read. The request has its own
header and version; the principal and the address are those of the client.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final, NamedTuple

from moldau.broker.network.context import RequestContext
from moldau.wire.apis import API_BY_KEY, Api, ApiKey
from moldau.wire.errors import ApiError, ErrorCode, WireError
from moldau.wire.framing import (
    RequestHeader,
    decode_request_header,
    decode_response,
    encode_request_frame,
)
from moldau.wire.message import Message
from moldau.wire.messages import DefaultPrincipalData, EnvelopeRequest
from moldau.wire.record_values import decode_versioned, encode_versioned

SIZE_BYTES: Final = 4
ADDRESS_LENGTHS: Final = (4, 16)


class Forwarded(NamedTuple):
    """What an envelope holds."""

    api: Api
    header: RequestHeader
    principal: str
    token_authenticated: bool
    client_host: str
    frame: bytes


def wrap_request(context: RequestContext, request: Message) -> EnvelopeRequest:
    """`request` for the controller, as it came with `context`."""
    frame = encode_request_frame(
        API_BY_KEY[context.api_key],
        context.api_version,
        context.correlation_id,
        context.client_id,
        request,
    )
    return EnvelopeRequest(
        request_data=frame[SIZE_BYTES:],
        request_principal=encode_principal(
            context.principal, token_authenticated=context.connection.token_authenticated
        ),
        client_host_address=encode_address(context.client_host),
    )


def unwrap_request(envelope: EnvelopeRequest) -> Forwarded:
    """Raises ApiError with the code that the envelope is answered with."""
    principal, token_authenticated = decode_principal(envelope.request_principal)
    client_host = decode_address(envelope.client_host_address)
    try:
        header = decode_request_header(envelope.request_data)
    except WireError as error:
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION, f"the header of a forwarded request: {error}"
        ) from error
    api = API_BY_KEY.get(header.api_key)
    if api is None:
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION, f"a forwarded request has API key {header.api_key}"
        )
    if not api.forwarded:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{api.name} is not forwarded to controllers")
    return Forwarded(
        api, header, principal, token_authenticated, client_host, envelope.request_data
    )


def unwrap_response(context: RequestContext, response_data: bytes) -> Message:
    """The response of an envelope that was answered without error; raises WireError."""
    api = API_BY_KEY[context.api_key]
    correlation_id, response = decode_response(api, context.api_version, response_data)
    if correlation_id != context.correlation_id:
        raise WireError(
            f"the controller answered request {correlation_id}, not {context.correlation_id}"
        )
    return response


def is_not_controller(api: Api, response: Message) -> bool:
    """Whether `response` says, anywhere, that another node is the active controller."""
    code = ErrorCode.NOT_CONTROLLER
    if api.key is ApiKey.DESCRIBE_QUORUM:
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    return _has_error(response, code)


def _has_error(message: Message, code: ErrorCode) -> bool:
    for name, *_ in message.FIELDS:
        value = getattr(message, name)
        if name == "error_code":
            if value == code:
                return True
        elif isinstance(value, Message):
            if _has_error(value, code):
                return True
        elif isinstance(value, list) and any(
            isinstance(each, Message) and _has_error(each, code) for each in value
        ):
            return True
    return False


def encode_principal(principal: str, *, token_authenticated: bool = False) -> bytes:
    """`principal` is spelled type:name."""
    kind, _, name = principal.partition(":")
    data = DefaultPrincipalData(type=kind, name=name, token_authenticated=token_authenticated)
    return encode_versioned(data, 0)


def decode_principal(data: bytes | None) -> tuple[str, bool]:
    """The principal, and whether it logged in with a delegation token."""
    try:
        principal = decode_versioned(DefaultPrincipalData, data or b"")
    except WireError as error:
        raise ApiError(
            ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, f"the principal in an envelope: {error}"
        ) from error
    return f"{principal.type}:{principal.name}", principal.token_authenticated


def encode_address(host: str) -> bytes:
    # A link-local address may name its interface, which has no meaning on other machines.
    return ip_address(host.partition("%")[0]).packed


def decode_address(data: bytes) -> str:
    if len(data) not in ADDRESS_LENGTHS:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"the client address in an envelope has {len(data)} bytes: it must have 4 or 16",
        )
    return str(ip_address(data))
