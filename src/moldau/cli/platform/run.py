"""Starts the services of a platform, keeps them running, and stops them.

Each service is an ordinary `moldau SERVICE start` process whose output goes to a log file; the
machine decides what is started when. Services stop first and all at once, then pipelines and Spark,
the brokers last: until then offsets can be committed and groups left. A second signal kills what is
left. Every process ends with this one, also if it is killed (`cli/support/parents.py`).
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Final, Protocol

from moldau.cli.platform.folder import PlatformFolder
from moldau.cli.platform.machine.plan import BROKER, Service
from moldau.cli.platform.machine.supervision import (
    Ended,
    Event,
    Probed,
    Say,
    Start,
    Started,
    State,
    Status,
    Supervisor,
    Tick,
)
from moldau.cli.platform.pipelines import Pipelines
from moldau.cli.platform.probes import problem_of
from moldau.cli.support.parents import PARENT_VARIABLE
from moldau.spark.runtime.processes import start_mark

__all__ = ["PlatformRun", "View"]

_TICK_S: Final = 0.1
_PROBE_STARTING_S: Final = 0.2
_PROBE_UP_S: Final = 2.0
_STATUS_S: Final = 1.0
_LOGS_S: Final = 30.0
_SERVICE_STOP_S_MAX: Final = 30.0
_BROKER_STOP_S_MAX: Final = 90.0
_MESSAGES_MAX: Final = 50
_EVENTS_MAX: Final = 1_000


class View(Protocol):
    """Where the user looks."""

    def say(self, text: str) -> None: ...

    def show(self, status: dict[str, Any]) -> None: ...


class PlatformRun:
    """The processes of one platform, from their start to their stop."""

    def __init__(
        self,
        services: Sequence[Service],
        folder: PlatformFolder,
        view: View,
        *,
        bootstrap_servers: str,
        pipelines: Pipelines | None,
        on_broker_up: Callable[[], None],
    ) -> None:
        self._services = {service.name: service for service in services}
        self._folder = folder
        self._view = view
        self._bootstrap_servers = bootstrap_servers
        self._pipelines = pipelines
        self._on_broker_up = on_broker_up
        self._supervisor = Supervisor(services, random.SystemRandom(), now_ms=_monotonic_ms())
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self._events: asyncio.Queue[Event] = asyncio.Queue(_EVENTS_MAX)
        self._tasks: set[asyncio.Task[None]] = set()
        self._messages: deque[str] = deque(maxlen=_MESSAGES_MAX)
        self._began = time.monotonic()
        self._started_ms = int(time.time() * 1000)
        self._was_up = False
        self._broker_was_up = False
        self._stopping = asyncio.Event()
        self._killing = asyncio.Event()

    async def serve(self) -> int:
        """Run until a signal; the exit code is 1 if a process had to be killed."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._on_signal)
        for name in self._services:
            self._spawn_task(self._probe(name))
        self._spawn_task(self._report())
        if self._pipelines is not None:
            self._spawn_task(self._pipelines.keep(self._say))
        try:
            await self._supervise()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            in_order = await self._stop()
            self._folder.forget_status()
        return 0 if in_order else 1

    def _spawn_task(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        # A fault in one of them must not leave the platform without it: it stops in order.
        task.add_done_callback(self._on_task_done)

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._say(f"An error in `moldau up` itself, which stops: {task.exception()!r}")
            self._stopping.set()

    def _on_signal(self) -> None:
        if self._stopping.is_set():
            self._killing.set()
        self._stopping.set()

    def _say(self, text: str) -> None:
        line = f"{time.strftime('%H:%M:%S')} {text}"
        self._messages.append(line)
        self._view.say(line)

    # While it runs.

    async def _supervise(self) -> None:
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            while not self._stopping.is_set():
                await self._step(await self._next_event())
        finally:
            stopping.cancel()

    async def _next_event(self) -> Event:
        try:
            async with asyncio.timeout(_TICK_S):
                return await self._events.get()
        except TimeoutError:
            return Tick()

    async def _step(self, event: Event) -> None:
        for effect in self._supervisor.step(event, _monotonic_ms()):
            match effect:
                case Say(text):
                    self._say(text)
                case Start(name):
                    await self._start(self._services[name])
        self._notice_up()

    def _notice_up(self) -> None:
        if not self._broker_was_up and self._is_up(BROKER):
            self._broker_was_up = True
            self._on_broker_up()
            if self._pipelines is not None:
                self._pipelines.on_broker_up()
        if not self._was_up and self._supervisor.all_up:
            self._was_up = True
            took = time.monotonic() - self._began
            self._say(f"All {len(self._services)} services are up after {took:.1f} s.")
            self._write_status()

    def _is_up(self, name: str) -> bool:
        if name not in self._services:
            return True
        return any(
            status.state is State.UP
            for status in self._supervisor.statuses()
            if status.name == name
        )

    async def _start(self, service: Service) -> None:
        try:
            with self._folder.log(service.name).open("ab") as output:
                process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-m",
                    "moldau.cli",
                    *service.words,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    # Ctrl-C in a terminal reaches the whole process group; they stop in order.
                    start_new_session=True,
                    env={**os.environ, PARENT_VARIABLE: str(os.getpid()), "PYTHONUNBUFFERED": "1"},
                )
        except OSError as error:
            await self._events.put(Ended(service.name, 1, f"cannot be started: {error}"))
            return
        self._processes[service.name] = process
        await self._step(Started(service.name, process.pid))
        self._spawn_task(self._wait(service.name, process))

    async def _wait(self, name: str, process: asyncio.subprocess.Process) -> None:
        code = await process.wait()
        lines = self._folder.last_lines(name, 1) if code > 0 else []
        await self._events.put(Ended(name, code, lines[0].strip() if lines else ""))

    async def _probe(self, name: str) -> None:
        service = self._services[name]
        while True:
            process = self._processes.get(name)
            pause = _PROBE_STARTING_S
            if process is not None and process.returncode is None:
                problem = await asyncio.to_thread(problem_of, service)
                await self._events.put(Probed(name, process.pid, problem))
                if self._is_up(name):
                    pause = _PROBE_UP_S
            await asyncio.sleep(pause)

    async def _report(self) -> None:
        limited_at = 0.0
        while True:
            self._write_status()
            if time.monotonic() - limited_at > _LOGS_S:
                limited_at = time.monotonic()
                await asyncio.to_thread(self._folder.limit_logs)
            await asyncio.sleep(_STATUS_S)

    def _write_status(self) -> None:
        status = self._status()
        self._folder.write_status(status)
        self._view.show(status)

    def _status(self) -> dict[str, Any]:
        now_ms, wall_ms = _monotonic_ms(), int(time.time() * 1000)
        services = [
            self._ending(_as_fields(status, wall_ms - now_ms))
            for status in self._supervisor.statuses()
        ]
        if self._pipelines is not None:
            services.append(self._pipelines.status())
        return {
            "pid": os.getpid(),
            "mark": start_mark(os.getpid()) or "",
            "data": str(self._folder.path),
            "startedMs": self._started_ms,
            "atMs": wall_ms,
            "bootstrapServers": self._bootstrap_servers,
            "allUp": self._supervisor.all_up,
            "stopping": self._stopping.is_set(),
            "services": services,
            "messages": list(self._messages),
        }

    def _ending(self, fields: dict[str, Any]) -> dict[str, Any]:
        """The machine does not follow the stop, which takes no decisions."""
        if self._stopping.is_set():
            process = self._processes.get(fields["name"])
            is_over = process is None or process.returncode is not None
            fields |= {"state": "stopped", "pid": None} if is_over else {"state": "stopping"}
        return fields

    # The end.

    async def _stop(self) -> bool:
        """False if something had to be killed."""
        running = {
            name: process for name, process in self._processes.items() if process.returncode is None
        }
        if running:
            self._say("Stopping. A second Ctrl-C kills the services.")
        self._write_status()
        broker = running.pop(BROKER, None)
        in_order = await self._end(running, _SERVICE_STOP_S_MAX)
        if self._pipelines is not None:
            in_order &= await self._pipelines.stop(self._killing, self._say)
        if broker is not None:
            in_order &= await self._end({BROKER: broker}, _BROKER_STOP_S_MAX)
        self._say("The platform has stopped; all data is on disk.")
        self._view.show(self._status())
        return in_order

    async def _end(
        self, processes: dict[str, asyncio.subprocess.Process], seconds_max: float
    ) -> bool:
        for process in processes.values():
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
        waits = [asyncio.ensure_future(process.wait()) for process in processes.values()]
        killing = asyncio.ensure_future(self._killing.wait())
        deadline = time.monotonic() + seconds_max
        while any(not wait.done() for wait in waits) and not killing.done():
            left = deadline - time.monotonic()
            if left <= 0:
                break
            open_waits = [wait for wait in waits if not wait.done()]
            await asyncio.wait(
                [*open_waits, killing], timeout=left, return_when=asyncio.FIRST_COMPLETED
            )
        killing.cancel()
        late = [name for name, process in processes.items() if process.returncode is None]
        for name in late:
            self._say(f"Killing {self._services[name].title}, which has not stopped in time.")
            processes[name].kill()
        await asyncio.gather(*waits)
        self._write_status()
        return not late


def _as_fields(status: Status, offset_ms: int) -> dict[str, Any]:
    """For status.json: times of the wall clock."""
    fields = asdict(status)
    since_ms, next_ms = fields.pop("since_ms"), fields.pop("next_ms")
    fields["sinceMs"] = since_ms + offset_ms
    fields["nextMs"] = None if next_ms is None else next_ms + offset_ms
    return fields


def _monotonic_ms() -> int:
    return int(time.monotonic() * 1000)
