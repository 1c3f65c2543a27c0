"""One connection to another node: sends requests, and matches responses to calls.

Invariants: responses arrive in the order of the requests, as every Kafka broker sends them; a
response that matches no call, or another one, ends the connection. Each call ends exactly once,
with a response or an error, and all of them end with the connection.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, cast

from moldau.invariant import invariant
from moldau.peers.channel import (
    AuthenticationFailed,
    ChannelError,
    ConnectionObserver,
    NotKafka,
    RawResponse,
    UnsupportedVersion,
)
from moldau.peers.machine.peer_versions import (
    API_VERSIONS,
    PeerVersions,
    api_versions_request,
    read_api_versions,
)
from moldau.peers.machine.responses import (
    FIRST_BYTES_MAX,
    InvalidResponse,
    NotKafkaBytes,
    ResponseFrames,
    SpareBuffers,
)
from moldau.security.reasons import explain
from moldau.wire.apis import Api
from moldau.wire.errors import WireError
from moldau.wire.framing import decode_response_header, encode_request_parts
from moldau.wire.message import Message

CORRELATION_ID_MAX = 2**31 - 1
NO_DEADLINE_MS = 2**63 - 1
_BUFFER_OPTIONS = (socket.SO_SNDBUF, socket.SO_RCVBUF)


class Call:
    """A request that waits for its response."""

    __slots__ = (
        "api",
        "correlation_id",
        "deadline_ms",
        "ended",
        "future",
        "max_version",
        "request",
        "sent_ms",
        "timeout_ms",
        "unanswered",
        "version",
    )

    def __init__(
        self, api: Api, request: Message, max_version: int | None, *, unanswered: bool = False
    ) -> None:
        self.api = api
        # The peer sends no response: it is over when it has left.
        self.unanswered = unanswered
        self.request = request
        self.max_version = max_version
        self.future: asyncio.Future[RawResponse] = asyncio.get_running_loop().create_future()
        # Set by the caller that enforces its timeout; without one there is no timeout.
        self.timeout_ms = 0
        self.deadline_ms = NO_DEADLINE_MS
        self.ended = False
        # Known once the request has left.
        self.version = -1
        self.correlation_id = -1
        self.sent_ms = 0

    @property
    def sent(self) -> bool:
        return self.correlation_id >= 0

    def answer(self, response: RawResponse) -> None:
        self.ended = True
        if not self.future.done():
            self.future.set_result(response)

    def fail(self, error: ChannelError) -> None:
        self.ended = True
        if not self.future.done():
            self.future.set_exception(error)


class NodeConnection(asyncio.BufferedProtocol):
    """See the module. `on_progress` is called after responses, `on_lost` once at the end."""

    def __init__(
        self,
        peer: str,
        *,
        client_id: str,
        response_bytes_max: int,
        on_progress: Callable[[], None],
        on_lost: Callable[[NodeConnection], None],
        send_buffer_bytes: int = -1,
        receive_buffer_bytes: int = -1,
        node_id: int = -1,
        observer: ConnectionObserver | None = None,
        spares: SpareBuffers | None = None,
    ) -> None:
        self._peer = peer
        self._node_id = node_id
        self._observer = observer
        self._client_id = client_id
        self._on_progress = on_progress
        self._on_lost = on_lost
        self._buffer_sizes = (send_buffer_bytes, receive_buffer_bytes)
        self._transport: asyncio.WriteTransport | None = None
        self._frames = ResponseFrames(response_bytes_max, spares, first_size_max=FIRST_BYTES_MAX)
        self._in_flight: deque[Call] = deque()
        self._correlation_id = -1
        self._versions: PeerVersions | None = None
        self.lost: ChannelError | None = None

    @property
    def peer(self) -> str:
        """The node and its address, for error messages."""
        return self._peer

    @property
    def versions(self) -> PeerVersions | None:
        """The API versions of the peer, once they are negotiated."""
        return self._versions

    @property
    def in_flight(self) -> Iterable[Call]:
        """The calls that were sent and are not answered."""
        return self._in_flight

    @property
    def in_flight_count(self) -> int:
        return len(self._in_flight)

    async def negotiate(self, software_version: str) -> None:
        """Ask the peer for its API versions; raises ChannelError."""
        version = API_VERSIONS.max_version
        while True:
            call = Call(API_VERSIONS, api_versions_request(software_version), None)
            self._write(call, version)
            try:
                body = (await call.future).body
                answer = read_api_versions(version, body, self._peer)
            except (ChannelError, InvalidResponse) as error:
                # If it is lost already, the reason is known better.
                self.lose(str(error))
                raise cast(ChannelError, self.lost) from None
            if isinstance(answer, PeerVersions):
                self._versions = answer
                return
            version = answer

    async def ask(self, api: Api, request: Message) -> RawResponse:
        """Send a request that belongs to making the connection; raises ChannelError."""
        call = Call(api, request, None)
        self.send(call)
        return await call.future

    def send(self, call: Call) -> None:
        """Send the request in the negotiated version; without a common version the call fails."""
        versions = self._versions
        invariant(versions is not None, "a call was sent before versions were negotiated")
        try:
            self._write(call, cast(PeerVersions, versions).choose(call.api, call.max_version))
        except UnsupportedVersion as error:
            call.fail(error)

    def _write(self, call: Call, version: int) -> None:
        if self.lost is not None:
            call.fail(self.lost)
            return
        invariant(self._transport is not None, "a call was sent before there was a connection")
        correlation_id = (
            0 if self._correlation_id == CORRELATION_ID_MAX else self._correlation_id + 1
        )
        try:
            parts = encode_request_parts(
                call.api, version, correlation_id, self._client_id, call.request
            )
        except WireError as error:
            # The version lacks a field that the request needs.
            raise UnsupportedVersion(
                f"{self._peer} serves {call.api.name} in version {version} at most: {error}"
            ) from error
        self._correlation_id = correlation_id
        call.version, call.correlation_id = version, correlation_id
        if self._observer is not None:
            # Before the write: the peer may have it while this process waits for a core.
            call.sent_ms = self._observer.now_ms()
        transport = cast(asyncio.WriteTransport, self._transport)
        if len(parts) == 1:
            transport.write(parts[0])
        else:
            transport.writelines(parts)
        if self._observer is not None:
            self._observer.request_sent(self._node_id, sum(map(len, parts)))
        if call.unanswered:
            call.answer(RawResponse(version, memoryview(b"")))
        else:
            self._in_flight.append(call)

    def lose(self, reason: str, *, is_kafka: bool = True, rejected_by_tls: bool = False) -> None:
        """Close, and fail every call that was sent."""
        if self.lost is not None:
            return
        message = f"{self._peer}: {reason}"
        if rejected_by_tls:
            self.lost = AuthenticationFailed(message, self._peer, reason, tls=True)
        else:
            self.lost = ChannelError(message) if is_kafka else NotKafka(message, self._peer, reason)
        if self._transport is not None:
            self._transport.abort()
            if self._observer is not None:
                self._observer.connection_closed(self._node_id)
        calls = list(self._in_flight)
        self._in_flight.clear()
        for call in calls:
            call.fail(ChannelError(f"{call.api.name} to {self._peer} has no answer: {reason}"))
        self._on_lost(self)

    # Called by the loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)
        if self.lost is not None:
            # Given up while it was being made.
            self._transport.abort()
            return
        if self._observer is not None:
            self._observer.connection_opened(self._node_id)
        sock: Any = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, size in zip(_BUFFER_OPTIONS, self._buffer_sizes, strict=True):
                if size >= 0:
                    sock.setsockopt(socket.SOL_SOCKET, option, size)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._frames.space()

    def buffer_updated(self, nbytes: int) -> None:
        if self.lost is not None:
            return
        try:
            for frame in self._frames.received(nbytes):
                self._on_frame(frame)
        except InvalidResponse as error:
            self.lose(str(error), is_kafka=not isinstance(error, NotKafkaBytes))
        else:
            self._on_progress()

    def _on_frame(self, frame: bytes | memoryview) -> None:
        if not self._in_flight:
            raise InvalidResponse("it sent a response that nobody asked for")
        call = self._in_flight[0]
        try:
            correlation_id, position = decode_response_header(call.api, call.version, frame)
        except WireError as error:
            raise InvalidResponse(f"the response to {call.api.name}: {error}") from None
        if correlation_id != call.correlation_id:
            raise InvalidResponse(
                f"it answered request {correlation_id} where {call.api.name}, "
                f"request {call.correlation_id}, was next"
            )
        del self._in_flight[0]
        if self._observer is not None:
            latency_ms = self._observer.now_ms() - call.sent_ms
            self._observer.response_received(self._node_id, len(frame), latency_ms)
        call.answer(RawResponse(call.version, memoryview(frame)[position:]))

    def eof_received(self) -> None:
        self.lose(
            "the peer closed the connection"
            + (", inside a response" if self._frames.unfinished else "")
        )

    def connection_lost(self, exc: Exception | None) -> None:
        if isinstance(exc, ssl.SSLError) and self._versions is None:
            # With TLS 1.3 a client is done with the handshake before the peer has checked it.
            self.lose(f"SSL handshake failed: {explain(exc)}", rejected_by_tls=True)
        else:
            self.lose(f"the connection broke: {exc}" if exc else "the peer closed the connection")
