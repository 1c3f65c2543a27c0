"""The wire by hand: cheap clients, so that a figure is the broker's and not the client's."""

from __future__ import annotations

import asyncio
import socket
import struct
from types import TracebackType
from typing import Any

from bench.servers import Server
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.framing import decode_response, encode_request_frame
from moldau.wire.message import Message

_SIZE = struct.Struct(">i")


def request_frame(key: ApiKey, version: int, request: Message) -> bytes:
    return encode_request_frame(API_BY_KEY[key], version, 1, "bench", request)


class Connection:
    """A blocking connection with one request in flight."""

    def __init__(self, server: Server) -> None:
        self._socket = socket.create_connection(("127.0.0.1", server.port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, frame: bytes) -> None:
        self._socket.sendall(frame)

    def receive(self) -> bytes:
        data = self._socket.recv(1 << 16)
        while data and (len(data) < 4 or len(data) < 4 + _SIZE.unpack_from(data)[0]):
            more = self._socket.recv(1 << 20)
            if not more:
                break
            data += more
        if len(data) < 8:
            raise RuntimeError("the broker closed the connection")
        return data[4:]

    def receive_answer(self, key: ApiKey, version: int) -> Any:
        return decode_response(API_BY_KEY[key], version, self.receive())[1]

    def call(self, key: ApiKey, version: int, request: Message) -> Any:
        self.send(request_frame(key, version, request))
        return self.receive_answer(key, version)

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class AsyncConnection:
    """One of very many connections, each with one request in flight."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, server: Server) -> AsyncConnection:
        return cls(*await asyncio.open_connection("127.0.0.1", server.port))

    async def call(self, key: ApiKey, version: int, request: Message) -> Any:
        self._writer.write(request_frame(key, version, request))
        size = _SIZE.unpack(await self._reader.readexactly(4))[0]
        return decode_response(API_BY_KEY[key], version, await self._reader.readexactly(size))[1]

    def close(self) -> None:
        self._writer.close()
