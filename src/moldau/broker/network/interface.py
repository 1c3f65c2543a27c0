"""The network as the rest of the broker sees it, so that a simulated one can take its place.

A network receives frames, hands each to a `FrameReceiver` (the dispatcher) and sends what that
answers. What always holds: one request at a time per connection, and answers in request order.
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Mapping
from typing import Protocol, TypeAlias

from moldau.broker.network.context import ConnectionInfo
from moldau.broker.network.settings import NetworkSettings

Buffer: TypeAlias = bytes | bytearray | memoryview
#: Complete response frames; None if the request has no answer (Produce with acks=0).
Reply: TypeAlias = bytes | list[Buffer] | None


class InvalidRequest(Exception):
    """A request that has no answer but to close its connection; the message says why."""


class FrameReceiver(Protocol):
    """Whoever answers requests."""

    def dispatch(self, connection: ConnectionInfo, frame: memoryview) -> Reply | Awaitable[Reply]:
        """Answer one frame. `frame` is only valid until this returns.

        Raises InvalidRequest, at once or from the awaitable, if the connection must be closed.
        """
        ...

    def is_pipelined(self, frame: memoryview) -> bool:
        """Whether the connection's next request may be handled while this one waits."""
        ...


class Network(Protocol):
    """Named listeners that feed a receiver."""

    @property
    def addresses(self) -> Mapping[str, tuple[str, int]]:
        """Host and port really bound, by listener name; ports asked for as 0 are known here."""
        ...

    async def bind(self) -> None:
        """Take every listener's address, so that `addresses` is known; accept nobody yet."""
        ...

    async def start(
        self, receiver: FrameReceiver, listeners: Collection[str] | None = None
    ) -> None:
        """Bind what is not bound yet and begin to accept on these listeners, or all that are left.

        A listener is started once; others may follow, with a receiver of their own.
        """
        ...

    def update_settings(self, settings: NetworkSettings) -> None:
        """Take over what may change while it runs."""
        ...

    async def stop(self, grace_s: float) -> None:
        """Accept no more, let running requests end within `grace_s` seconds, close everything."""
        ...
