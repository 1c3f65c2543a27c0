"""`moldau.broker.network.interface.Network` over the simulated network.

The connections are the broker's own (`broker/network/_connection.py`): how frames are cut, that one
request is answered after the other, and what becomes of a request whose client has gone is the
real thing; only the sockets are not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence

from moldau.broker.network._connection import Connection
from moldau.broker.network.context import ConnectionInfo
from moldau.broker.network.interface import FrameReceiver, Reply
from moldau.broker.network.machine._frames import BufferPool
from moldau.broker.network.server import ListenerAddress
from moldau.broker.network.settings import NetworkSettings
from moldau.sim.network import End, Net, SimSocket
from moldau.sim.process import Process

RECEIVE_BUFFER_BYTES = 64 * 1024


class SimNetwork:
    """One boot's listeners. Implements `Network` and `ConnectionHost`."""

    def __init__(
        self,
        net: Net,
        process: Process,
        listeners: Sequence[ListenerAddress],
        settings: NetworkSettings,
    ) -> None:
        self._net = net
        self._process = process
        self._configured = tuple(listeners)
        self._settings = settings
        self._connections: dict[Connection, None] = {}
        self._abandoned: dict[asyncio.Future[Reply], None] = {}
        self._accepted = 0
        self._receivers: dict[str, FrameReceiver] = {}
        self._backlog: list[tuple[ListenerAddress, End]] = []
        self._all_closed: asyncio.Event | None = None
        self.loop: asyncio.AbstractEventLoop = net.loop
        self.receive_buffer = memoryview(bytearray(RECEIVE_BUFFER_BYTES))
        self.pool = BufferPool()
        self.tick = 0

    @property
    def addresses(self) -> Mapping[str, tuple[str, int]]:
        return {each.name: (each.host, each.port) for each in self._configured}

    async def bind(self) -> None:
        for listener in self._configured:
            self._listen(listener)
        self._process.when_dead(self._unlisten)

    def _listen(self, listener: ListenerAddress) -> None:
        context = self._process.context()

        def accept(end: End) -> None:
            # The kernel has accepted; the process gets to see it when it runs.
            end.belong(self._process)
            self._net.loop.call_soon(self._on_accepted, listener, end, context=context.copy())

        self._net.listeners[listener.host, listener.port] = accept

    def _unlisten(self) -> None:
        for listener in self._configured:
            self._net.listeners.pop((listener.host, listener.port), None)

    async def start(
        self, receiver: FrameReceiver, listeners: Collection[str] | None = None
    ) -> None:
        for each in self._configured:
            if listeners is None or each.name in listeners:
                self._receivers.setdefault(each.name, receiver)
        backlog, self._backlog = self._backlog, []
        for listener, end in backlog:
            self._on_accepted(listener, end)

    def update_settings(self, settings: NetworkSettings) -> None:
        self._settings = settings

    def update_address_rates(self, default: float | None, limits: Mapping[str, float]) -> None:
        """Connections are not limited in the simulator."""

    async def stop(self, grace_s: float) -> None:
        self._unlisten()
        self._all_closed = asyncio.Event()
        for connection in tuple(self._connections):
            connection.finish()
        if self._connections:
            try:
                await asyncio.wait_for(self._all_closed.wait(), grace_s)
            except TimeoutError:
                for connection in tuple(self._connections):
                    connection.close()
        if self._abandoned:
            await asyncio.wait(list(self._abandoned), timeout=grace_s)

    def _on_accepted(self, listener: ListenerAddress, end: End) -> None:
        receiver = self._receivers.get(listener.name)
        if receiver is None:
            self._backlog.append((listener, end))
            return
        if self._all_closed is not None:
            end.abort()
            return
        host, port = end.peer.address
        self._accepted += 1
        info = ConnectionInfo(
            listener_name=listener.name,
            security_protocol=listener.security_protocol,
            client_host=self._net.ip(host),
            client_port=port,
            connection_id=f"{listener.host}:{listener.port}-{host}:{port}-{self._accepted}",
        )
        connection = Connection(
            self,
            SimSocket(self._net, end),
            info,
            receiver,
            request_bytes_max=self._settings.socket_request_max_bytes,
        )
        self._connections[connection] = None

    def on_closed(self, connection: Connection, abandoned: asyncio.Future[Reply] | None) -> None:
        self._connections.pop(connection, None)
        if abandoned is not None and not abandoned.done():
            self._abandoned[abandoned] = None
            abandoned.add_done_callback(lambda future: self._abandoned.pop(future, None))
        if self._all_closed is not None and not self._connections:
            self._all_closed.set()
