"""The extension point for the security of listeners.

A `ListenerSecurity` decides two things for a new connection: through which `TransportLayer` bytes
pass (the socket itself, or an encrypting wrapper) and which receiver gets its frames (the
dispatcher, or an authenticator that passes them to the dispatcher once it knows the principal). The
connection, the server and the dispatcher are the same for all of them.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from moldau.broker.network.context import ConnectionInfo
from moldau.broker.network.interface import FrameReceiver
from moldau.wire.constants import Buffer

#: Finds the principal of a client that does not log in by SASL.
Identify: TypeAlias = Callable[[ConnectionInfo], str]

#: Gets the connection, the mechanism and why the login failed, None if it did not.
LoginObserver: TypeAlias = Callable[[ConnectionInfo, str, str | None], None]

logger = logging.getLogger(__name__)


class TransportLayer(Protocol):
    """A non-blocking byte stream: the part of a socket that a connection needs.

    `recv_into` returns 0 at the end of the stream; all raise BlockingIOError when they would block
    and OSError when the stream is broken. A layer that may hold received bytes although the socket
    is not readable also has `has_pending() -> bool`; one over a real socket has its `getsockopt`.
    """

    def fileno(self) -> int: ...

    def recv_into(self, buffer: memoryview, /) -> int: ...

    def send(self, data: Buffer, /) -> int: ...

    def sendmsg(self, buffers: Sequence[Buffer], /) -> int: ...

    def close(self) -> None: ...


class ListenerSecurity(Protocol):
    """Provides the layer and the receiver for an accepted socket."""

    def open(
        self, sock: socket.socket, connection: ConnectionInfo, receiver: FrameReceiver
    ) -> tuple[TransportLayer, FrameReceiver]: ...


class Plaintext:
    """No encryption and no authentication: every client is User:ANONYMOUS, unless a principal
    builder says otherwise."""

    def __init__(self, identify: Identify | None = None) -> None:
        self.identify = identify

    def open(
        self, sock: socket.socket, connection: ConnectionInfo, receiver: FrameReceiver
    ) -> tuple[TransportLayer, FrameReceiver]:
        if self.identify is not None:
            connection.principal = identified(self.identify, connection)
        return sock, receiver


def identified(identify: Identify, connection: ConnectionInfo) -> str:
    """The principal that a class of the user's own finds; raises OSError to refuse the client."""
    try:
        return identify(connection)
    except Exception as error:
        logger.warning(
            "closing connection from %s on %s: principal.builder.class failed",
            connection.peer,
            connection.listener_name,
            exc_info=error,
        )
        raise ConnectionAbortedError("the client has no principal") from error
