"""Sends requests from a node to the active controller.

Decided here: when a request is sent again. It is if the connection broke, if no controller is
known, or if the controller is no longer the active one, until the timeout; as in Kafka a request
may then be carried out twice.

Invariants: there is one channel, to the last known controller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple

from moldau.clock import Clock
from moldau.peers.channel import Channel, ChannelError, Transport, UnsupportedVersion
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import CreateTopicsResponse

#: The pause before the next attempt if the controller was unknown, or not the active one.
RETRY_MS: Final = 100


class ControllerNode(NamedTuple):
    """The active controller and its endpoint."""

    node_id: int
    host: str
    port: int
    listener_name: str


class ControllerUnavailable(ChannelError):
    """No active controller responded in time; the message has the last error."""


class ControllerChannel:
    """One per purpose, since a slow response delays those behind it."""

    def __init__(
        self,
        transport: Transport,
        controller: Callable[[], ControllerNode | None],
        clock: Clock,
        *,
        request_timeout_ms: int,
    ) -> None:
        """`controller` returns the active one if it is known; `request_timeout_ms` is for one try
        (controller.socket.timeout.ms)."""
        self._transport = transport
        self._controller = controller
        self._clock = clock
        self._request_timeout_ms = request_timeout_ms
        self._node: ControllerNode | None = None
        self._channel: Channel | None = None
        self._closed = False
        self._pauses: set[asyncio.Future[None]] = set()

    async def call(self, key: ApiKey, request: Message, *, timeout_ms: int) -> Message:
        """The active controller's response.

        Raises ControllerUnavailable after `timeout_ms`, UnsupportedVersion immediately, and
        ChannelError when closed.
        """
        deadline_ms = self._clock.elapsed_ms() + timeout_ms
        problem = "no active controller is known"
        while True:
            left_ms = deadline_ms - self._clock.elapsed_ms()
            if self._closed:
                raise ChannelError(f"{API_BY_KEY[key].name}: the controller channel is closed")
            if left_ms <= 0:
                name = API_BY_KEY[key].name
                raise ControllerUnavailable(f"{name} not answered in {timeout_ms} ms: {problem}")
            node = self._controller()
            if node is None:
                await self._pause(min(RETRY_MS, left_ms))
                continue
            try:
                response = await self._channel_to(node).call(
                    key, request, timeout_ms=min(left_ms, self._request_timeout_ms)
                )
            except UnsupportedVersion:
                raise
            except ChannelError as error:
                # The channel makes the next call wait before it connects again.
                problem = str(error)
                continue
            if not _says_not_controller(response):
                return response
            problem = f"node {node.node_id} is not the active controller"
            await self._pause(min(RETRY_MS, left_ms))

    def on_controller_changed(self) -> None:
        """Send requests that wait for the previous controller to the new one, instead of waiting
        for a response that may never come; requests that waited for a controller continue."""
        if self._controller() != self._node:
            self._drop()
        self._end_pauses()

    def close(self) -> None:
        """Fail waiting calls and all later ones."""
        self._closed = True
        self._drop()
        self._end_pauses()

    def _channel_to(self, node: ControllerNode) -> Channel:
        if self._channel is None or node != self._node:
            # Calls that wait for the previous one fail, and are sent again.
            self._drop()
            self._node = node
            self._channel = self._transport.channel(*node)
        return self._channel

    async def _pause(self, delay_ms: int) -> None:
        """Pause, until the controller changes at the latest."""
        over = asyncio.get_running_loop().create_future()
        alarm = self._clock.call_later(delay_ms, lambda: _end(over))
        self._pauses.add(over)
        try:
            await over
        finally:
            alarm.cancel()
            self._pauses.discard(over)

    def _end_pauses(self) -> None:
        for over in self._pauses:
            _end(over)

    def _drop(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None


def _says_not_controller(response: Message) -> bool:
    """Whether the response, or one of its topics, has that error; all topics have it or none."""
    if isinstance(response, CreateTopicsResponse):
        return any(topic.error_code == ErrorCode.NOT_CONTROLLER for topic in response.topics)
    code: int = getattr(response, "error_code", ErrorCode.NONE)
    return code == ErrorCode.NOT_CONTROLLER


def _end(over: asyncio.Future[None]) -> None:
    if not over.done():
        over.set_result(None)
