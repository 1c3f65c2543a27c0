"""A network in virtual time: connections whose bytes take their time, stop anywhere or get lost.

The model, so that a finding can be judged:
- A connection is two streams of bytes. Bytes of one stream arrive in order and whole, each piece
  after a delay of its own; a piece may arrive in several parts. A stream takes only so many bytes
  ahead of its reader.
- A connection may be cut at any byte: what was sent before that byte arrives, then both sides
  learn that it was reset. So a request may be carried out while its answer is lost.
- A blocked way (from one host to another, each direction on its own) delivers nothing, neither
  bytes nor ends nor new connections, until it is open again; then all of it arrives late.
- A process that ends leaves its connections reset. A machine without power leaves them silent:
  the other side learns of it when bytes that it sends reach the machine after its restart.

Invariants: streams belong to the machines, not to the processes, so that what was sent
before a process died or paused still arrives.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum, auto
from random import Random
from typing import Any, Final

from moldau.sim.loop import VirtualLoop
from moldau.sim.process import PROCESS, Process
from moldau.wire.constants import Buffer

WINDOW_BYTES: Final = 256 * 1024
STRAGGLE_S: Final = 3.0

Address = tuple[str, int]


class _Signal(Enum):
    END = auto()
    RESET = auto()


class Net:
    """Hosts, the ways between them, and the listeners."""

    def __init__(self, loop: VirtualLoop, random: Random) -> None:
        self.loop = loop
        self.random = random
        self.context = contextvars.Context()
        """Outside of every process: what is on its way does not depend on who sent it."""
        self.delay_s = 0.002
        self.delay_long_s = 0.3
        self.delay_long_chance = 0.02
        self.cut_chance = 0.0
        self.on_cut: Callable[[], None] = lambda: None
        self.listeners: dict[Address, Callable[[End], None]] = {}
        self.down: set[str] = set()
        """Machines without power."""
        self._blocked: set[tuple[str, str]] = set()
        self._held: dict[asyncio.Future[None], tuple[str, str]] = {}
        self._streams: dict[Stream, None] = {}
        self._ips: dict[str, str] = {}
        self._port = 40_000
        self.next_fd = 1_000

    def ip(self, host: str) -> str:
        """The address of a host, as the other side of a connection sees it."""
        number = len(self._ips) + 1
        return self._ips.setdefault(host, f"10.0.{number // 256}.{number % 256}")

    # Ways.

    def delay(self) -> float:
        random = self.random
        if random.random() < self.delay_long_chance:
            return random.random() * self.delay_long_s
        return random.random() * self.delay_s

    def block(self, source: str, target: str) -> None:
        self._blocked.add((source, target))

    def is_blocked(self, source: str, target: str) -> bool:
        return (source, target) in self._blocked

    def open(self, source: str, target: str) -> None:
        self._blocked.discard((source, target))
        self._go_on()

    def heal(self) -> None:
        self._blocked.clear()
        self._go_on()

    def _go_on(self) -> None:
        for stream in list(self._streams):
            stream.go_on()
        for future, way in list(self._held.items()):
            if way not in self._blocked:
                del self._held[future]
                if not future.done():
                    future.set_result(None)

    def note_stream(self, stream: Stream, *, busy: bool) -> None:
        if busy:
            self._streams[stream] = None
        else:
            self._streams.pop(stream, None)

    async def travel(self, source: str, target: str) -> None:
        await asyncio.sleep(self.delay())
        while self.is_blocked(source, target):
            future: asyncio.Future[None] = self.loop.create_future()
            self._held[future] = (source, target)
            await future

    # Connections.

    async def connect(self, host: str, address: Address) -> End:
        """The client's end of a new connection from `host`."""
        target = address[0]
        await self.travel(host, target)
        accept = self.listeners.get(address)
        if accept is None:
            if target in self.down:
                await self.loop.create_future()
            await self.travel(target, host)
            raise ConnectionRefusedError(f"{address[0]}:{address[1]} refuses")
        self._port += 1
        client, server = End(self, (host, self._port)), End(self, address)
        client.join(server)
        client.belong(PROCESS.get())
        accept(server)
        try:
            await self.travel(target, host)
        except asyncio.CancelledError:
            client.close()
            raise
        return client


