"""Calls to other nodes, as the rest of the broker sees them.

A `Transport` gives channels; a `Channel` is one connection to one node of the cluster, made when
the first call needs it and made again, after a pause, when it broke. The simulator gives another
`Transport`; nothing else opens connections.

What a caller may rely on:
- A call either gives the response or raises a `ChannelError`. After that error it is not known
  whether the peer has carried out the request; but what is an `UnsupportedVersion` was not sent.
- A channel may be called by many at once; their requests leave in the order of the calls. The peer
  answers one request of a connection after the other, so whoever makes calls that the peer holds
  back (Fetch with a wait) takes a channel of its own.
- Connecting again after a failure is paced by the channel (`reconnect.backoff.ms`): a call during
  the pause waits for its end, so a loop that calls again at once does not spin.
- A call that takes longer than its `timeout_ms`, everything included, fails with `CallTimedOut`.
  If its request has left, the connection is closed with it, as in Kafka, and the other calls on
  it fail too: answers come in order, so they stand behind the one that does not come.
- A call that fails with `ConnectionRefused` was not sent: nothing listens at the peer's address.
- `close` fails the calls that wait, and every later one.
"""

from __future__ import annotations

from typing import Protocol

from moldau.peers.machine.outcomes import (
    CallTimedOut,
    ChannelError,
    ConnectionRefused,
    NotConnected,
    NotKafka,
    RawResponse,
    Reach,
    UnsupportedVersion,
)
from moldau.wire.apis import ApiKey
from moldau.wire.message import Message

__all__ = [
    "CallTimedOut",
    "Channel",
    "ChannelError",
    "ConnectionRefused",
    "NotConnected",
    "NotKafka",
    "PeerTransport",
    "RawResponse",
    "Reach",
    "Transport",
    "UnsupportedVersion",
]


class Channel(Protocol):
    """The way to one node."""

    async def call(
        self,
        key: ApiKey,
        request: Message,
        *,
        timeout_ms: int,
        max_version: int | None = None,
    ) -> Message:
        """The response to `request`, in the highest version that both sides know.

        `max_version` is for a caller that may not use the newest one yet.
        """
        ...

    async def call_raw(
        self,
        key: ApiKey,
        request: Message,
        *,
        timeout_ms: int,
        max_version: int | None = None,
    ) -> RawResponse:
        """As `call`, for who reads the response's bytes itself: they are copied once, out of the
        socket."""
        ...

    def close(self) -> None:
        """Fail what waits and let go of the connection; does not wait for anything."""
        ...


class Transport(Protocol):
    """Where channels come from."""

    def channel(self, node_id: int, host: str, port: int, listener_name: str) -> Channel:
        """A new channel; nothing is connected before its first call. `listener_name` says how
        the peer's listener is secured."""
        ...


class Prober(Protocol):
    """Tells a process that is gone from a network that is."""

    async def probe(self, host: str, port: int, *, timeout_ms: int) -> Reach:
        """Connect to the address and close the connection again; nothing is sent."""
        ...


class PeerTransport(Transport, Prober, Protocol):
    """All that a node needs to reach others."""


class ConnectionObserver(Protocol):
    """Who counts what goes over the connections of a transport. Its methods must not raise."""

    def now_ms(self) -> int: ...

    def connection_opened(self, node_id: int) -> None: ...

    def connection_closed(self, node_id: int) -> None: ...

    def request_sent(self, node_id: int, size: int) -> None: ...

    def response_received(self, node_id: int, size: int, latency_ms: int) -> None: ...
