"""Calls to other nodes, as the rest of the broker sees them.

A `Transport` creates channels. A `Channel` is one connection to one node of the cluster: it
connects when the first call needs it, and again, after a pause, when the connection is lost. The
simulator has a `Transport` of its own; nothing else opens connections.

Invariants:
- A call either returns the response or raises a `ChannelError`. After that error it is unknown
  whether the peer has carried out the request; after an `UnsupportedVersion` it was not sent.
- Several tasks may use a channel at once; their requests are sent in the order of the calls. The
  peer answers the requests of a connection one after the other, so calls that the peer may delay
  (Fetch with a wait) need a channel of their own.
- Connecting again after a failure is paced by the channel (`reconnect.backoff.ms`): a call during
  the pause waits for its end, so a loop that calls again at once does not spin.
- A call that takes longer than its `timeout_ms`, everything included, fails with `CallTimedOut`.
  If its request has left, the connection is closed with it, as in Kafka, and the other calls on
  it fail too: answers come in order, so they stand behind the one that does not come.
- A call that fails with `ConnectionRefused` was not sent: nothing listens at the peer's address.
- A call that fails with `AuthenticationFailed` was not sent: the certificate of one side, or the
  login, was rejected.
- `close` fails the calls that wait, and every later one.
"""

from __future__ import annotations

from typing import Protocol

from moldau.peers.machine.outcomes import (
    AuthenticationFailed,
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
    "AuthenticationFailed",
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
        """As `call`, for callers that decode the response themselves: its bytes are copied once,
        out of the socket."""
        ...

    def close(self) -> None:
        """Fail all pending calls and close the connection, without waiting."""
        ...


class Transport(Protocol):
    """Creates channels."""

    def channel(self, node_id: int, host: str, port: int, listener_name: str) -> Channel:
        """A new channel; nothing is connected before its first call. `listener_name` determines
        how the peer's listener is secured."""
        ...


class Prober(Protocol):
    """Tells a dead process from a lost network."""

    async def probe(self, host: str, port: int, *, timeout_ms: int) -> Reach:
        """Connect to the address and close the connection again; nothing is sent."""
        ...


class PeerTransport(Transport, Prober, Protocol):
    """All that a node needs to reach others."""


class ConnectionObserver(Protocol):
    """Counts what passes over the connections of a transport. Its methods must not raise."""

    def now_ms(self) -> int: ...

    def connection_opened(self, node_id: int) -> None: ...

    def connection_closed(self, node_id: int) -> None: ...

    def request_sent(self, node_id: int, size: int) -> None: ...

    def response_received(self, node_id: int, size: int, latency_ms: int) -> None: ...