class Stream:
    """One direction of a connection."""

    def __init__(self, net: Net, source: End, target: End) -> None:
        self._net = net
        self._source = source
        self._target = target
        self._queue: deque[tuple[float, bytes | _Signal]] = deque()
        self._last_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.bytes_under_way = 0

    def put(self, item: bytes | _Signal) -> None:
        self._last_s = max(self._last_s, self._net.loop.time() + self._net.delay())
        self._queue.append((self._last_s, item))
        if isinstance(item, bytes):
            self.bytes_under_way += len(item)
        self._net.note_stream(self, busy=True)
        self._arm()

    def hold(self, seconds: float) -> None:
        """What is put from now on arrives later than it would."""
        self._last_s = max(self._last_s, self._net.loop.time()) + seconds

    def go_on(self) -> None:
        self._arm()

    def _arm(self) -> None:
        if self._timer is None and self._queue:
            when = max(self._queue[0][0], self._net.loop.time())
            self._timer = self._net.loop.call_at(when, self._deliver, context=self._net.context)

    def _deliver(self) -> None:
        self._timer = None
        if self._net.is_blocked(self._source.host, self._target.host):
            return
        _, item = self._queue.popleft()
        if not self._queue:
            self._net.note_stream(self, busy=False)
        if isinstance(item, bytes):
            self.bytes_under_way -= len(item)
            self._target.on_bytes(item)
        else:
            self._target.on_signal(item)
        self._arm()


class End:
    """One side of a connection, as the kernel of its machine keeps it."""

    def __init__(self, net: Net, address: Address) -> None:
        self._net = net
        self.address = address
        self.host = address[0]
        self.peer: End
        self._out: Stream
        self.inbox = bytearray()
        self.ended = False
        self.broken = False
        self.closed = False
        self._mute = False
        self._gone = False
        self.on_change: Callable[[], None] = lambda: None

    def join(self, other: End) -> None:
        self.peer, other.peer = other, self
        self._out = Stream(self._net, self, other)
        other._out = Stream(self._net, other, self)

    def belong(self, process: Process | None) -> None:
        if process is not None:
            process.when_dead(self._on_process_dead)

    # The owner's side.

    @property
    def room(self) -> int:
        return WINDOW_BYTES - self._out.bytes_under_way - len(self.peer.inbox)

    def send(self, data: bytes) -> None:
        """Everything; who cares for `room` asks before."""
        if self._mute or self.closed or not data:
            return
        net = self._net
        if net.cut_chance and net.random.random() < net.cut_chance:
            self._cut(data)
            return
        if len(data) > 1 and net.random.random() < 0.1:
            first = net.random.randrange(1, len(data))
            self._out.put(data[:first])
            data = data[first:]
        self._out.put(data)

    def _cut(self, data: bytes) -> None:
        random = self._net.random
        # Often at the very end: the request is carried out, and its answer is lost.
        count = len(data) if random.random() < 0.5 else random.randrange(len(data) + 1)
        self._net.on_cut()
        if random.random() < 0.3:
            # The sender notices the cut long before the last bytes arrive.
            self._out.hold(random.random() * STRAGGLE_S)
        if count:
            self._out.put(data[:count])
        self._out.put(_Signal.RESET)
        self._mute = self.peer._mute = True
        self.peer._out.put(_Signal.RESET)

    def take(self, count: int) -> bytes:
        data = bytes(self.inbox[:count])
        del self.inbox[:count]
        if data:
            self._net.loop.call_soon(self.peer.on_change, context=self._net.context)
        return data

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            if not self._mute and not self.broken:
                self._out.put(_Signal.END)

    def abort(self) -> None:
        if not self.closed:
            self.closed = True
            if not self._mute and not self.broken:
                self._out.put(_Signal.RESET)

    def _on_process_dead(self) -> None:
        self.on_change = lambda: None
        if self.host in self._net.down:
            self._gone = self.closed = True
        else:
            self.abort()

    # The network's side.

    def on_bytes(self, data: bytes) -> None:
        if self.host in self._net.down:
            return
        if self.closed or self._gone:
            # Nobody is there to read it: the other side learns so.
            if not self._mute:
                self._mute = True
                self._out.put(_Signal.RESET)
            return
        self.inbox += data
        self.on_change()

    def on_signal(self, signal: _Signal) -> None:
        if self.host in self._net.down or self.closed:
            return
        if signal is _Signal.END:
            self.ended = True
        else:
            self.broken = True
        self.on_change()


