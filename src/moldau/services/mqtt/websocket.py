"""WebSocketLine: MQTT in binary frames of a websocket, for browsers and networks that let only HTTP
through (section 6 of MQTT 5).

The handshake asks for `/mqtt` with the subprotocol `mqtt`. A connection sees a transport, as if it
were TCP: packets need not end where frames do. wsproto, without I/O of its own, knows the frames.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Message,
    Ping,
    RejectConnection,
    RejectData,
    Request,
)
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import ProtocolError, RemoteProtocolError

__all__ = ["PATH", "WebSocketLine"]

PATH: Final = "/mqtt"
SUBPROTOCOL: Final = "mqtt"
_HANDSHAKE_BYTES_MAX: Final = 16_384


class WebSocketLine(asyncio.Protocol, asyncio.Transport):
    """The loop's protocol, and the transport of the MQTT connection that `make` gives."""

    def __init__(self, make: Callable[[], asyncio.Protocol], origins: frozenset[str]) -> None:
        """`origins` are those whose pages may connect; none means all."""
        asyncio.Transport.__init__(self)
        self._connection = make()
        self._origins = origins
        self._frames = WSConnection(ConnectionType.SERVER)
        self._transport: asyncio.Transport | None = None
        self._is_open = False
        self._received = 0

    # Called by the loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        self._connection.connection_made(self)

    def data_received(self, data: bytes) -> None:
        if not self._is_open:
            self._received += len(data)
            if self._received > _HANDSHAKE_BYTES_MAX:
                self.abort()
                return
        try:
            self._frames.receive_data(data)
            for event in self._frames.events():
                self._on_event(event)
        except RemoteProtocolError as error:
            self._refuse(error)

    def _on_event(self, event: Any) -> None:
        if isinstance(event, BytesMessage):
            self._connection.data_received(bytes(event.data))
        elif isinstance(event, Request):
            self._on_request(event)
        elif isinstance(event, Ping):
            self._send(event.response())
        elif isinstance(event, CloseConnection):
            self._send(event.response())
            self._close()
        elif isinstance(event, Message):
            # A text: whoever receives one has to hang up.
            self._send(
                CloseConnection(CloseReason.UNSUPPORTED_DATA, "MQTT is sent in binary frames")
            )
            self._close()

    def _on_request(self, request: Request) -> None:
        origin = next((value for name, value in request.extra_headers if name == b"origin"), b"")
        if request.target.partition("?")[0] != PATH:
            self._reject(404, f"MQTT is at {PATH}")
        elif SUBPROTOCOL not in request.subprotocols:
            self._reject(400, f"the subprotocol has to be {SUBPROTOCOL}")
        elif origin and self._origins and origin.decode("latin-1") not in self._origins:
            self._reject(403, "websocket.origins does not have the page's origin")
        else:
            self._is_open = True
            self._send(AcceptConnection(subprotocol=SUBPROTOCOL))

    def _reject(self, status: int, why: str) -> None:
        body = f"{why}\n".encode()
        headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(body))]
        self._send(RejectConnection(status_code=status, headers=headers, has_body=True))
        self._send(RejectData(data=body))
        self._close()

    def _refuse(self, error: RemoteProtocolError) -> None:
        """What came is neither a handshake nor a frame."""
        if error.event_hint is not None:
            self._send(error.event_hint)
        self._close()

    def eof_received(self) -> bool | None:
        return self._connection.eof_received()

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self._connection.connection_lost(error)

    # Called by the MQTT connection.

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._send(Message(data=bytes(data)))

    def _send(self, event: Any) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        try:
            data = self._frames.send(event)
        except ProtocolError:
            # Closed by one of the two sides meanwhile, or no handshake yet.
            return
        self._transport.write(data)

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def close(self) -> None:
        self._send(CloseConnection(CloseReason.NORMAL_CLOSURE))
        self._close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def is_closing(self) -> bool:
        return self._transport is None or self._transport.is_closing()

    def can_write_eof(self) -> bool:
        return False

    def pause_reading(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._transport is not None:
            self._transport.resume_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if self._transport is not None:
            self._transport.set_write_buffer_limits(high, low)
