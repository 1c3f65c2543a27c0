"""Passes a request frame to the handler of its API and version, and returns the response.

Decided here: which requests are served on which listener, and how errors are handled. A client
error without a place in a response, a request that is not served and bytes that are not a request
close the connection (InvalidRequest, logged once by the network); a bug is logged here with its
traceback and answered with UNKNOWN_SERVER_ERROR.

A handler that responds immediately costs no task: only one that must wait returns an awaitable, and
that of a prompt route is run up to its first wait before there is a task.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import struct
from collections.abc import Awaitable, Mapping
from time import perf_counter_ns
from typing import Any, Final, cast

from moldau.broker.metrics.phases import Answered
from moldau.broker.metrics.requests import ApiMetrics, RequestMetrics
from moldau.broker.network.context import ConnectionInfo, RequestContext
from moldau.broker.network.eager import rest_of
from moldau.broker.network.interface import InvalidRequest, Reply, RequestLimits
from moldau.broker.network.machine.refusals import refusal
from moldau.broker.network.machine.response_errors import error_codes
from moldau.broker.network.routes import Route
from moldau.wire.apis import API_BY_KEY, Api, ApiKey
from moldau.wire.codec import decode
from moldau.wire.errors import ApiError, ErrorCode, WireError
from moldau.wire.framing import decode_request_header, encode_response_frame
from moldau.wire.message import Message
from moldau.wire.messages import ApiVersionsResponse

__all__ = ["Dispatcher", "Route"]

#: Key, version and correlation id, with which every request header begins.
_HEADER_START: Final = struct.Struct(">hhi")
#: The same with key and version as one number, and the length of the client id.
_HEADER: Final = struct.Struct(">iih")

#: Responses that are there when a handler returns.
_AT_ONCE: Final = (bytes, list)

logger = logging.getLogger(__name__)


class _Target:
    """A route in one version, looked up by the first four bytes of a request."""

    __slots__ = (
        "answered",
        "answered_follower",
        "api",
        "copies_frame",
        "flexible",
        "handle",
        "key",
        "metrics",
        "metrics_follower",
        "prompt",
        "raw",
        "request",
        "version",
    )

    def __init__(self, key: ApiKey, api: Api, version: int, route: Route) -> None:
        self.key = key
        self.api = api
        self.version = version
        self.flexible = version >= api.flexible_from
        self.handle: Any = route.handle
        self.raw = route.raw
        self.prompt = route.prompt
        # Loaded with the first request: most versions are never used.
        self.request: type[Message] | None = None
        # Made with the first request, too.
        self.answered: Answered | None = None
        self.answered_follower: Answered | None = None
        self.metrics: ApiMetrics | None = None
        self.metrics_follower: ApiMetrics | None = None
        # A coroutine starts only after dispatch has returned, when the frame is gone.
        self.copies_frame = route.raw and inspect.iscoroutinefunction(route.handle)


class Dispatcher:
    """Implements `interface.FrameReceiver`."""

    def __init__(
        self,
        routes: Mapping[ApiKey, Route],
        *,
        limits: RequestLimits | None = None,
        metrics: RequestMetrics | None = None,
    ) -> None:
        """`limits` applies to all requests of clients but Produce and Fetch, which apply theirs;
        without `metrics` requests are not measured."""
        self._limits = limits
        self._metrics = metrics
        self._targets = _targets_of(routes)
        self._newest = {target.key: target for target in self._targets.values()}
        # The two bytes of the API key, with which a request begins.
        self._pipelined = frozenset(
            int(key).to_bytes(2, "big") for key, route in routes.items() if route.pipelined
        )
        self._running: set[asyncio.Task[Reply]] = set()

    @staticmethod
    def _metrics_of(
        metrics: RequestMetrics, target: _Target, connection: ConnectionInfo
    ) -> ApiMetrics:
        """Kafka has Fetch, and within it FetchConsumer and FetchFollower."""
        found = metrics.api(target.api.name, target.version)
        if target.key is ApiKey.FETCH:
            name = "FetchFollower" if connection.is_follower else "FetchConsumer"
            found = metrics.api(name, target.version, found)
        answered = cast(Answered, found.api.answered)
        if connection.is_follower:
            target.answered_follower, target.metrics_follower = answered, found
        else:
            target.answered, target.metrics = answered, found
        return found

    def dispatch(self, connection: ConnectionInfo, frame: memoryview) -> Reply | Awaitable[Reply]:
        started_ns = perf_counter_ns()
        targets = self._targets
        try:
            api_and_version, correlation_id, length = _HEADER.unpack_from(frame)
            target = targets[api_and_version]
            # The usual header is read in place, any other one by the codec: this is the hot path.
            position = _HEADER.size + length
            if length < 0 or position >= len(frame) or (target.flexible and frame[position]):
                header = decode_request_header(frame)
                client_id, position = header.client_id, header.body_position
            else:
                client_id = str(frame[_HEADER.size : position], "utf-8")
                position += target.flexible
        except (KeyError, struct.error, UnicodeDecodeError, WireError) as error:
            return self._answer_unserved(targets, frame, error)
        context = RequestContext(
            target.key,
            target.version,
            correlation_id,
            client_id,
            connection.listener_name,
            connection.security_protocol,
            connection.principal,
            connection.client_host,
            connection.connection_id,
            connection,
        )
        reply: Reply | Awaitable[Reply]
        if not target.raw:
            reply = self._answer_generic(target, context, frame, position)
        else:
            if target.copies_frame:
                frame = memoryview(bytearray(frame))
            try:
                reply = target.handle(context, frame, position)
            except (ApiError, WireError, InvalidRequest) as error:
                raise InvalidRequest(f"{_name(target)}: {error}") from error
        answered = target.answered_follower if connection.is_follower else target.answered
        if answered is None or (reply is not None and type(reply) not in _AT_ONCE):
            return self._measured(target, connection, reply, started_ns, len(frame))
        phases = connection.phases
        if phases.turn_ns:
            phases.answer(answered.__self__, started_ns, len(frame))
        else:
            # Alone in its wake-up, as most are: nothing waits.
            phases.turn_ns = started_ns
            phases.last = answered
            answered(started_ns, len(frame))
        return reply

    def _measured(
        self,
        target: _Target,
        connection: ConnectionInfo,
        reply: Reply | Awaitable[Reply],
        started_ns: int,
        size: int,
    ) -> Reply | Awaitable[Reply]:
        """A request that waits, or the first one of its kind."""
        if self._metrics is None:
            return reply
        metrics = target.metrics_follower if connection.is_follower else target.metrics
        if metrics is None:
            metrics = self._metrics_of(self._metrics, target, connection)
        if reply is None or isinstance(reply, (bytes, list)):
            connection.phases.answer(metrics.api, started_ns, size)
            return reply
        if not isinstance(reply, asyncio.Future):
            # Left a coroutine: a future of Produce says that its records are appended.
            return metrics.awaited(started_ns, size, reply, connection.phases)
        metrics.waits(started_ns, size, reply, connection.phases)
        return reply

    def is_pipelined(self, frame: memoryview) -> bool:
        return bytes(frame[:2]) in self._pipelined

    def _answer_generic(
        self, target: _Target, context: RequestContext, frame: memoryview, body_position: int
    ) -> Reply | Awaitable[Reply]:
        request_class = target.request
        if request_class is None:
            request_class = target.request = target.api.request
        try:
            request = decode(request_class, target.version, frame, body_position)
        except WireError as error:
            raise InvalidRequest(f"{_name(target)}: {error}") from error
        try:
            limits = self._limits
            if limits is None or not limits.active or target.api.cluster_action:
                response = self._handle(target, context, request)
            else:
                response = limits.limit(context, lambda: self._handle(target, context, request))
            if isinstance(response, Message):
                if self._metrics is not None:
                    self._count_errors(target, response)
                return encode_response_frame(
                    target.api, target.version, context.correlation_id, response
                )
        except Exception as error:
            return self._answer_error(target, context, request, error)
        work = self._answer_later(target, context, request, response)
        if target.prompt:
            try:
                waits_for = work.send(None)
            except StopIteration as ended:
                return cast(Reply, ended.value)
            work = rest_of(work, waits_for)
        # A request that was received is carried out even if its client has disconnected: LeaveGroup
        # is often the last request of a connection. Only the response is then dropped.
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return asyncio.shield(task)

    @staticmethod
    def _handle(
        target: _Target, context: RequestContext, request: Message
    ) -> Message | Awaitable[Message]:
        """Call the handler: the only way from a request message to its API.

        With an authorizer, the routes of a listener have its rules in front of their handlers
        (`security/authorization/guard.py`). Raw handlers (Produce, Fetch) name their resources only
        once they have decoded the frame, and ask it for each topic.
        """
        return target.handle(context, request)  # type: ignore[no-any-return]

    async def call(self, connection: ConnectionInfo, key: ApiKey, request: Message) -> Message:
        """The response to a request of this process itself, in the newest version.

        KeyError if the API is not served, or only for frames.
        """
        target = self._newest[key]
        if target.raw:
            raise KeyError(key)
        context = RequestContext(
            key,
            target.version,
            listener_name=connection.listener_name,
            security_protocol=connection.security_protocol,
            principal=connection.principal,
            client_host=connection.client_host,
            connection_id=connection.connection_id,
            connection=connection,
        )
        try:
            response = self._handle(target, context, request)
            return response if isinstance(response, Message) else await response
        except Exception as error:
            return self._error_response(target, context, request, error)

    async def stop(self) -> None:
        """Cancel the requests that still run; the network has stopped."""
        # Requests of this turn begin first: what has not begun cannot clean up after itself.
        await asyncio.sleep(0)
        running = tuple(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _answer_later(
        self,
        target: _Target,
        context: RequestContext,
        request: Message,
        response: Awaitable[Message],
    ) -> Reply:
        try:
            message = await response
            if self._metrics is not None:
                self._count_errors(target, message)
            return encode_response_frame(
                target.api, target.version, context.correlation_id, message
            )
        except Exception as error:
            return self._answer_error(target, context, request, error)

    def _count_errors(self, target: _Target, response: Message) -> None:
        if self._metrics is not None:
            for code in error_codes(response):
                self._metrics.error(target.api.name, code)

    def _answer_error(
        self, target: _Target, context: RequestContext, request: Message, error: Exception
    ) -> bytes:
        response = self._error_response(target, context, request, error)
        self._count_errors(target, response)
        return encode_response_frame(target.api, target.version, context.correlation_id, response)

    def _error_response(
        self, target: _Target, context: RequestContext, request: Message, error: Exception
    ) -> Message:
        if isinstance(error, InvalidRequest):
            raise InvalidRequest(f"{_name(target)}: {error}") from error
        if isinstance(error, ApiError):
            code, message = error.code, error.message
        else:
            logger.error(
                "%s from %s failed: %s", _name(target), context.client_host, error, exc_info=error
            )
            code = ErrorCode.UNKNOWN_SERVER_ERROR
            message = "The server experienced an unexpected error when processing the request."
        response = refusal(target.api, target.version, request, code, message)
        if response is None:
            raise InvalidRequest(
                f"{_name(target)}: {code.name} has no place in the response: {message}"
            ) from error
        return response

    def _answer_unserved(
        self, targets: Mapping[int, _Target], frame: memoryview, error: Exception
    ) -> bytes:
        """Reject a request that is not served. The exception is ApiVersions: its client may be
        newer than this broker, and learns from the response, version 0, which version to use."""
        try:
            key, version, correlation_id = _HEADER_START.unpack_from(frame)
        except struct.error:
            raise InvalidRequest(
                f"a request of {len(frame)} bytes is too short to hold a header"
            ) from None
        api = API_BY_KEY.get(key)
        name = f"{api.name} (key {key})" if api is not None else f"unknown API key {key}"
        if not isinstance(error, KeyError):
            raise InvalidRequest(f"{name} v{version}: bad request header: {error}")
        own = sorted(target.version for target in targets.values() if target.key == key)
        if not own:
            raise InvalidRequest(f"{name} v{version} is not served on this listener")
        if key == ApiKey.API_VERSIONS:
            return _unsupported_api_versions(own, correlation_id)
        raise InvalidRequest(f"{name} v{version} is not served: versions are {own[0]} to {own[-1]}")


def _targets_of(routes: Mapping[ApiKey, Route]) -> dict[int, _Target]:
    targets = {}
    for key, route in routes.items():
        api = API_BY_KEY[key]
        for version in route.versions(api):
            targets[key << 16 | version] = _Target(key, api, version, route)
    return targets


def _unsupported_api_versions(versions: list[int], correlation_id: int) -> bytes:
    response = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=[
            ApiVersionsResponse.ApiVersion(
                api_key=ApiKey.API_VERSIONS, min_version=versions[0], max_version=versions[-1]
            )
        ],
    )
    return encode_response_frame(API_BY_KEY[ApiKey.API_VERSIONS], 0, correlation_id, response)


def _name(target: _Target) -> str:
    return f"{target.api.name} (key {int(target.key)}) v{target.version}"
