"""A network between real processes that can be cut: every byte to a node goes through here.

Nodes advertise the proxy's ports. Who opened a connection is found out by its process, so the
network can be cut between two nodes, or between a node and all that are none (the clients), and
in one direction only. What is cut off is silent, as with lost packets: bytes are held back and
connections stay; when the cut is healed TCP delivers what was sent. Memory is bounded: what cannot
be delivered is not read.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final

import psutil

#: In the place of a node's id: whoever is no node.
CLIENTS: Final = 0

Pair = tuple[int, int]


class Proxy:
    """An event loop in a thread; its methods may be called from any other."""

    def __init__(self, node_by_pid: Callable[[], dict[int, int]]) -> None:
        self._node_by_pid = node_by_pid
        self._blocked: frozenset[Pair] = frozenset()
        self._links: set[_Link] = set()
        self._servers: list[asyncio.Server] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="proxy")

    def start(self) -> Proxy:
        self._thread.start()
        return self

    def serve(self, node_id: int, port: int, target_port: int) -> None:
        """Take connections at `port` to the node's `target_port`."""

        async def listen() -> None:
            server = await self._loop.create_server(
                lambda: _End(_Link(self, node_id, target_port), None), "127.0.0.1", port
            )
            self._servers.append(server)

        self._run(listen())

    def block(self, pairs: set[Pair]) -> None:
        """From now on no bytes from the first to the second of each pair; all others flow."""

        async def change() -> None:
            self._blocked = frozenset(pairs)
            for link in self._links:
                link.update()

        self._run(change())

    def close(self) -> None:
        async def end() -> None:
            for server in self._servers:
                server.close()
            for link in list(self._links):
                link.close()

        self._run(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def is_blocked(self, source: int, target: int) -> bool:
        return (source, target) in self._blocked

    def opener(self, port: int) -> int:
        """Which node has a connection with this local port."""
        for pid, node_id in self._node_by_pid().items():
            try:
                connections = psutil.Process(pid).net_connections("tcp")
            except psutil.Error:
                continue
            if any(each.laddr and each.laddr.port == port for each in connections):
                return node_id
        return CLIENTS

    def add(self, link: _Link) -> None:
        self._links.add(link)

    def remove(self, link: _Link) -> None:
        self._links.discard(link)

    def connect(self, link: _Link, accepted: _End, port: int) -> asyncio.Task[Any]:
        way = self._loop.create_connection(lambda: _End(link, accepted), "127.0.0.1", port)
        return self._loop.create_task(self._reach(link, way))

    async def _reach(self, link: _Link, way: Coroutine[Any, Any, Any]) -> None:
        try:
            await way
        except OSError:
            link.close()


class _Link:
    """One connection: the end that was accepted, and the one made to the node."""

    def __init__(self, proxy: Proxy, target: int, port: int) -> None:
        self.proxy = proxy
        self.source = CLIENTS
        self.target = target
        self._port = port
        self._ends: list[_End] = []
        self._reaching: asyncio.Task[Any] | None = None

    def opened(self, end: _End) -> None:
        self._ends.append(end)
        if len(self._ends) == 2:
            accepted, reached = self._ends
            accepted.other, reached.other = reached, accepted
        else:
            self.source = self.proxy.opener(end.peer_port)
            self.proxy.add(self)
            self._reaching = self.proxy.connect(self, end, self._port)
        self.update()

    def update(self) -> None:
        for end in self._ends:
            end.update()

    def may_flow(self, end: _End) -> bool:
        from_source = end is self._ends[0]
        pair = (self.source, self.target) if from_source else (self.target, self.source)
        return len(self._ends) == 2 and not self.proxy.is_blocked(*pair)

    def close(self) -> None:
        self.proxy.remove(self)
        if self._reaching is not None:
            self._reaching.cancel()
        for end in self._ends:
            end.transport.close()


class _End(asyncio.Protocol):
    """One of a link's two sockets; it is read only while the other can take it."""

    def __init__(self, link: _Link, other: _End | None) -> None:
        self.link = link
        self.other = other
        self.congested = False
        self.peer_port = 0
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.peer_port = transport.get_extra_info("peername")[1]
        self.link.opened(self)

    def data_received(self, data: bytes) -> None:
        assert self.other is not None
        self.other.transport.write(data)

    def connection_lost(self, error: Exception | None) -> None:
        self.link.close()

    def pause_writing(self) -> None:
        self.congested = True
        self.link.update()

    def resume_writing(self) -> None:
        self.congested = False
        self.link.update()

    def update(self) -> None:
        if self.transport.is_closing():
            return
        other = self.other
        if other is not None and not other.congested and self.link.may_flow(self):
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()
