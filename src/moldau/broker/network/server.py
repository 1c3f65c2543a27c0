"""The network on real sockets: listeners, accepting, idle connections, starting and stopping.

Everything runs on one loop, with readiness callbacks on own non-blocking sockets: that is the
cheapest way per request in Python, and the same code runs on uvloop and on the standard loop.

Invariants: a wake-up accepts a bounded number of clients, and neither too many clients nor a lack
of file descriptors makes accepting spin.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Collection, Mapping, Sequence
from typing import Final, Protocol

from moldau.broker.network._connection import Connection
from moldau.broker.network.context import ConnectionInfo
from moldau.broker.network.interface import FrameReceiver, Reply
from moldau.broker.network.machine._frames import BufferPool
from moldau.broker.network.machine.connection_rates import ConnectionRates
from moldau.broker.network.machine.limits import ConnectionLimits
from moldau.broker.network.machine.rates import Window
from moldau.broker.network.machine.traffic import Traffic
from moldau.broker.network.settings import NetworkSettings
from moldau.broker.network.transport_layer import ListenerSecurity, Plaintext
from moldau.invariant import invariant
from moldau.times import ElapsedMs

RECEIVE_BUFFER_BYTES: Final = 1024 * 1024
ACCEPTS_PER_WAKEUP_MAX: Final = 16
#: How long accepting pauses when the system has no file descriptor or memory for another client.
ACCEPT_PAUSE_S: Final = 0.5
#: How many clients that connect too often are kept waiting before they are disconnected.
HELD_BACK_MAX: Final = 1_000
#: How often idle connections are checked within connections.max.idle.ms.
SWEEPS_PER_IDLE_TIME: Final = 8

_NO_RESOURCES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

logger = logging.getLogger(__name__)


class ListenError(Exception):
    """A listener cannot be bound; the message names it and the reason."""


class ListenerAddress(Protocol):
    """A listener as configured; port 0 means any free one."""

    @property
    def name(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def security_protocol(self) -> str: ...


class Listener:
    """One bound address: accepts sockets for the network."""

    def __init__(
        self,
        network: SocketNetwork,
        sock: socket.socket,
        *,
        name: str,
        security_protocol: str,
        security: ListenerSecurity,
    ) -> None:
        self._network = network
        self._sock = sock
        self._accepting = False
        # More clients than allowed came lately: accepting pauses.
        self._slow = False
        self.receiver: FrameReceiver | None = None
        self.traffic = Traffic()
        self.name = name
        self.security_protocol = security_protocol
        self.security = security

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._sock.getsockname()[:2]
        return host, port

    def resume(self) -> None:
        # Bound but not started: clients wait in the backlog until the listener is started.
        ready = self.receiver is not None and not self._slow
        if ready and not self._accepting and self._sock.fileno() >= 0:
            self._accepting = True
            self._network.loop.add_reader(self._sock.fileno(), self._on_acceptable)

    def pause(self) -> None:
        if self._accepting:
            self._accepting = False
            self._network.loop.remove_reader(self._sock.fileno())

    def close(self) -> None:
        self.pause()
        self._sock.close()

    def _on_acceptable(self) -> None:
        for _ in range(ACCEPTS_PER_WAKEUP_MAX):
            if self._network.is_full(self.name):
                # Clients wait in the backlog until one disconnects; on_closed resumes accepting.
                self.pause()
                return
            if self._slow:
                return
            try:
                sock, address = self._sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._on_accept_failed(error)
                return
            self._network.on_accepted(self, sock, address[0], address[1])
            pause_ms = self._network.accept_pause_ms(self.name)
            if pause_ms:
                self._slow = True
                self.pause()
                self._network.loop.call_later(pause_ms / 1000, self._on_rate_ok)
                return

    def _on_rate_ok(self) -> None:
        self._slow = False
        self.resume()

    def _on_accept_failed(self, error: OSError) -> None:
        # With a full descriptor table the socket stays readable: pause instead of spinning.
        hint = "; raise the limit on open files" if error.errno in _NO_RESOURCES else ""
        logger.error(
            "listener %s cannot accept connections for %s s: %s%s",
            self.name,
            ACCEPT_PAUSE_S,
            error.strerror,
            hint,
        )
        self.pause()
        self._network.loop.call_later(ACCEPT_PAUSE_S, self.resume)


class SocketNetwork:
    """See the module. Implements `interface.Network`; also hosts its connections."""

    def __init__(
        self,
        listeners: Sequence[ListenerAddress],
        settings: NetworkSettings,
        *,
        security: Mapping[str, ListenerSecurity] | None = None,
    ) -> None:
        """`security` is by listener name; without it all listeners are PLAINTEXT."""
        self._configured = tuple(listeners)
        self._settings = settings
        self._security = security
        self._limits = ConnectionLimits(
            max_connections=settings.max_connections,
            max_connections_per_ip=settings.max_connections_per_ip,
            max_connections_per_ip_overrides=settings.max_connections_per_ip_overrides,
        )
        self._listeners: list[Listener] = []
        self._connections: set[Connection] = set()
        self._abandoned: set[asyncio.Future[Reply]] = set()
        self._rates = ConnectionRates(
            Window(settings.quota_window_num, 1000 * settings.quota_window_size_seconds)
        )
        self._update_limits(settings)
        self._held_back: set[socket.socket] = set()
        self._accepted_count = 0
        self._sweep_timer: asyncio.TimerHandle | None = None
        self._all_closed: asyncio.Event | None = None
        self.loop: asyncio.AbstractEventLoop
        self.receive_buffer = memoryview(bytearray(RECEIVE_BUFFER_BYTES))
        held_max = settings.queued_max_request_bytes
        self.pool = BufferPool(held_max if held_max > 0 else None)
        self.tick = 0

    @property
    def addresses(self) -> Mapping[str, tuple[str, int]]:
        return {listener.name: listener.address for listener in self._listeners}

    @property
    def connections(self) -> Collection[Connection]:
        """Those that are open; for reading."""
        return self._connections

    @property
    def traffic(self) -> Mapping[str, Traffic]:
        """By listener name."""
        return {listener.name: listener.traffic for listener in self._listeners}

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    def is_full(self, listener: str) -> bool:
        return self._limits.is_full(listener)

    def accept_pause_ms(self, listener: str) -> int:
        """A client was accepted: how long this listener waits for the next one."""
        return self._rates.accept_pause_ms(listener, self._elapsed_ms())

    def update_address_rates(self, default: float | None, limits: Mapping[str, float]) -> None:
        self._rates.update_addresses(default, limits)

    async def bind(self) -> None:
        self.loop = asyncio.get_running_loop()
        try:
            for configured in self._configured:
                self._listeners.append(await self._bind(configured))
        except ListenError:
            self._close_listeners()
            raise

    async def start(
        self, receiver: FrameReceiver, listeners: Collection[str] | None = None
    ) -> None:
        if not self._listeners:
            await self.bind()
        started = [
            each
            for each in self._listeners
            if (each.receiver is None if listeners is None else each.name in listeners)
        ]
        invariant(all(each.receiver is None for each in started), "a listener was started twice")
        invariant(bool(started) or listeners is not None, "the network was started twice")
        for listener in started:
            listener.receiver = receiver
            listener.resume()
        if self._settings.connections_max_idle_ms > 0 and self._sweep_timer is None:
            self._schedule_sweep()

    async def stop(self, grace_s: float) -> None:
        self._close_listeners()
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
            self._sweep_timer = None
        self._all_closed = asyncio.Event()
        for connection in tuple(self._connections):
            connection.finish()
        if self._connections:
            try:
                await asyncio.wait_for(self._all_closed.wait(), grace_s)
            except TimeoutError:
                logger.warning(
                    "%d requests did not end within %s s and are cancelled",
                    len(self._connections),
                    grace_s,
                )
        for connection in tuple(self._connections):
            connection.close()
        if self._abandoned:
            await asyncio.wait(self._abandoned, timeout=grace_s)

    def update_settings(self, settings: NetworkSettings) -> None:
        """Apply what may change in a running broker: the connection limits."""
        self._settings = settings
        self._limits.update(
            max_connections=settings.max_connections,
            max_connections_per_ip=settings.max_connections_per_ip,
            max_connections_per_ip_overrides=settings.max_connections_per_ip_overrides,
        )
        self._update_limits(settings)
        self._resume_listeners()

    def _update_limits(self, settings: NetworkSettings) -> None:
        protected = settings.protected_listener
        self._limits.update_listeners(settings.listener_max_connections, protected)
        self._rates.update(
            broker=settings.max_connection_creation_rate,
            listeners=settings.listener_max_connection_creation_rate,
            protected=protected,
        )

    # Called by listeners and connections.

    def on_accepted(self, listener: Listener, sock: socket.socket, host: str, port: int) -> None:
        receiver = listener.receiver
        if receiver is None:
            sock.close()
            return
        host = _plain_host(host)
        throttle_ms = self._rates.address_throttle_ms(host, self._elapsed_ms())
        if throttle_ms:
            self._hold_back(sock, throttle_ms)
            return
        if not self._limits.admit(host, listener.name):
            logger.warning(
                "closing connection from %s:%d on %s: this address has %d connections already "
                "(max.connections.per.ip)",
                host,
                port,
                listener.name,
                self._limits.limit_for(host),
            )
            sock.close()
            return
        own_host, own_port = listener.address
        info = ConnectionInfo(
            listener_name=listener.name,
            security_protocol=listener.security_protocol,
            client_host=host,
            client_port=port,
            connection_id=f"{own_host}:{own_port}-{host}:{port}-{self._accepted_count}",
            traffic=listener.traffic,
        )
        self._accepted_count += 1
        try:
            self._prepare(sock)
            channel, frames_to = listener.security.open(sock, info, receiver)
            connection = Connection(
                self,
                channel,
                info,
                frames_to,
                request_bytes_max=self._settings.socket_request_max_bytes,
            )
        except OSError as error:
            logger.debug("connection from %s broke while it was accepted: %s", info.peer, error)
            self._limits.release(host, listener.name)
            sock.close()
            return
        self._connections.add(connection)
        listener.traffic.accepted += 1

    def _hold_back(self, sock: socket.socket, throttle_ms: int) -> None:
        """Disconnect a client that connects too often, but not at once: it would come back."""
        if len(self._held_back) >= HELD_BACK_MAX:
            sock.close()
            return
        self._held_back.add(sock)
        self.loop.call_later(throttle_ms / 1000, self._let_go, sock)

    def _let_go(self, sock: socket.socket) -> None:
        self._held_back.discard(sock)
        sock.close()

    def _elapsed_ms(self) -> ElapsedMs:
        return ElapsedMs(int(self.loop.time() * 1000))

    def on_closed(self, connection: Connection, abandoned: asyncio.Future[Reply] | None) -> None:
        self._connections.discard(connection)
        connection.info.traffic.closed += 1
        listener_name = connection.info.listener_name
        was_full = self._limits.full or self._limits.is_full(listener_name)
        self._limits.release(connection.info.client_host, listener_name)
        if abandoned is not None and not abandoned.done():
            self._abandoned.add(abandoned)
            abandoned.add_done_callback(self._abandoned.discard)
        if was_full:
            self._resume_listeners()
        if self._all_closed is not None and not self._connections:
            self._all_closed.set()

    # Internals.

    def _prepare(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if self._settings.socket_send_buffer_bytes != -1:
            size = self._settings.socket_send_buffer_bytes
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)

    async def _bind(self, configured: ListenerAddress) -> Listener:
        if self._security is not None:
            security = self._security[configured.name]
        elif configured.security_protocol == "PLAINTEXT":
            security = Plaintext()
        else:
            raise ListenError(
                f"listener {configured.name}: {configured.security_protocol} is not set up here"
            )
        where = f"{configured.host or '*'}:{configured.port}"
        try:
            family, address = await self._resolve(configured.host, configured.port)
            sock = socket.socket(family, socket.SOCK_STREAM)
            try:
                self._listen(sock, address, dual_stack=not configured.host)
            except OSError:
                sock.close()
                raise
        except OSError as error:
            raise ListenError(
                f"listener {configured.name}: cannot listen on {where}: {error.strerror or error}"
            ) from error
        return Listener(
            self,
            sock,
            name=configured.name,
            security_protocol=configured.security_protocol,
            security=security,
        )

    async def _resolve(self, host: str, port: int) -> tuple[int, tuple[str, int]]:
        """As Java does: no host means every address, and a name's IPv4 address comes first."""
        if not host:
            if socket.has_dualstack_ipv6():
                return socket.AF_INET6, ("::", port)
            return socket.AF_INET, ("0.0.0.0", port)
        found = await self.loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        found.sort(key=lambda entry: entry[0] != socket.AF_INET)
        family, _, _, _, address = found[0]
        return family, (str(address[0]), int(address[1]))

    def _listen(self, sock: socket.socket, address: tuple[str, int], *, dual_stack: bool) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sock.family == socket.AF_INET6 and dual_stack:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        if self._settings.socket_receive_buffer_bytes != -1:
            # Set here and inherited on accept: the window is agreed upon with the handshake.
            size = self._settings.socket_receive_buffer_bytes
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
        sock.bind(address)
        sock.listen(self._settings.socket_listen_backlog_size)

    def _resume_listeners(self) -> None:
        for listener in self._listeners:
            if not self._limits.is_full(listener.name):
                listener.resume()

    def _close_listeners(self) -> None:
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()
        for sock in tuple(self._held_back):
            self._let_go(sock)

    def _schedule_sweep(self) -> None:
        delay_s = self._settings.connections_max_idle_ms / 1000 / SWEEPS_PER_IDLE_TIME
        self._sweep_timer = self.loop.call_later(delay_s, self._sweep)

    def _sweep(self) -> None:
        """Close connections that have been idle too long. Checking all of them now and then is
        cheaper than a timer that moves with every request."""
        self.tick += 1
        for connection in tuple(self._connections):
            if connection.waiting:
                # The client waits for this broker.
                connection.seen_tick = self.tick
            elif self.tick - connection.seen_tick > SWEEPS_PER_IDLE_TIME:
                logger.debug("closing idle connection from %s", connection.info.peer)
                connection.close()
        self._schedule_sweep()


def _plain_host(host: str) -> str:
    """An IPv4 client of a dual-stack socket is an IPv4 client."""
    return host.removeprefix("::ffff:") if "." in host else host
