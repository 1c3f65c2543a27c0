"""The interface of the network, so that a simulated one can take its place.

A network receives frames, passes each to a `FrameReceiver` (the dispatcher) and sends its response.

Invariants: one request at a time per connection, and responses in request order.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Protocol, TypeAlias

from moldau.broker.network.context import ConnectionInfo, RequestContext
from moldau.broker.network.settings import NetworkSettings
from moldau.wire.constants import Buffer
from moldau.wire.message import Message

#: Complete response frames; None if the request has no response (Produce with acks=0).
Reply: TypeAlias = bytes | list[Buffer] | None


class InvalidRequest(Exception):
    """A request that can only be answered by closing its connection; the message says why.

    `last_reply` is sent before that: a failed login is answered.
    """

    def __init__(self, message: str, *, last_reply: bytes = b"") -> None:
        super().__init__(message)
        self.last_reply = last_reply


class FrameReceiver(Protocol):
    """Answers requests."""

    def dispatch(self, connection: ConnectionInfo, frame: memoryview) -> Reply | Awaitable[Reply]:
        """Answer one frame. `frame` is only valid until this returns.

        A future says that a request that is pipelined has done all that its successors must not
        overtake, such as appending its records; one that has not returns a coroutine.

        Raises InvalidRequest, immediately or from the awaitable, if the connection must be closed.
        """
        ...

    def is_pipelined(self, frame: memoryview) -> bool:
        """Whether the connection's next request may be handled while this one waits."""
        ...


class RequestLimits(Protocol):
    """Limits clients by the time that their requests take."""

    @property
    def active(self) -> bool:
        """Whether any client is limited."""
        ...

    def limit(
        self, context: RequestContext, handle: Callable[[], Message | Awaitable[Message]]
    ) -> Message | Awaitable[Message]:
        """Has the request handled; the response contains the client's throttle time."""
        ...


class Network(Protocol):
    """Named listeners that feed a receiver."""

    @property
    def addresses(self) -> Mapping[str, tuple[str, int]]:
        """Host and port that are bound, by listener name; for port 0 the one that was chosen."""
        ...

    async def bind(self) -> None:
        """Bind every listener, so that `addresses` is known; accept no connections yet."""
        ...

    async def start(
        self, receiver: FrameReceiver, listeners: Collection[str] | None = None
    ) -> None:
        """Bind what is not bound yet and accept on these listeners, or on all remaining ones.

        A listener is started once; others may follow, with a receiver of their own.
        """
        ...

    def update_settings(self, settings: NetworkSettings) -> None:
        """Apply settings that may change while it runs."""
        ...

    def update_address_rates(self, default: float | None, limits: Mapping[str, float]) -> None:
        """Limit new connections per second and client address; `default` is for all others."""
        ...

    async def stop(self, grace_s: float) -> None:
        """Accept no more, let running requests end within `grace_s` seconds, close everything."""
        ...
