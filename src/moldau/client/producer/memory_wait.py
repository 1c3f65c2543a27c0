"""Records that wait for `buffer.memory`.

Invariant: memory that was granted to a record that no longer waits is given back.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from moldau.client.errors import BufferExhaustedError, ClosedError
from moldau.client.metrics import ProducerMetrics
from moldau.client.producer._send_path import Outgoing, SendPath
from moldau.client.producer.accumulator import Accumulator
from moldau.client.producer.machine.queues import MemoryWaiter
from moldau.client.producer.sender import Sender
from moldau.client.producer.settings import ProducerSettings
from moldau.clock import Clock

__all__ = ["CLOSED_IN_SEND", "MemoryWait"]

CLOSED_IN_SEND = "the producer was closed while send was in progress"


class MemoryWait:
    """See the module."""

    def __init__(
        self,
        settings: ProducerSettings,
        accumulator: Accumulator,
        sender: Sender,
        path: SendPath,
        metrics: ProducerMetrics,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._accumulator = accumulator
        self._sender = sender
        self._path = path
        self._metrics = metrics
        self._clock = clock

    async def wait_on_loop(self, outgoing: Outgoing, until_ms: int) -> None:
        """Until there is memory for a record; raises BufferExhaustedError or ClosedError."""
        loop = asyncio.get_running_loop()
        home = threading.get_ident()
        woken = loop.create_future()

        def set_woken() -> None:
            if not woken.done():
                woken.set_result(None)

        def wake() -> None:
            # Mostly in the loop's own thread, which need not be woken by a byte in a pipe.
            if threading.get_ident() == home:
                set_woken()
            else:
                loop.call_soon_threadsafe(set_woken)

        waiter = self._line_up(outgoing, wake)
        if waiter is None:
            return
        start_ns = perf_counter_ns()
        left_ms = max(0, until_ms - self._clock.elapsed_ms())
        alarm = loop.call_later(left_ms / 1000, set_woken)
        try:
            await woken
        except asyncio.CancelledError:
            with self._accumulator.lock:
                self._accumulator.memory.withdraw(waiter)
            raise
        finally:
            alarm.cancel()
        self._take_granted(outgoing, waiter, start_ns)

    def wait_in_thread(self, outgoing: Outgoing, until_ms: int) -> None:
        """The same in a thread that may block: a full buffer makes it wait once for every batch,
        and a coroutine on the loop would cost more than the batch itself."""
        woken = threading.Lock()
        woken.acquire()
        waiter = self._line_up(outgoing, woken.release)
        if waiter is None:
            return
        start_ns = perf_counter_ns()
        left_s = max(0, until_ms - self._clock.elapsed_ms()) / 1000
        try:
            woken.acquire(timeout=min(left_s, threading.TIMEOUT_MAX))
            self._take_granted(outgoing, waiter, start_ns)
        except BaseException:
            # Interrupted, by Ctrl-C for one: what was granted meanwhile must not be lost.
            with self._accumulator.lock:
                if outgoing.memory_size == 0:
                    self._accumulator.memory.withdraw(waiter)
            raise

    def _line_up(self, outgoing: Outgoing, wake: Callable[[], Any]) -> MemoryWaiter | None:
        """Wait for memory behind those who do already; None if there was enough."""
        accumulator = self._accumulator
        size = self._path.memory_needed(outgoing)
        with accumulator.lock:
            if accumulator.memory.take(size):
                outgoing.memory_size = size
                return None
            if accumulator.closed:
                # Nobody would wake it any more.
                raise ClosedError(CLOSED_IN_SEND)
            waiter = MemoryWaiter(size, wake)
            accumulator.memory.waiters.append(waiter)
            # What waits for more records is to be sent now.
            self._sender.wake_by(0)
        return waiter

    def _take_granted(self, outgoing: Outgoing, waiter: MemoryWaiter, start_ns: int) -> None:
        """The end of a wait for memory; raises if there is none."""
        accumulator = self._accumulator
        self._metrics.waited_for_memory(perf_counter_ns() - start_ns)
        with accumulator.lock:
            if waiter.granted:
                outgoing.memory_size = waiter.size
                return
            accumulator.memory.withdraw(waiter)
        if self._path.closed:
            raise ClosedError(CLOSED_IN_SEND)
        raise self._exhausted(waiter.size)

    def release(self, outgoing: Outgoing) -> None:
        """Give back what a record holds that did not need it after all."""
        if outgoing.memory_size:
            with self._accumulator.lock:
                size, outgoing.memory_size = outgoing.memory_size, 0
                self._accumulator.memory.give_back(size)

    def _exhausted(self, size: int) -> BufferExhaustedError:
        self._metrics.memory_exhausted()
        return BufferExhaustedError(
            f"failed to allocate {size} bytes within max.block.ms, {self._settings.max_block_ms} "
            f"ms: {self._accumulator.memory.free} of {self._settings.buffer_memory} bytes are free"
        )
