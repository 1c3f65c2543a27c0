"""What every process has: CPU time, memory, descriptors, threads, garbage collection, and how late
its event loop is. Names are those that Prometheus's own clients use."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from moldau.metrics._instruments import Histogram
from moldau.metrics.names import Kind, Spec
from moldau.metrics.registry import Reading, Registry

__all__ = ["PROCESS", "LoopWatch", "add_process_metrics"]

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_SCHEDSTAT: Final = "/proc/thread-self/schedstat"
#: How often the loop is asked how late it is: often enough to see a stall of a tenth of a second.
PROBE_SECONDS: Final = 0.1
#: As long as the loop is idle for more than IDLE_RATIO of the time: waking a sleeping process ten
#: times a second costs more than all else that an idle broker does.
IDLE_PROBE_SECONDS: Final = 0.5
IDLE_RATIO: Final = 0.9


def _spec(name: str, kind: Kind, help: str, *tags: str) -> Spec:
    return Spec("process", "", name, kind, help, tags)


CPU: Final = _spec("cpu_seconds_total", Kind.COUNTER, "CPU time, user and system")
RESIDENT: Final = _spec("resident_memory_bytes", Kind.GAUGE, "resident memory")
VIRTUAL: Final = _spec("virtual_memory_bytes", Kind.GAUGE, "virtual memory")
OPEN_FDS: Final = _spec("open_fds", Kind.GAUGE, "open file descriptors")
MAX_FDS: Final = _spec("max_fds", Kind.GAUGE, "largest number of open file descriptors allowed")
START: Final = _spec("start_time_seconds", Kind.GAUGE, "when the process started, since 1970")
THREADS: Final = _spec("threads", Kind.GAUGE, "threads of the process")
GC_COUNT: Final = _spec("gc_collections_total", Kind.COUNTER, "garbage collections", "generation")
GC_TIME: Final = _spec("gc_seconds_total", Kind.COUNTER, "time spent in garbage collections")
LOOP_DELAY: Final = _spec(
    "event_loop_delay_ms", Kind.HISTOGRAM, "how late the event loop runs what is due, in ms"
)
LOOP_IDLE: Final = _spec(
    "event_loop_idle_ratio", Kind.GAUGE, "share of the last seconds that the loop had nothing to do"
)

PROCESS: Final = (
    CPU, RESIDENT, VIRTUAL, OPEN_FDS, MAX_FDS, START, THREADS, GC_COUNT, GC_TIME,
    LOOP_DELAY, LOOP_IDLE,
)  # fmt: skip


def add_process_metrics(registry: Registry) -> None:
    """Have this process's own metrics collected."""
    started_s = time.time()
    pauses = _Pauses()

    def collect() -> Iterable[tuple[Spec, tuple[str, ...], Reading]]:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        yield CPU, (), usage.ru_utime + usage.ru_stime
        yield START, (), started_s
        yield MAX_FDS, (), resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        yield GC_TIME, (), pauses.seconds
        for generation, stats in enumerate(gc.get_stats()):
            yield GC_COUNT, (str(generation),), stats["collections"]
        if sys.platform.startswith("linux"):
            virtual, resident = Path("/proc/self/statm").read_text().split()[:2]
            yield VIRTUAL, (), int(virtual) * _PAGE
            yield RESIDENT, (), int(resident) * _PAGE
            yield OPEN_FDS, (), len(os.listdir("/proc/self/fd")) - 1
            yield THREADS, (), len(os.listdir("/proc/self/task"))

    registry.collector(collect)


class _Pauses:
    """How long garbage collections have taken."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._began_s = 0.0
        gc.callbacks.append(self._on_collection)

    def _on_collection(self, phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            self._began_s = time.perf_counter()
        else:
            self.seconds += time.perf_counter() - self._began_s


class LoopWatch:
    """Advances a registry's time, and measures the event loop that it runs in.

    The loop is idle while its thread sleeps in the kernel: neither computes, nor waits for a CPU
    (which Linux counts in schedstat). A loop without idle time is exhausted, as Kafka's request
    handlers are at an idle ratio of 0, also where others have taken the CPU.
    """

    def __init__(self, registry: Registry, loop: asyncio.AbstractEventLoop) -> None:
        self._registry = registry
        self._loop = loop
        self.delay: Histogram = registry.histogram(LOOP_DELAY)
        self._timer: asyncio.TimerHandle | None = None
        self._due_s = 0.0
        self._ratio = 1.0
        self._wall_s = time.monotonic()
        self._busy_s = _busy_seconds()
        #: Called about once a second with the idle seconds since.
        self.on_idle: Callable[[float], None] | None = None
        registry.gauge(LOOP_IDLE, lambda: self.idle_ratio)

    @property
    def idle_ratio(self) -> float:
        """Of about the last five seconds, between 0 and 1."""
        return self._ratio

    def start(self) -> None:
        self._due_s = self._loop.time() + PROBE_SECONDS
        self._timer = self._loop.call_at(self._due_s, self._probe)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _probe(self) -> None:
        now_s = self._loop.time()
        self.delay.update(max(0.0, now_s - self._due_s) * 1000)
        self._registry.advance()
        wall_s = time.monotonic()
        if wall_s - self._wall_s >= 1.0:
            busy_s = _busy_seconds()
            busy = (busy_s - self._busy_s) / (wall_s - self._wall_s)
            # Smoothed over about five seconds.
            self._ratio += 0.3 * (max(0.0, 1.0 - busy) - self._ratio)
            if self.on_idle is not None:
                self.on_idle(max(0.0, wall_s - self._wall_s - (busy_s - self._busy_s)))
            self._wall_s, self._busy_s = wall_s, busy_s
        pause_s = IDLE_PROBE_SECONDS if self._ratio > IDLE_RATIO else PROBE_SECONDS
        self._due_s = max(self._due_s + pause_s, now_s)
        self._timer = self._loop.call_at(self._due_s, self._probe)


def _busy_seconds() -> float:
    """How long this thread has computed, or waited for a CPU, since it started."""
    try:
        # Without a file object: an idle broker does little else.
        file = os.open(_SCHEDSTAT, os.O_RDONLY)
        try:
            computed, waited, _ = os.read(file, 100).split()
        finally:
            os.close(file)
    except (OSError, ValueError):
        return time.thread_time()
    return (int(computed) + int(waited)) / 1e9
