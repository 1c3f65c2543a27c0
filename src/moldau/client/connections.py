"""A client's connections: one per node and lane, and how long a node asked to be left alone.

Brokers answer the requests of a connection one after the other, so requests that they may hold back
(Fetch, JoinGroup) have lanes, and with them connections, of their own. Invariant: a call that fails
raises a `KafkaError`, never a `ChannelError`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from moldau.client.environment import ENVIRONMENT
from moldau.client.errors import (
    ClosedError,
    ConfigError,
    DisconnectError,
    KafkaError,
    NotKafkaError,
    SaslAuthenticationFailedError,
    SslAuthenticationError,
    UnsupportedVersionError,
    error_for,
)
from moldau.client.network_settings import NetworkSettings
from moldau.client.topics import Node
from moldau.clock import Clock, pause
from moldau.config.errors import ConfigError as AnyConfigError
from moldau.peers.channel import (
    AuthenticationFailed,
    CallTimedOut,
    ChannelError,
    ConnectionObserver,
    NotConnected,
    NotKafka,
    UnsupportedVersion,
)
from moldau.peers.machine.backoff import RandomSource
from moldau.peers.node_channel import ChannelSettings, NodeChannel, NodeTransport
from moldau.peers.security import PLAINTEXT, ConnectionSecurity, SecurityByListener
from moldau.wire.errors import ErrorCode

__all__ = ["LANE_COORDINATOR", "LANE_DEFAULT", "LANE_FETCH", "Connections", "node_transport"]

LANE_DEFAULT: Final = ""
LANE_COORDINATOR: Final = "coordinator"
LANE_FETCH: Final = "fetch"


def node_transport(
    settings: NetworkSettings,
    *,
    clock: Clock,
    random: RandomSource,
    observer: ConnectionObserver | None,
) -> NodeTransport:
    """Connections as the client's settings want them."""
    return NodeTransport(
        client_id=settings.client_id,
        clock=clock,
        random=random,
        observer=observer,
        connect=ENVIRONMENT.get().connect,
        security=_security(settings),
        settings=ChannelSettings(
            reconnect_backoff_ms=settings.reconnect_backoff_ms,
            reconnect_backoff_max_ms=settings.reconnect_backoff_max_ms,
            socket_connection_setup_timeout_ms=settings.socket_connection_setup_timeout_ms,
            socket_connection_setup_timeout_max_ms=settings.socket_connection_setup_timeout_max_ms,
            response_bytes_max=2**31 - 1,
            calls_in_flight_max=settings.calls_in_flight_max,
            send_buffer_bytes=settings.send_buffer_bytes,
            receive_buffer_bytes=settings.receive_buffer_bytes,
            connections_max_idle_ms=settings.connections_max_idle_ms,
        ),
    )


def _security(settings: NetworkSettings) -> SecurityByListener:
    """One for all nodes. Raises ConfigError."""
    if settings.security_protocol == "PLAINTEXT":
        return lambda listener_name: PLAINTEXT
    tls, login = None, None
    try:
        if settings.security_protocol in ("SSL", "SASL_SSL"):
            # These are imported here, since other clients need not import them.
            from moldau.security.tls import client_context

            context = client_context(settings.security)
            tls = lambda: context  # noqa: E731
        if settings.security_protocol.startswith("SASL_"):
            from moldau.peers.sasl_login import sasl_login
            from moldau.security.logins import login_of

            login = sasl_login(login_of(settings.security))
    except AnyConfigError as error:
        raise ConfigError.of(error) from None
    security = ConnectionSecurity(tls=tls, authenticate=login)
    return lambda listener_name: security


class Connections:
    """See the module."""

    def __init__(self, transport: NodeTransport, clock: Clock) -> None:
        self._transport = transport
        self._clock = clock
        # By address, so that a node that moved gets new ones. (host, port, lane)
        self._channels: dict[tuple[str, int, str], NodeChannel] = {}
        self._muted_until_ms: dict[int, int] = {}
        self.closed = False

    def channel(self, node: Node, lane: str) -> NodeChannel:
        if self.closed:
            raise ClosedError("the client is closed")
        where = (node.host, node.port, lane)
        channel = self._channels.get(where)
        if channel is None:
            # All nodes of a cluster are reached by the protocol of the client's settings.
            channel = self._transport.channel(node.id, node.host, node.port, "")
            self._channels[where] = channel
        return channel

    def is_connected(self, node: Node) -> bool:
        channel = self._channels.get((node.host, node.port, LANE_DEFAULT))
        return channel is not None and channel.connected

    def finalized_features(self) -> tuple[int, Mapping[str, int]]:
        """The newest that a connected node knows: its epoch, and levels by name."""
        best: tuple[int, Mapping[str, int]] = (-1, {})
        for channel in self._channels.values():
            known = channel.known_versions
            if known is not None and known.finalized_features_epoch > best[0]:
                best = (known.finalized_features_epoch, known.finalized_features)
        return best

    def drop_unused(self, used: Collection[tuple[str, int]]) -> None:
        """Close idle connections to all but these addresses."""
        for where in [where for where in self._channels if where[:2] not in used]:
            if self._channels[where].idle:
                self._channels.pop(where).close()

    def as_error(self, error: ChannelError) -> KafkaError:
        """What the failure of a call means for a client."""
        if isinstance(error, UnsupportedVersion):
            return UnsupportedVersionError(str(error))
        if isinstance(error, CallTimedOut):
            return error_for(ErrorCode.REQUEST_TIMED_OUT, str(error))
        if self.closed:
            return ClosedError("the client was closed")
        if isinstance(error, AuthenticationFailed):
            kind = SslAuthenticationError if error.tls else SaslAuthenticationFailedError
            return kind(f"{error.peer}: {error.reason}")
        if isinstance(error, NotKafka):
            return NotKafkaError(f"{error.peer}: {error.reason}")
        if isinstance(error, NotConnected):
            return DisconnectError(f"cannot connect to {error.peer}: {error.reason}")
        return DisconnectError(str(error))

    # Throttling.

    def note_throttle(self, node_id: int, throttle_time_ms: int) -> None:
        """Leave a node alone for as long as it asked for in a response."""
        if throttle_time_ms > 0:
            self._muted_until_ms[node_id] = self._clock.elapsed_ms() + throttle_time_ms

    def throttled_ms(self, node_id: int) -> int:
        """For how long a node still wants to be left alone."""
        until_ms = self._muted_until_ms.get(node_id)
        return 0 if until_ms is None else max(0, until_ms - self._clock.elapsed_ms())

    async def await_unthrottled(self, node_id: int) -> None:
        until_ms = self._muted_until_ms.get(node_id)
        if until_ms is not None:
            delay_ms = until_ms - self._clock.elapsed_ms()
            if delay_ms > 0:
                await pause(self._clock, delay_ms)
            if self._muted_until_ms.get(node_id) == until_ms:
                del self._muted_until_ms[node_id]

    def close(self) -> None:
        """Fail the calls that wait, and close everything."""
        self.closed = True
        self._transport.close()
