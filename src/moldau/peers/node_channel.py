"""Channels over real connections; `channel.py` has the invariants that callers rely on.

Decided here: when a channel connects, which calls are sent, wait or fail, and when it gives up on
a connection. Invariants: there is at most one connection or one attempt to make it, and only while
a call waits; every call ends within its own time; the number of calls in flight and of those that
wait is bounded, and so is the size of a response.

A channel is idle, connecting (`_attempt`: the pause after the last failure, the connection itself,
ApiVersions) or connected (`_connection`). A failed attempt fails all calls that wait. A lost
connection fails the calls that were sent; those that were not wait for the next attempt.
"""

from __future__ import annotations

import asyncio
import errno
import os
import ssl
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

import moldau
from moldau.clock import Alarm, Clock, pause
from moldau.peers.channel import (
    AuthenticationFailed,
    CallTimedOut,
    ChannelError,
    ConnectionObserver,
    ConnectionRefused,
    NotConnected,
    NotKafka,
    RawResponse,
    Reach,
)
from moldau.peers.deadline import Deadline
from moldau.peers.login_session import LoginSession
from moldau.peers.machine.backoff import ExponentialBackoff, RandomSource
from moldau.peers.machine.peer_versions import PeerVersions, api_versions_request
from moldau.peers.machine.responses import SpareBuffers
from moldau.peers.node_connection import Call, NodeConnection
from moldau.peers.security import PLAINTEXT, ConnectionSecurity, SecurityByListener
from moldau.security.reasons import explain
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.codec import decode
from moldau.wire.errors import WireError
from moldau.wire.message import Message


class Connect(Protocol):
    """Makes a connection that feeds a protocol, as `asyncio.loop.create_connection` does."""

    def __call__(
        self, protocol_factory: Callable[[], asyncio.BufferedProtocol], host: str, port: int
    ) -> Awaitable[Any]: ...


class ChannelSettings(NamedTuple):
    """Limits of one channel; those with Kafka's names mean what they mean there."""

    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1_000
    socket_connection_setup_timeout_ms: int = 10_000
    socket_connection_setup_timeout_max_ms: int = 30_000
    response_bytes_max: int = 200 * 1024 * 1024
    #: The peer answers one after the other; more would only fill its receive buffer.
    calls_in_flight_max: int = 16
    calls_waiting_max: int = 1_024
    #: Of the socket; -1 leaves them to the system.
    send_buffer_bytes: int = -1
    receive_buffer_bytes: int = -1
    #: A connection without calls for so long is closed; never if negative.
    connections_max_idle_ms: int = -1


def response_bytes_max(request_bytes_max: int) -> int:
    """The largest response to expect where no request is larger than `request_bytes_max`.

    A batch came in by a request. A Fetch gives a first batch of any size, and beside it no more
    than one is allowed to ask for, which is far less.
    """
    return min(2 * request_bytes_max, 2**31 - 1)


class NodeTransport:
    """Implements `channel.Transport`. All its channels live on the running loop."""

    def __init__(
        self,
        *,
        client_id: str,
        clock: Clock,
        random: RandomSource,
        settings: ChannelSettings | None = None,
        connect: Connect | None = None,
        observer: ConnectionObserver | None = None,
        security: SecurityByListener = lambda listener_name: PLAINTEXT,
    ) -> None:
        """Without `connect` connections are sockets of the running loop."""
        self.client_id = client_id
        self.clock = clock
        self.random = random
        self.settings = settings or ChannelSettings()
        self.observer = observer
        #: Of all connections together, so what is kept does not grow with the cluster.
        self.spares = SpareBuffers()
        self._connect = connect
        self._security = security
        self._channels: set[NodeChannel] = set()

    def channel(self, node_id: int, host: str, port: int, listener_name: str) -> NodeChannel:
        channel = NodeChannel(self, node_id, host, port, self._security(listener_name))
        self._channels.add(channel)
        return channel

    def close(self) -> None:
        """Close every channel."""
        for channel in tuple(self._channels):
            channel.close()

    def connect(
        self,
        connection: NodeConnection,
        host: str,
        port: int,
        tls: ssl.SSLContext | None,
    ) -> Awaitable[Any]:
        loop = asyncio.get_running_loop()
        if tls is not None:
            return loop.create_connection(lambda: connection, host, port, ssl=tls)
        return (self._connect or loop.create_connection)(lambda: connection, host, port)

    async def probe(self, host: str, port: int, *, timeout_ms: int) -> Reach:
        make = self._connect or asyncio.get_running_loop().create_connection
        deadline = Deadline(self.clock, timeout_ms)
        try:
            transport, _ = await make(asyncio.BufferedProtocol, host, port)
        except asyncio.CancelledError:
            if deadline.passed():
                return Reach.UNKNOWN
            raise
        except (OSError, ValueError) as error:
            return Reach.REFUSED if is_refusal(error) else Reach.UNKNOWN
        finally:
            deadline.cancel()
        transport.abort()
        return Reach.ACCEPTED

    def on_closed(self, channel: NodeChannel) -> None:
        self._channels.discard(channel)


