"""Forwards requests that only the active controller can decide.

Decided here: how long that is tried, and the client's error if it fails. As in Kafka, the client's
connection is closed if the controller cannot read its version (the client negotiates versions again
on the next one), and errors of the forwarding itself are UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

import logging
from typing import Final

from moldau.broker.controller_channel import ControllerChannel, ControllerUnavailable
from moldau.broker.machine.envelopes import unwrap_response, wrap_request
from moldau.broker.network.context import RequestContext
from moldau.broker.network.interface import InvalidRequest
from moldau.broker.network.machine.refusals import refusal
from moldau.peers.channel import ChannelError
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.errors import ApiError, ErrorCode, WireError
from moldau.wire.message import Message
from moldau.wire.messages import EnvelopeResponse

#: How long Kafka tries to find a controller that answers.
FORWARDING_TIMEOUT_MS_MAX: Final = 60_000

logger = logging.getLogger(__name__)


class ForwardingManager:
    """Has requests answered by the active controller."""

    def __init__(self, channel: ControllerChannel) -> None:
        self._channel = channel

    async def forward(self, context: RequestContext, request: Message) -> Message:
        """The controller's response to `request`, in the version of `context`; a handler.

        Raises InvalidRequest if the connection must be closed, ApiError if the API has no place
        for the error but the dispatcher's.
        """
        name = API_BY_KEY[context.api_key].name
        try:
            response = await self._channel.call(
                ApiKey.ENVELOPE,
                wrap_request(context, request),
                timeout_ms=forwarding_timeout_ms(request),
            )
        except ControllerUnavailable as error:
            logger.warning("%s of %s was not forwarded: %s", name, context.client_host, error)
            return _refuse(context, request, ErrorCode.REQUEST_TIMED_OUT, str(error))
        except (ChannelError, WireError) as error:
            logger.warning("%s of %s was not forwarded: %s", name, context.client_host, error)
            return _refuse(context, request, ErrorCode.UNKNOWN_SERVER_ERROR, _UNKNOWN)
        return _unwrap(context, request, response)


def forwarding_timeout_ms(request: Message) -> int:
    """No longer than the client waits, if its request says how long that is."""
    asked: int = getattr(request, "timeout_ms", 0)
    return min(asked, FORWARDING_TIMEOUT_MS_MAX) if asked > 0 else FORWARDING_TIMEOUT_MS_MAX


_UNKNOWN: Final = "The server experienced an unexpected error when processing the request."


def _unwrap(context: RequestContext, request: Message, response: Message) -> Message:
    api = API_BY_KEY[context.api_key]
    data, code = None, 0
    if isinstance(response, EnvelopeResponse):
        data, code = response.response_data, response.error_code
    if code == ErrorCode.UNSUPPORTED_VERSION:
        raise InvalidRequest(
            f"the controller does not know {api.name} v{context.api_version}; it may have changed "
            "since this client asked for versions"
        )
    try:
        if code == ErrorCode.NONE and data is not None:
            return unwrap_response(context, data)
        problem = f"error code {code}"
    except WireError as error:
        problem = str(error)
    # A problem between nodes: the client could make nothing of it.
    logger.error("forwarding %s v%d failed: %s", api.name, context.api_version, problem)
    return _refuse(context, request, ErrorCode.UNKNOWN_SERVER_ERROR, _UNKNOWN)


def _refuse(context: RequestContext, request: Message, code: ErrorCode, message: str) -> Message:
    response = refusal(API_BY_KEY[context.api_key], context.api_version, request, code, message)
    if response is None:
        raise ApiError(code, message)
    return response
