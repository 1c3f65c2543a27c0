# cython: annotation_typing=False
"""Sends a connection's responses as fast as the kernel takes them.

Invariants: buffers leave in the order in which they were given; no wake-up sends more than a
bounded number of times, so a client that reads fast does not starve the others.

Plain Python, and with `_sending.pxd` beside it also the source of a compiled module.
"""

from __future__ import annotations

import asyncio
from collections import deque
from itertools import islice
from time import perf_counter_ns
from typing import Final, Protocol

from moldau.broker.metrics.phases import Phases
from moldau.broker.network.machine.traffic import Traffic
from moldau.broker.network.resets import reset_watch
from moldau.broker.network.transport_layer import TransportLayer
from moldau.wire.constants import Buffer

SENDS_PER_WAKEUP_MAX: Final = 4
#: Part of what the kernel takes in one call (IOV_MAX is 1024 on Linux and macOS).
BUFFERS_PER_SEND_MAX: Final = 256


class SenderOwner(Protocol):
    """The connection whose responses are sent."""

    def on_sending(self) -> None:
        """The client takes data: it is alive."""
        ...

    def on_all_sent(self) -> None:
        """The kernel has everything that it did not take at first."""
        ...

    def on_broken(self, error: OSError) -> None: ...


class Sender:
    """`unsent` is what the kernel has not taken yet; others only look whether it is empty."""

    __slots__ = (
        "_channel",
        "_fd",
        "_loop",
        "_notice_reset",
        "_owner",
        "_phases",
        "_traffic",
        "unsent",
    )

    def __init__(
        self,
        channel: TransportLayer,
        loop: asyncio.AbstractEventLoop,
        owner: SenderOwner,
        traffic: Traffic,
        phases: Phases,
    ) -> None:
        self._traffic = traffic
        self._phases = phases
        self._channel = channel
        self._fd = channel.fileno()
        self._loop = loop
        self._owner = owner
        self._notice_reset = reset_watch(channel, owner)
        self.unsent: deque[Buffer] = deque()

    def send(self, buffers: list[Buffer]) -> None:
        """An empty list is for whoever has received and sends nothing now: see `resets`."""
        if not buffers:
            self._notice_reset()
            return
        if self.unsent:
            self.unsent.extend(buffers)
            return
        try:
            if len(buffers) == 1:
                size = len(buffers[0])
                sent = self._channel.send(buffers[0])
            else:
                size = sum(map(len, buffers))
                sent = self._channel.sendmsg(buffers[:BUFFERS_PER_SEND_MAX])
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            self._owner.on_broken(error)
            return
        self._traffic.sent += sent
        if sent != size:
            self.unsent.extend(buffers)
            self._drop_sent(sent)
            self._loop.add_writer(self._fd, self._on_writable)
        phases = self._phases
        if phases.ready or self.unsent:
            phases.given(perf_counter_ns(), all_sent=not self.unsent)
        phases.last = None

    def _on_writable(self) -> None:
        self._owner.on_sending()
        for _ in range(SENDS_PER_WAKEUP_MAX):
            buffers = list(islice(self.unsent, BUFFERS_PER_SEND_MAX))
            try:
                sent = self._channel.sendmsg(buffers)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                self._owner.on_broken(error)
                return
            del buffers
            self._traffic.sent += sent
            self._drop_sent(sent)
            if not self.unsent:
                self._loop.remove_writer(self._fd)
                self._phases.all_sent(perf_counter_ns())
                self._owner.on_all_sent()
                return

    def _drop_sent(self, count: int) -> None:
        """Drop what the kernel has; views of mapped segments are released here."""
        unsent = self.unsent
        while count:
            size = len(unsent[0])
            if size > count:
                unsent[0] = memoryview(unsent[0])[count:]
                return
            del unsent[0]
            count -= size
        while unsent and not len(unsent[0]):
            del unsent[0]

    def close(self) -> None:
        """Send no more; before the channel is closed."""
        if self.unsent:
            self._loop.remove_writer(self._fd)
            self.unsent.clear()
