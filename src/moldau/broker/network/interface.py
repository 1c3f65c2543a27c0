"""The interface of the network, so that a simulated one can take its place.

A network receives frames, passes each to a `FrameReceiver` (the dispatcher) and sends its response.

Invariants: one request at a time per connection, and responses in request order.
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Mapping
from typing import Protocol, TypeAlias

from moldau.broker.network.context import ConnectionInfo
from moldau.broker.network.settings import NetworkSettings
from moldau.wire.constants import Buffer

#: Complete response frames; None if the request has no response (Produce with acks=0).
Reply: TypeAlias = bytes | list[Buffer] | None


class InvalidRequest(Exception):
    """A request that can only be answered by closing its connection; the message says why."""


class FrameReceiver(Protocol):
    """Answers requests."""

    def dispatch(self, connection: ConnectionInfo, frame: memoryview) -> Reply | Awaitable[Reply]:
        """Answer one frame. `frame` is only valid until this returns.

        Raises InvalidRequest, immediately or from the awaitable, if the connection must be closed.
        """
        ...

    def is_pipelined(self, frame: memoryview) -> bool:
        """Whether the connection's next request may be handled while this one waits."""
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

    async def stop(self, grace_s: float) -> None:
        """Accept no more, let running requests end within `grace_s` seconds, close everything."""
        ...