class NodeChannel:
    """See the module. Implements `channel.Channel`."""

    def __init__(
        self,
        transport: NodeTransport,
        node_id: int,
        host: str,
        port: int,
        security: ConnectionSecurity = PLAINTEXT,
    ) -> None:
        settings = transport.settings
        self._security = security
        self._session: LoginSession | None = None
        if security.authenticate is not None:
            self._session = LoginSession(
                security.authenticate,
                host,
                clock=transport.clock,
                random=transport.random,
                timeout_ms=self._setup_timeout_ms,
                on_renewed=self._pump,
            )
        self._transport = transport
        self._clock = transport.clock
        self._settings = settings
        self._backoff = ExponentialBackoff(
            settings.reconnect_backoff_ms, settings.reconnect_backoff_max_ms
        )
        self._host = host
        self._port = port
        self._node_id = node_id
        # A client does not know the ids of the nodes it begins with.
        self._peer = f"{f'node {node_id}' if node_id >= 0 else 'the node'} at {host}:{port}"
        self._waiting: deque[Call] = deque()
        self._attempt: asyncio.Task[None] | None = None
        self._connection: NodeConnection | None = None
        # Failures since the last connection that worked; the next attempt is not before the time.
        self._failures = 0
        self._not_before_ms = 0
        self._closed = False
        # The next time at which something may be over, and since when nothing is to do.
        self._alarm: Alarm | None = None
        self._alarm_ms = 0
        self._idle_deadline_ms: int | None = None

    @property
    def connected(self) -> bool:
        return self._connection is not None

    @property
    def known_versions(self) -> PeerVersions | None:
        """The API versions that the peer reported; None while there is no connection."""
        return None if self._connection is None else self._connection.versions

    @property
    def idle(self) -> bool:
        """Whether no call is pending."""
        connection = self._connection
        in_flight = 0 if connection is None else connection.in_flight_count
        return not self._waiting and not in_flight

    async def versions(self, *, timeout_ms: int) -> PeerVersions:
        """The API versions that the peer reports; connects if necessary."""
        await self.call_raw(
            ApiKey.API_VERSIONS, api_versions_request(moldau.__version__), timeout_ms=timeout_ms
        )
        connection = self._connection
        if connection is None or connection.versions is None:
            raise ChannelError(f"ApiVersions to {self._peer}: the connection is lost again")
        return connection.versions

    async def send_only(self, key: ApiKey, request: Message, *, timeout_ms: int) -> None:
        """Send a request that the peer does not answer; returns when it has been handed over."""
        await self._enqueue(Call(API_BY_KEY[key], request, None, unanswered=True), timeout_ms)

    async def call(
        self, key: ApiKey, request: Message, *, timeout_ms: int, max_version: int | None = None
    ) -> Message:
        raw = await self.call_raw(key, request, timeout_ms=timeout_ms, max_version=max_version)
        api = API_BY_KEY[key]
        try:
            return decode(api.response, raw.version, raw.body)
        except WireError as error:
            raise ChannelError(f"{api.name} to {self._peer}: {error}") from error

    async def call_raw(
        self, key: ApiKey, request: Message, *, timeout_ms: int, max_version: int | None = None
    ) -> RawResponse:
        return await self._enqueue(Call(API_BY_KEY[key], request, max_version), timeout_ms)

    def start_call(
        self,
        key: ApiKey,
        request: Message,
        *,
        timeout_ms: int,
        max_version: int | None = None,
        unanswered: bool = False,
    ) -> asyncio.Future[RawResponse]:
        """As `call_raw`, with a callback instead of a task: when this returns, the request has its
        place in the order. Raises ChannelError if it cannot be queued."""
        call = Call(API_BY_KEY[key], request, max_version, unanswered=unanswered)
        self._start(call, timeout_ms)
        return call.future

    async def _enqueue(self, call: Call, timeout_ms: int) -> RawResponse:
        self._start(call, timeout_ms)
        try:
            return await call.future
        except asyncio.CancelledError:
            # The answer to a call that was sent is still expected, and within its time.
            if not call.sent:
                self._forget(call)
            raise

    def _start(self, call: Call, timeout_ms: int) -> None:
        api = call.api
        if self._closed:
            raise ChannelError(f"{api.name} to {self._peer} is not sent: the channel is closed")
        if len(self._waiting) >= self._settings.calls_waiting_max:
            raise ChannelError(
                f"{api.name} to {self._peer} is not sent: {len(self._waiting)} calls wait already"
            )
        call.timeout_ms = timeout_ms
        call.deadline_ms = self._clock.elapsed_ms() + timeout_ms
        if self._alarm is None or call.deadline_ms < self._alarm_ms:
            self._set_alarm(call.deadline_ms)
        self._waiting.append(call)
        self._pump()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._attempt is not None:
            self._attempt.cancel()
            self._attempt = None
        if self._connection is not None:
            self._connection.lose("the channel was closed")
        self._fail_waiting("the channel was closed")
        self._transport.on_closed(self)

    # Calls.

    def _pump(self) -> None:
        """Send what may be sent; connect if there is something to send."""
        connection = self._connection
        if connection is None:
            if self._waiting and self._attempt is None and not self._closed:
                self._attempt = asyncio.get_running_loop().create_task(self._connect())
            return
        if self._session is not None and self._waiting and not self._session.is_fresh(connection):
            return
        in_flight_max = self._settings.calls_in_flight_max
        while self._waiting and connection.in_flight_count < in_flight_max:
            connection.send(self._waiting.popleft())
        if self._settings.connections_max_idle_ms >= 0:
            self._watch_idleness()

    # One alarm serves all deadlines: it goes off at the first of them, finds most of the time that
    # what it was set for is long over, and is set again. Calls come and go without touching it.

    def _set_alarm(self, at_ms: int) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_ms = at_ms
        self._alarm = self._clock.call_later(at_ms - self._clock.elapsed_ms(), self._on_alarm)

    def _on_alarm(self) -> None:
        self._alarm = None
        now_ms = self._clock.elapsed_ms()
        for call in self._calls():
            if call.deadline_ms <= now_ms and not call.ended:
                self._on_timeout(call)
        if self._idle_deadline_ms is not None and self._idle_deadline_ms <= now_ms:
            self._idle_deadline_ms = None
            if self._connection is not None:
                self._connection.lose("it was not used")
        deadlines = [call.deadline_ms for call in self._calls() if not call.ended]
        if self._idle_deadline_ms is not None:
            deadlines.append(self._idle_deadline_ms)
        # What failed here may have led to new calls, which have set it already.
        if deadlines and (self._alarm is None or min(deadlines) < self._alarm_ms):
            self._set_alarm(min(deadlines))

    def _calls(self) -> list[Call]:
        """The calls that wait, and those that were sent."""
        connection = self._connection
        return [*self._waiting, *(connection.in_flight if connection is not None else ())]

    def _watch_idleness(self) -> None:
        """Close the connection when it had no calls for the whole idle time."""
        if not self.idle:
            self._idle_deadline_ms = None
            return
        self._idle_deadline_ms = self._clock.elapsed_ms() + self._settings.connections_max_idle_ms
        if self._alarm is None or self._idle_deadline_ms < self._alarm_ms:
            self._set_alarm(self._idle_deadline_ms)

    def _on_timeout(self, call: Call) -> None:
        what = f"{call.api.name} to {self._peer}"
        timeout_ms = call.timeout_ms
        if not call.sent:
            self._waiting.remove(call)
            call.fail(CallTimedOut(f"{what} could not be sent within {timeout_ms} ms"))
            return
        reason = f"{call.api.name} was not answered within {timeout_ms} ms"
        call.fail(CallTimedOut(f"{what} was not answered within {timeout_ms} ms"))
        # An unanswered call is the current connection's: a lost one has ended all of its calls.
        if self._connection is not None:
            self._connection.lose(reason)

    def _forget(self, call: Call) -> None:
        if call in self._waiting:
            self._waiting.remove(call)
        call.fail(ChannelError("nobody waits for it"))

    def _fail_waiting(self, reason: str) -> None:
        calls = list(self._waiting)
        self._waiting.clear()
        for call in calls:
            call.fail(ChannelError(f"{call.api.name} to {self._peer} is not sent: {reason}"))

    def _fail_unconnected(self, error: OSError | ValueError) -> None:
        calls = list(self._waiting)
        self._waiting.clear()
        reason = _reason(error).removeprefix(f"{self._peer}: ")
        kind: Callable[[str, str, str], NotConnected] = NotConnected
        if isinstance(error, AuthenticationFailed):
            kind, reason = partial(AuthenticationFailed, tls=error.tls), error.reason
        elif isinstance(error, ssl.SSLError):
            kind = partial(AuthenticationFailed, tls=True)
            reason = f"SSL handshake failed: {explain(error)}"
        elif isinstance(error, NotKafka):
            kind, reason = NotKafka, error.reason
        elif is_refusal(error):
            kind = ConnectionRefused
        for call in calls:
            message = f"{call.api.name} to {self._peer} is not sent: {reason}"
            call.fail(kind(message, self._peer, reason))

    # The connection.

    async def _connect(self) -> None:
        try:
            delay_ms = self._not_before_ms - self._clock.elapsed_ms()
            if delay_ms > 0:
                await pause(self._clock, delay_ms)
            connection = await self._establish()
        except (OSError, ValueError) as error:
            # A ValueError: the host is no name that could be looked up.
            self._attempt = None
            self._note_failure()
            self._fail_unconnected(error)
            return
        except asyncio.CancelledError:
            # By the end of `asyncio.run` for one: who still calls after it connects again.
            if not self._closed:
                self._attempt = None
                self._fail_waiting("connecting was cancelled")
            raise
        self._attempt = None
        self._failures = 0
        self._connection = connection
        self._pump()

    async def _establish(self) -> NodeConnection:
        """A connection with negotiated versions, within the time that this may take."""
        settings = self._settings
        connection = NodeConnection(
            self._peer,
            client_id=self._transport.client_id,
            response_bytes_max=settings.response_bytes_max,
            on_progress=self._pump,
            on_lost=self._on_lost,
            send_buffer_bytes=settings.send_buffer_bytes,
            receive_buffer_bytes=settings.receive_buffer_bytes,
            node_id=self._node_id,
            observer=self._transport.observer,
            spares=self._transport.spares,
        )
        timeout_ms = self._setup_timeout_ms()
        deadline = Deadline(self._clock, timeout_ms)
        try:
            tls = None if self._security.tls is None else self._security.tls()
            await self._transport.connect(connection, self._host, self._port, tls)
            await connection.negotiate(moldau.__version__)
            if self._session is not None:
                await self._session.begin(connection)
        except asyncio.CancelledError:
            connection.lose("it was given up")
            if deadline.passed() and not self._closed:
                raise ChannelError(f"not connected within {timeout_ms} ms") from None
            raise
        except BaseException:
            connection.lose("it could not be used")
            raise
        finally:
            deadline.cancel()
        if connection.lost is not None:
            raise connection.lost
        return connection

    def _setup_timeout_ms(self) -> int:
        """Longer after each failure in a row (KIP-601): the peer may only be slow to answer."""
        first_ms = self._settings.socket_connection_setup_timeout_ms
        most_ms = self._settings.socket_connection_setup_timeout_max_ms
        if self._failures == 0:
            return min(first_ms, most_ms)
        growing = ExponentialBackoff(first_ms, most_ms)
        return growing.delay_ms(self._failures, self._transport.random)

    def _on_lost(self, connection: NodeConnection) -> None:
        if connection is self._connection:
            self._connection = None
            self._note_failure()
            self._pump()

    def _note_failure(self) -> None:
        self._failures += 1
        pause_ms = self._backoff.delay_ms(self._failures, self._transport.random)
        self._not_before_ms = self._clock.elapsed_ms() + pause_ms


def is_refusal(error: OSError | ValueError) -> bool:
    """Whether every address of the peer refused the connection.

    A name with several addresses fails with one error that only quotes those of the addresses.
    """
    if isinstance(error, ConnectionRefusedError):
        return True
    text = str(error)
    quoted = text.count("[Errno ")
    return quoted > 0 and quoted == text.count(f"[Errno {errno.ECONNREFUSED}]")


def _reason(error: OSError | ValueError) -> str:
    """Why a connection could not be made, in words: "connection refused"."""
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno).lower()
    return str(error)
