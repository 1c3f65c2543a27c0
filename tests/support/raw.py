"""Single requests over a plain socket, for what no client library would send."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from typing import Any

from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.framing import decode_response, encode_request_frame
from moldau.wire.message import Message

# Ports that stand for several nodes, and who says to which of these a request goes.
ROUTES: dict[int, Callable[[ApiKey, Message], int]] = {}


class RawConnection:
    """One connection; requests are answered one by one. Where a route is known there is one to
    each node, and a request and its answer belong together."""

    def __init__(self, port: int, *, timeout: float = 60.0, source: str | None = None) -> None:
        """`source` is the address to connect from."""
        self._source = None if source is None else (source, 0)
        self._timeout = timeout
        self._correlation_id = 0
        self._route = ROUTES.get(port)
        self._sockets: dict[int, socket.socket] = {}
        self.socket: socket.socket
        if self._route is None:
            self._connect(port)

    def _connect(self, port: int) -> None:
        if port not in self._sockets:
            made = socket.create_connection(
                ("127.0.0.1", port), timeout=self._timeout, source_address=self._source
            )
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sockets[port] = made
        self.socket = self._sockets[port]

    def send(self, key: ApiKey, version: int, request: Message) -> None:
        if self._route is not None:
            self._connect(self._route(key, request))
        self._correlation_id += 1
        self.socket.sendall(
            encode_request_frame(API_BY_KEY[key], version, self._correlation_id, "raw", request)
        )

    def call(self, key: ApiKey, version: int, request: Message) -> Any:
        self.send(key, version, request)
        return self.receive(key, version)

    def receive(self, key: ApiKey, version: int) -> Any:
        correlation_id, response = decode_response(API_BY_KEY[key], version, self.receive_frame())
        assert correlation_id == self._correlation_id
        return response

    def receive_frame(self) -> bytes:
        """The next frame without its size; ConnectionError when the broker has closed."""
        (size,) = struct.unpack(">i", self._receive_exactly(4))
        return self._receive_exactly(size)

    def _receive_exactly(self, count: int) -> bytes:
        parts = []
        while count:
            part = self.socket.recv(count)
            if not part:
                raise ConnectionError("the broker closed the connection")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def closed_by_broker(self) -> bool:
        """Wait until the broker closes; False if it sends anything instead."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        for each in self._sockets.values():
            each.close()

    def __enter__(self) -> RawConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