class SimSocket:
    """A non-blocking socket over an end: what `Connection` needs of one."""

    def __init__(self, net: Net, end: End) -> None:
        self._loop = net.loop
        self._end = end
        net.next_fd += 1
        self._fd = net.next_fd
        net.loop.sockets[self._fd] = self
        self._context = contextvars.copy_context()
        self._reader: Callable[[], object] | None = None
        self._writer: Callable[[], object] | None = None
        self._scheduled = False
        end.on_change = self._look

    def fileno(self) -> int:
        return self._fd

    def recv_into(self, buffer: memoryview, /) -> int:
        end = self._end
        if end.inbox:
            data = end.take(len(buffer))
            buffer[: len(data)] = data
            return len(data)
        if end.broken:
            raise ConnectionResetError("reset")
        if end.ended:
            return 0
        raise BlockingIOError

    def send(self, data: Buffer, /) -> int:
        return self.sendmsg([data])

    def sendmsg(self, buffers: Sequence[Buffer], /) -> int:
        end = self._end
        if end.broken:
            raise ConnectionResetError("reset")
        room = end.room
        if room <= 0:
            raise BlockingIOError
        data = b"".join(buffers)[:room]
        end.send(data)
        return len(data)

    def close(self) -> None:
        self._reader = self._writer = None
        self._loop.sockets.pop(self._fd, None)
        self._end.close()

    # Watched by the loop, level-triggered as a selector is.

    def watch_reads(self, callback: Callable[[], object] | None) -> None:
        self._reader = callback
        self._look()

    def watch_writes(self, callback: Callable[[], object] | None) -> None:
        self._writer = callback
        self._look()

    @property
    def _readable(self) -> bool:
        return bool(self._end.inbox) or self._end.ended or self._end.broken

    @property
    def _writable(self) -> bool:
        return self._end.room > 0 or self._end.broken

    def _look(self) -> None:
        ready = (self._reader and self._readable) or (self._writer and self._writable)
        if ready and not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._turn, context=self._context)

    def _turn(self) -> None:
        self._scheduled = False
        if self._reader is not None and self._readable:
            self._reader()
        if self._writer is not None and self._writable:
            self._writer()
        self._look()


class SimStreamTransport(asyncio.Transport):
    """An end as asyncio's transports are: for those who connect."""

    def __init__(self, net: Net, end: End, protocol: asyncio.BufferedProtocol) -> None:
        super().__init__()
        self._loop = net.loop
        self._end = end
        self._protocol = protocol
        self._context = contextvars.copy_context()
        self._scheduled = False
        self._lost = False
        end.on_change = self._look

    def write(self, data: Any) -> None:
        if not self._lost:
            self._end.send(bytes(data))

    def is_closing(self) -> bool:
        return self._lost

    def close(self) -> None:
        self._end.close()
        self._lose(None)

    def abort(self) -> None:
        self._end.abort()
        self._lose(None)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def _look(self) -> None:
        if not self._scheduled and not self._lost:
            self._scheduled = True
            self._loop.call_soon(self._turn, context=self._context)

    def _turn(self) -> None:
        self._scheduled = False
        end = self._end
        while end.inbox and not self._lost:
            buffer = memoryview(self._protocol.get_buffer(-1))
            data = end.take(len(buffer))
            buffer[: len(data)] = data
            buffer.release()
            self._protocol.buffer_updated(len(data))
        if end.broken:
            self._lose(ConnectionResetError("reset"))
        elif end.ended and not self._lost:
            self._protocol.eof_received()
            end.close()
            self._lose(None)

    def _lose(self, error: Exception | None) -> None:
        if not self._lost:
            self._lost = True
            self._loop.call_soon(self._protocol.connection_lost, error, context=self._context)


class Dialler:
    """`moldau.peers.node_channel.Connect` from one host."""

    def __init__(self, net: Net, host: str) -> None:
        self._net = net
        self._host = host
        self.ends: list[End] = []
        """The connections made, last one last; who wants to know of their fate looks here."""

    async def __call__(
        self, protocol_factory: Callable[[], asyncio.BufferedProtocol], host: str, port: int
    ) -> Any:
        end = await self._net.connect(self._host, (host, port))
        protocol = protocol_factory()
        transport = SimStreamTransport(self._net, end, protocol)
        self.ends.append(end)
        protocol.connection_made(transport)
        transport._look()
        return transport, protocol
