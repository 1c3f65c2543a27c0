"""Envelope (key 58), v0: a request that a broker forwards to the active controller.

The request inside is handled as if its client had connected here, with that client's principal,
address and version; its response is returned in the envelope. If this is not the active controller,
the envelope's own error is NOT_CONTROLLER, and the broker looks for the active one.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from moldau.broker.machine.envelopes import SIZE_BYTES, Forwarded, is_not_controller, unwrap_request
from moldau.broker.network.context import ConnectionInfo, RequestContext
from moldau.broker.network.interface import InvalidRequest, Reply
from moldau.broker.network.machine.refusals import refusal
from moldau.wire.codec import decode
from moldau.wire.errors import ApiError, ErrorCode, WireError
from moldau.wire.framing import decode_response, encode_response_frame
from moldau.wire.messages import EnvelopeRequest, EnvelopeResponse

Dispatch: TypeAlias = Callable[[ConnectionInfo, memoryview], Reply | Awaitable[Reply]]

logger = logging.getLogger(__name__)


class EnvelopeHandler:
    def __init__(self, dispatch: Dispatch) -> None:
        """`dispatch` answers frames on the listener that received the envelope."""
        self._dispatch = dispatch

    async def handle(self, context: RequestContext, request: EnvelopeRequest) -> EnvelopeResponse:
        try:
            forwarded = unwrap_request(request)
        except ApiError as error:
            logger.warning("an envelope from %s is refused: %s", context.client_host, error)
            return EnvelopeResponse(error_code=error.code)
        try:
            reply = self._dispatch(_client(context, forwarded), memoryview(forwarded.frame))
            if isinstance(reply, Awaitable):
                reply = await reply
        except InvalidRequest as error:
            return _refuse(forwarded, error)
        frame = b"".join(reply) if isinstance(reply, list) else reply or b""
        return _enclose(forwarded, frame[SIZE_BYTES:])


def _client(context: RequestContext, forwarded: Forwarded) -> ConnectionInfo:
    """The client's connection, as far as it is known here."""
    client = ConnectionInfo(
        listener_name=context.listener_name,
        security_protocol=context.security_protocol,
        principal=forwarded.principal,
        client_host=forwarded.client_host,
        connection_id=context.connection_id,
    )
    client.token_authenticated = forwarded.token_authenticated
    return client


def _enclose(forwarded: Forwarded, data: bytes) -> EnvelopeResponse:
    _, response = decode_response(forwarded.api, forwarded.header.api_version, data)
    if is_not_controller(forwarded.api, response):
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    return EnvelopeResponse(response_data=data)


def _refuse(forwarded: Forwarded, error: InvalidRequest) -> EnvelopeResponse:
    """What would have closed the client's connection, had it been connected here."""
    cause = error.__cause__
    if cause is None or isinstance(cause, WireError):
        # Not readable in this version, or not served.
        return EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not isinstance(cause, ApiError):
        return EnvelopeResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    if cause.code is ErrorCode.NOT_CONTROLLER:
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    api, header = forwarded.api, forwarded.header
    request = decode(api.request, header.api_version, forwarded.frame, header.body_position)
    response = refusal(api, header.api_version, request, cause.code, cause.message)
    if response is None:
        return EnvelopeResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    frame = encode_response_frame(api, header.api_version, header.correlation_id, response)
    return EnvelopeResponse(response_data=frame[SIZE_BYTES:])
