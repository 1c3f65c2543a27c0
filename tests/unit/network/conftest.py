"""A real server on 127.0.0.1 whose requests are small scripts, on both event loops."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import uvloop

from moldau.broker.network.context import ConnectionInfo
from moldau.broker.network.interface import InvalidRequest, Reply
from moldau.broker.network.server import SocketNetwork
from moldau.wire.constants import Buffer

INT_MAX = 2**31 - 1


@dataclass(frozen=True)
class Settings:
    socket_request_max_bytes: int = 10_000_000
    socket_send_buffer_bytes: int = 102_400
    socket_receive_buffer_bytes: int = 102_400
    socket_listen_backlog_size: int = 50
    connections_max_idle_ms: int = 600_000
    max_connections: int = INT_MAX
    max_connections_per_ip: int = INT_MAX
    max_connections_per_ip_overrides: Mapping[str, int] = field(default_factory=dict)
    max_connection_creation_rate: int = INT_MAX
    queued_max_request_bytes: int = -1
    quota_window_num: int = 11
    quota_window_size_seconds: int = 1
    listener_max_connections: Mapping[str, int] = field(default_factory=dict)
    listener_max_connection_creation_rate: Mapping[str, int] = field(default_factory=dict)
    protected_listener: str | None = None


@dataclass(frozen=True)
class ListenerSpec:
    name: str = "PLAINTEXT"
    host: str = "127.0.0.1"
    port: int = 0
    security_protocol: str = "PLAINTEXT"


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


class ScriptReceiver:
    """A request's first word says what happens to it."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self.connections: list[ConnectionInfo] = []
        self.waiting = 0
        self.cancelled = 0
        self.gate = asyncio.Event()
        self.buffers: list[Buffer] = []

    def is_pipelined(self, frame: memoryview) -> bool:
        return False

    def dispatch(self, connection: ConnectionInfo, frame: memoryview) -> Reply | Awaitable[Reply]:
        request = bytes(frame)
        self.seen.append(request)
        self.connections.append(connection)
        word = request.split(b" ", 1)[0]
        if word == b"none":
            return None
        if word == b"refuse":
            raise InvalidRequest("Script (key 1) v2: refused")
        if word == b"fail":
            raise RuntimeError("a bug")
        if word == b"buffers":
            return [struct.pack(">i", sum(map(len, self.buffers))), *self.buffers]
        if word == b"scribble":
            frame[:] = b"x" * len(frame)
            return framed(bytes(frame))
        if word.startswith(b"wait"):
            return self._wait(word, request)
        return framed(request)

    async def _wait(self, word: bytes, request: bytes) -> Reply:
        self.waiting += 1
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.waiting -= 1
        if word == b"wait-refuse":
            raise InvalidRequest("Script (key 1) v2: refused late")
        if word == b"wait-fail":
            raise RuntimeError("a late bug")
        return None if word == b"wait-none" else framed(request)


class Client:
    """A raw socket that speaks frames."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.loop = asyncio.get_running_loop()

    async def send(self, *payloads: bytes) -> None:
        await self.send_raw(b"".join(map(framed, payloads)))

    async def send_raw(self, data: bytes) -> None:
        await self.loop.sock_sendall(self.sock, data)

    async def receive(self) -> bytes:
        (size,) = struct.unpack(">i", await self.receive_raw(4))
        return await self.receive_raw(size)

    async def receive_raw(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = await self.loop.sock_recv(self.sock, min(size - len(data), 65536))
            if not piece:
                raise ConnectionResetError("closed by the server")
            data += piece
        return bytes(data)

    async def ask(self, payload: bytes) -> bytes:
        await self.send(payload)
        return await self.receive()

    async def closed_by_server(self) -> bool:
        try:
            return await self.loop.sock_recv(self.sock, 1) == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        self.sock.close()


class Harness:
    def __init__(self, network: SocketNetwork, receiver: ScriptReceiver) -> None:
        self.network = network
        self.receiver = receiver
        self._clients: list[Client] = []

    async def connect(self, listener: str = "PLAINTEXT", buffer_bytes: int = 0) -> Client:
        sock = socket.socket()
        sock.setblocking(False)
        if buffer_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        await asyncio.get_running_loop().sock_connect(sock, self.network.addresses[listener])
        client = Client(sock)
        self._clients.append(client)
        return client

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not condition():  # noqa: ASYNC110 - what is waited for is on the other side
                await asyncio.sleep(0.001)

    def close_clients(self) -> None:
        for client in self._clients:
            client.close()


@asynccontextmanager
async def serving(
    settings: Settings | None = None, listeners: tuple[ListenerSpec, ...] = (ListenerSpec(),)
) -> AsyncIterator[Harness]:
    network = SocketNetwork(listeners, settings or Settings())
    receiver = ScriptReceiver()
    await network.start(receiver)
    harness = Harness(network, receiver)
    try:
        async with asyncio.timeout(60):
            yield harness
    finally:
        harness.close_clients()
        await network.stop(grace_s=1)
        assert network.connection_count == 0


Serving = Callable[..., Any]
Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(name="serving")
def serving_fixture() -> Serving:
    return serving


@pytest.fixture(params=["uvloop", "asyncio"])
def run(request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture) -> Run:
    factory = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop
    caplog.set_level(logging.INFO)

    def run(coroutine: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=factory) as runner:
            problems: list[dict[str, Any]] = []
            runner.get_loop().set_exception_handler(lambda _, problem: problems.append(problem))
            runner.run(coroutine)
            assert not problems

    return run
