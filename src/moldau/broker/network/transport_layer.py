"""The extension point for the security of listeners.

A `ListenerSecurity` decides two things for a new connection: through which `TransportLayer` bytes
pass (the socket itself, or an encrypting wrapper) and which receiver gets its frames (the
dispatcher, or an authenticator that passes them to the dispatcher once it knows the principal). The
connection, the server and the dispatcher are the same for all of them.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Protocol

from moldau.broker.network.context import ConnectionInfo
from moldau.broker.network.interface import FrameReceiver
from moldau.wire.constants import Buffer


class TransportLayer(Protocol):
    """A non-blocking byte stream: the part of a socket that a connection needs.

    `recv_into` returns 0 at the end of the stream; all raise BlockingIOError when they would block
    and OSError when the stream is broken.
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
    """No encryption and no authentication: every client is User:ANONYMOUS."""

    def open(
        self, sock: socket.socket, connection: ConnectionInfo, receiver: FrameReceiver
    ) -> tuple[TransportLayer, FrameReceiver]:
        return sock, receiver
