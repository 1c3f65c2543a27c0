"""What tests of outgoing calls share: a clock moved by hand, chance that is none, peers."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from typing import Any

from moldau.broker.network.interface import FrameReceiver
from moldau.broker.network.server import SocketNetwork
from moldau.peers.node_channel import ChannelSettings, NodeTransport
from moldau.wire.apis import API_BY_KEY, Api, ApiKey
from moldau.wire.framing import encode_response_frame
from moldau.wire.message import Message
from moldau.wire.messages import ApiVersionsResponse


class _Alarm:
    def __init__(self, at_ms: int, callback: Callable[[], None]) -> None:
        self.at_ms = at_ms
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class HandClock:
    """Time passes only by `advance`; due callbacks run in order of their times."""

    def __init__(self) -> None:
        self.elapsed = 1_000
        self._alarms: list[_Alarm] = []

    def now_ms(self) -> int:
        return 1_700_000_000_000 + self.elapsed

    def elapsed_ms(self) -> int:
        return self.elapsed

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> _Alarm:
        alarm = _Alarm(self.elapsed + delay_ms, callback)
        self._alarms.append(alarm)
        return alarm

    @property
    def pending(self) -> list[int]:
        """In how many ms the alarms go off that are set."""
        return sorted(each.at_ms - self.elapsed for each in self._alarms if each.callback)

    def advance(self, delay_ms: int) -> None:
        end = self.elapsed + delay_ms
        while True:
            self._alarms = [each for each in self._alarms if each.callback is not None]
            due = min(self._alarms, key=lambda each: each.at_ms, default=None)
            if due is None or due.at_ms > end:
                break
            self._alarms.remove(due)
            self.elapsed = max(self.elapsed, due.at_ms)
            if due.callback is not None:
                due.callback()
        self.elapsed = end


class NoJitter:
    """Chance that always falls in the middle."""

    def randrange(self, stop: int, /) -> int:
        return stop // 2

    def randbytes(self, n: int, /) -> bytes:
        return bytes(n)


def transport(clock: Any, connect: Any = None, **settings: int) -> NodeTransport:
    return NodeTransport(
        client_id="node-1",
        clock=clock,
        random=NoJitter(),
        settings=ChannelSettings(**settings),
        connect=connect,
    )


async def settle(rounds: int = 20) -> None:
    """Let everything happen that is ready to happen."""
    for _ in range(rounds):
        await asyncio.sleep(0)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - what is waited for is on the other side
            await asyncio.sleep(0.001)


def api_versions(
    ranges: dict[ApiKey, tuple[int, int]], *, error_code: int = 0
) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        error_code=error_code,
        api_keys=[
            ApiVersionsResponse.ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in ranges.items()
        ],
    )


EVERYTHING = api_versions(
    {api.key: (api.min_version, api.max_version) for api in API_BY_KEY.values()}
)


class PeerSide:
    """The other end of one connection, driven by a test."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    async def request(self) -> tuple[Api, int, int, bytes]:
        """API, version, correlation id and whole frame of the next request."""
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        frame = await self._reader.readexactly(size)
        key, version, correlation_id = struct.unpack_from(">hhi", frame)
        return API_BY_KEY[key], version, correlation_id, frame

    async def answer(self, response: Message) -> tuple[Api, int]:
        """Answer the next request; the API and version that were asked."""
        api, version, correlation_id, _ = await self.request()
        self.send(encode_response_frame(api, version, correlation_id, response))
        return api, version

    async def negotiate(self) -> None:
        api, _ = await self.answer(EVERYTHING)
        assert api.key is ApiKey.API_VERSIONS

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def ended(self) -> None:
        """Wait until the caller's side has closed."""
        with suppress(ConnectionError):
            assert await self._reader.read() == b""

    def close(self) -> None:
        self.writer.close()


class Peer:
    """A listening socket whose connections run a script each."""

    def __init__(self) -> None:
        self.port = 0
        self.connections = 0
        self.open = 0
        self.sides: list[PeerSide] = []


@asynccontextmanager
async def peer(script: Callable[[PeerSide], Awaitable[None]]) -> AsyncIterator[Peer]:
    """`script` has the connection until it returns; its errors are the test's."""
    state = Peer()
    tasks: set[asyncio.Task[None]] = set()
    errors: list[BaseException] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        state.connections += 1
        state.open += 1
        side = PeerSide(reader, writer)
        state.sides.append(side)
        try:
            await script(side)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        except BaseException as error:
            errors.append(error)
        finally:
            state.open -= 1
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    state.port = server.sockets[0].getsockname()[1]
    try:
        async with asyncio.timeout(60):
            yield state
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert not errors, errors


_INT_MAX = 2**31 - 1
_SETTINGS: Any = SimpleNamespace(
    socket_request_max_bytes=10_000_000,
    socket_send_buffer_bytes=102_400,
    socket_receive_buffer_bytes=102_400,
    socket_listen_backlog_size=50,
    connections_max_idle_ms=600_000,
    max_connections=_INT_MAX,
    max_connections_per_ip=_INT_MAX,
    max_connections_per_ip_overrides={},
    max_connection_creation_rate=2**31 - 1,
    queued_max_request_bytes=-1,
    quota_window_num=11,
    quota_window_size_seconds=1,
    listener_max_connections={},
    listener_max_connection_creation_rate={},
    protected_listener=None,
)


async def listen(
    receiver: FrameReceiver, *, port: int = 0, name: str = "PLAINTEXT"
) -> SocketNetwork:
    """A real server on 127.0.0.1."""
    address: Any = SimpleNamespace(
        name=name, host="127.0.0.1", port=port, security_protocol="PLAINTEXT"
    )
    network = SocketNetwork((address,), _SETTINGS)
    await network.start(receiver)
    return network
