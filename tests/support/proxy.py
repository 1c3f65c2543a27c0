"""A network between real processes that can be cut: every byte to a node goes through here.

Nodes advertise the proxy's ports. Who opened a connection is found out by its process, so the
network can be cut between two nodes, or between a node and all that are none (the clients), and
in one direction only. What is cut off is silent, as with lost packets: bytes are held back and
connections stay; when the cut is healed TCP delivers what was sent. Memory is bounded: what cannot
be delivered is not read. The proxy is a process of its own: it waits for no client's thread.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

#: In the place of a node's id: whoever is no node.
CLIENTS: Final = 0
ANSWER_SECONDS_MAX = 30

Pair = tuple[int, int]
_CONTEXT = multiprocessing.get_context("forkserver")


class Proxy:
    """The handle of the proxy's process; `close` ends it."""

    def __init__(self) -> None:
        self._orders, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=_main, args=(theirs,), daemon=True)

    def start(self) -> Proxy:
        self._process.start()
        return self

    def serve(self, node_id: int, port: int, target_port: int) -> None:
        """Take connections at `port` to the node's `target_port`."""
        self._order("serve", node_id, port, target_port)

    def know(self, node_by_pid: Mapping[int, int]) -> None:
        """Which processes are nodes; to be told before one of them opens its first connection."""
        self._order("know", dict(node_by_pid))

    def block(self, pairs: set[Pair]) -> None:
        """From now on no bytes from the first to the second of each pair; all others flow."""
        self._order("block", frozenset(pairs))

    def _order(self, *words: Any) -> None:
        self._orders.send(words)
        assert self._orders.poll(ANSWER_SECONDS_MAX), f"the proxy does not answer to {words}"
        assert self._orders.recv() == "done"

    def close(self) -> None:
        self._orders.close()
        self._process.join(5)
        self._process.kill()
        self._process.join()


def _main(orders: Connection) -> None:
    asyncio.run(_Network(orders).run())


class _Network:
    """All links, and what may flow on them."""

    def __init__(self, orders: Connection) -> None:
        self._orders = orders
        self._ended = asyncio.Event()
        self._node_by_pid: dict[int, int] = {}
        self._blocked: frozenset[Pair] = frozenset()
        self._links: set[_Link] = set()
        self._servers: list[asyncio.Server] = []

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        arrived = asyncio.Event()
        loop.add_reader(self._orders.fileno(), arrived.set)
        with suppress(EOFError, OSError):
            while True:
                await arrived.wait()
                arrived.clear()
                while self._orders.poll():
                    await self._obey(*self._orders.recv())
                    self._orders.send("done")

    async def _obey(self, order: str, *what: Any) -> None:
        if order == "serve":
            node_id, port, target_port = what
            server = await asyncio.get_running_loop().create_server(
                lambda: _End(_Link(self, node_id, target_port)), "127.0.0.1", port
            )
            self._servers.append(server)
        elif order == "know":
            (self._node_by_pid,) = what
        else:
            (self._blocked,) = what
            for link in self._links:
                link.update()

    def is_blocked(self, source: int, target: int) -> bool:
        return (source, target) in self._blocked

    def opener(self, local_port: int, remote_port: int) -> int:
        """Which node has a connection between these ports."""
        inode = _inode(local_port, remote_port)
        if inode is not None:
            wanted = f"socket:[{inode}]"
            for pid, node_id in self._node_by_pid.items():
                if _has_open(pid, wanted):
                    return node_id
        return CLIENTS

    def add(self, link: _Link) -> None:
        self._links.add(link)

    def remove(self, link: _Link) -> None:
        self._links.discard(link)


#: 127.0.0.1 as the kernel writes it.
_TABLES: Final = (
    ("/proc/net/tcp", "0100007F"),
    ("/proc/net/tcp6", "0000000000000000FFFF00000100007F"),
)


def _inode(local_port: int, remote_port: int) -> str | None:
    """The socket's number, from the kernel's table of IPv4 or IPv6 connections.

    The table of a busy machine has thousands of lines: it is searched, not taken apart.
    """
    for table, prefix in _TABLES:
        text = Path(table).read_text()
        found = text.find(f"{prefix}:{local_port:04X} {prefix}:{remote_port:04X} ")
        if found >= 0:
            return text[found : text.index("\n", found)].split()[8]
    return None


def _has_open(pid: int, wanted: str) -> bool:
    folder = f"/proc/{pid}/fd"
    with suppress(OSError):
        # A new connection has one of the last numbers, mostly.
        for number in sorted(map(int, os.listdir(folder)), reverse=True):
            with suppress(OSError):
                if os.readlink(f"{folder}/{number}") == wanted:
                    return True
    return False


class _Link:
    """One connection: the end that was accepted, and the one made to the node."""

    def __init__(self, network: _Network, target: int, port: int) -> None:
        self.network = network
        self.source = CLIENTS
        self.target = target
        self._port = port
        self._ends: list[_End] = []
        self._reaching: asyncio.Task[None] | None = None

    def opened(self, end: _End) -> None:
        self._ends.append(end)
        if len(self._ends) == 2:
            accepted, reached = self._ends
            accepted.other, reached.other = reached, accepted
        else:
            (_, peer), (_, own) = (end.transport.get_extra_info(each) for each in _ADDRESSES)
            self.source = self.network.opener(peer, own)
            self.network.add(self)
            loop = asyncio.get_running_loop()
            way = loop.create_connection(lambda: _End(self), "127.0.0.1", self._port)
            self._reaching = loop.create_task(self._reach(way))
        self.update()

    async def _reach(self, way: Coroutine[Any, Any, Any]) -> None:
        try:
            await way
        except OSError:
            self.close()

    def update(self) -> None:
        for end in self._ends:
            end.update()

    def may_flow(self, end: _End) -> bool:
        from_source = end is self._ends[0]
        pair = (self.source, self.target) if from_source else (self.target, self.source)
        return not self.network.is_blocked(*pair)

    def close(self) -> None:
        self.network.remove(self)
        for end in self._ends:
            end.transport.close()


_ADDRESSES = ("peername", "sockname")


class _End(asyncio.Protocol):
    """One of a link's two sockets; it is read only while the other can take it."""

    transport: asyncio.Transport

    def __init__(self, link: _Link) -> None:
        self.link = link
        self.other: _End | None = None
        self.congested = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
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
