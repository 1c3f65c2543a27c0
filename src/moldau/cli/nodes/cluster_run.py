"""Starts, watches and stops the nodes of `moldau cluster`.

The output of each node goes to a log file. A node that ends by itself is reported, and the others
go on. With --restart it is started again after a pause; without, it is noticed when it was started
by hand. Either way its return is reported. Ctrl-C stops all nodes in order, also those started by
hand; a second Ctrl-C kills them. When the last node has ended, and none is to be restarted, so does
the run.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path

from moldau.cli.nodes.cluster_processes import AdoptedProcess, Child, running_nodes
from moldau.cli.nodes.machine.cluster_plan import NodePlan
from moldau.cli.nodes.machine.cluster_watch import Restarts
from moldau.cli.support.failures import Failure
from moldau.cli.support.output import print_now
from moldau.cli.support.parents import PARENT_VARIABLE
from moldau.installation import command

__all__ = ["ClusterRun"]

START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 30.0
FOLLOW_INTERVAL_S = 0.2
# How often to look whether a node that is down was started by hand.
RETURN_INTERVAL_S = 1.0
READY_INTERVAL_S = 0.05
# Long enough for a node that is stopping: a signal then would make it fail.
HURRY_AFTER_S = 1.0
READY = b" is up.\n"
_COLOURS = (36, 33, 32, 35, 34, 31)


class ClusterRun:
    """The processes of one cluster, from their start to their stop."""

    def __init__(
        self,
        nodes: Sequence[NodePlan],
        data: Path,
        *,
        command_of: Callable[[NodePlan, Path], list[str]],
        show_logs: bool = False,
        restarts: Restarts | None = None,
        running: Callable[[Path], dict[str, int]] = running_nodes,
        start_seconds_max: float = START_SECONDS_MAX,
        stop_seconds_max: float = STOP_SECONDS_MAX,
    ) -> None:
        self._nodes = nodes
        self._data = data
        self._command_of = command_of
        self._show_logs = show_logs
        self._restarts = restarts
        self._running = running
        self._start_seconds_max = start_seconds_max
        self._stop_seconds_max = stop_seconds_max
        self._children: dict[int, Child] = {}
        self._followers: list[asyncio.Task[None]] = []
        self._failed: set[int] = set()  # nodes that failed and were not restarted
        self._alive: set[int] = set()  # nodes that run or will be restarted
        self._none_left = asyncio.Event()
        self._stopping = asyncio.Event()
        self._killing = asyncio.Event()

    @property
    def pids(self) -> dict[int, int]:
        """Of every node that was started: its latest process."""
        return {node_id: child.process.pid for node_id, child in self._children.items()}

    async def serve(self, on_ready: Callable[[], None]) -> int:
        """Run until a signal or the last node's end; the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._on_signal)
        try:
            for node in self._nodes:
                await self._spawn(node)
            if await self._started():
                on_ready()
                await self._watch()
            code = await self._stop()
            await asyncio.gather(*self._followers)
            return code
        finally:
            for follower in self._followers:
                follower.cancel()
            for child in self._children.values():
                if child.process.returncode is None:
                    child.process.kill()
                    await child.process.wait()

    def _on_signal(self) -> None:
        if self._stopping.is_set():
            self._killing.set()
        self._stopping.set()

    # Start.

    async def _spawn(self, node: NodePlan) -> Child:
        log = self._data / f"{node.name}.log"
        loop = asyncio.get_running_loop()
        with log.open("ab") as output:
            # Before the child writes: it shares the position.
            log_start = output.tell()
            process = await asyncio.create_subprocess_exec(
                *self._command_of(node, self._data),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # Ctrl-C in a terminal reaches the whole process group; here nodes stop in order.
                start_new_session=True,
                env={**os.environ, PARENT_VARIABLE: str(os.getpid())},
            )
        child = Child(node, log, log_start, process, loop.time())
        self._children[node.node_id] = child
        if self._show_logs:
            self._followers.append(loop.create_task(_follow(child)))
        return child

    async def _started(self) -> bool:
        """Wait until every node serves; False when a signal came first."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._start_seconds_max
        waiting = list(self._children.values())
        while waiting and not self._stopping.is_set():
            for child in waiting:
                if child.process.returncode is not None:
                    shown = "\n".join(child.last_lines())
                    raise Failure(
                        f"{child.node.name} exited while starting:\n{shown}\n"
                        f"Its whole output is in {child.log}"
                    )
            if loop.time() > deadline:
                names = ", ".join(child.node.name for child in waiting)
                shown = "\n".join(waiting[0].last_lines())
                raise Failure(
                    f"{names} did not start within {self._start_seconds_max:.0f} s. The last lines "
                    f"of {waiting[0].log}:\n{shown}"
                )
            waiting = [child for child in waiting if READY not in child.output()]
            if waiting:
                await _first_of(self._stopping.wait(), seconds=READY_INTERVAL_S)
        return not self._stopping.is_set()

    # While it runs.

    async def _watch(self) -> None:
        """Report nodes that end and those that are back, until a signal comes or none is left."""
        self._alive = set(self._children)
        keepers = [asyncio.ensure_future(self._keep(child)) for child in self._children.values()]
        try:
            await _first_of(self._stopping.wait(), self._none_left.wait(), *map(_failure, keepers))
        finally:
            for keeper in keepers:
                keeper.cancel()
            ended = await asyncio.gather(*keepers, return_exceptions=True)
        for result in ended:
            if isinstance(result, BaseException) and not isinstance(result, asyncio.CancelledError):
                raise result

    async def _keep(self, child: Child) -> None:
        """One node, through all its ends and returns."""
        node = child.node
        while True:
            await child.process.wait()
            delay_s = self._delay_s(child)
            if delay_s is None:
                self._alive.discard(node.node_id)
            self._report_end(child, delay_s)
            if not self._alive:
                self._none_left.set()
            if delay_s is None:
                child = await self._returned(node)
            else:
                await asyncio.sleep(delay_s)
                child = await self._spawn(node)
                if not await self._is_ready(child):
                    continue
                self._failed.discard(node.node_id)
            self._alive.add(node.node_id)
            self._report(f"\n{node.name} is back on {node.address} (process {child.process.pid}).")

    def _delay_s(self, child: Child) -> float | None:
        """How long until the node is restarted; None if that is left to the user.

        A node that was stopped in order stays down.
        """
        if not child.process.returncode:
            return None
        self._failed.add(child.node.node_id)
        if self._restarts is None:
            return None
        ran_s = asyncio.get_running_loop().time() - child.started_s
        return self._restarts.delay_s(child.node.node_id, ran_s=ran_s)

    async def _is_ready(self, child: Child) -> bool:
        """Whether a node that was restarted serves; False if it ended instead."""
        while READY not in child.output():
            if child.process.returncode is not None:
                return False
            await asyncio.sleep(READY_INTERVAL_S)
        return True

    async def _returned(self, node: NodePlan) -> Child:
        """Wait until somebody has started the node again."""
        while True:
            await asyncio.sleep(RETURN_INTERVAL_S)
            if not await _listens(node):
                continue
            pid = (await asyncio.to_thread(self._running, self._data)).get(node.name)
            if pid is not None:
                break
        log = self._data / f"{node.name}.log"
        child = Child(
            node, log, log.stat().st_size, AdoptedProcess(pid), asyncio.get_running_loop().time()
        )
        self._children[node.node_id] = child
        return child

    def _report_end(self, child: Child, delay_s: float | None) -> None:
        name, code = child.node.name, child.process.returncode or 0
        how = (
            f"was killed by {signal.Signals(-code).name}"
            if code < 0
            else f"exited with code {code}"
        )
        if code == 0:
            how = "has stopped"
        lines = child.last_lines()
        self._report(f"\n{name} {how}." + (f" Its last output ({child.log}):" if lines else ""))
        for line in lines:
            self._report(line)
        others = len(self._alive - {child.node.node_id})
        if delay_s is not None:
            self._report(f"{name} will be restarted in {delay_s:.0f} s.")
        elif others:
            file = self._data / f"{name}.properties"
            given_up = code != 0 and self._restarts is not None
            again = "It failed too often and is not restarted any more. " if given_up else ""
            are = (
                "The other node keeps running."
                if others == 1
                else f"The other {others} nodes keep running."
            )
            self._report(f"{again}{are} To start it again: {command()} start {file}")

    def _report(self, text: str) -> None:
        print_now(text, to=sys.stderr)

    # The end.

    async def _stop(self) -> int:
        """Brokers first, then the controllers, which the brokers need to hand over; bounded."""
        running = [child for child in self._children.values() if child.process.returncode is None]
        if running:
            print_now("\nStopping. Ctrl-C again kills the nodes.")
        controllers = [child for child in running if child.node.controller_port is not None]
        brokers = [child for child in running if child.node.controller_port is None]
        majority = sum(node.controller_port is not None for node in self._nodes) // 2 + 1
        for child in reversed(brokers):
            await self._stop_together([child])
        while len(controllers) > majority:
            await self._stop_together([controllers.pop()])
        # From here on no other node can take anything over.
        await self._stop_together(controllers, majority)
        badly = any(child.process.returncode for child in running)
        if running and not badly:
            print_now("Moldau has stopped; all data is on disk.")
        return 1 if badly or self._failed else 0

    async def _stop_together(self, children: Sequence[Child], majority: int = 0) -> None:
        """Without a `majority` of controllers those that are left need not wait for anybody."""
        ended = self._all_end(children, majority)
        await _first_of(ended, self._killing.wait(), seconds=self._stop_seconds_max)
        for child in children:
            if child.process.returncode is None:
                reason = "" if self._killing.is_set() else " It did not stop in time."
                self._report(f"Killing {child.node.name}.{reason}")
                child.process.kill()
                await child.process.wait()

    async def _all_end(self, children: Sequence[Child], majority: int) -> None:
        running = {asyncio.ensure_future(child.process.wait()): child for child in children}
        _signal(children)
        try:
            while running:
                hurry = len(running) < majority
                done, _ = await asyncio.wait(
                    running,
                    timeout=HURRY_AFTER_S if hurry else None,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                for task in done:
                    del running[task]
                if hurry and not done:
                    # Asked a second time a node does not wait until others have taken over.
                    _signal(running.values())
                    majority = 0
        finally:
            for task in running:
                task.cancel()


def _signal(children: Iterable[Child]) -> None:
    for child in children:
        if child.process.returncode is None:
            child.process.send_signal(signal.SIGTERM)


async def _failure(keeper: asyncio.Future[None]) -> None:
    """Over when a keeper has failed: no other way out of it is regular."""
    await asyncio.wait([keeper])


async def _first_of(*waits: Awaitable[object], seconds: float | None = None) -> None:
    """Until one of `waits` is over or the time has passed."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


async def _listens(node: NodePlan) -> bool:
    host, _, port = node.address.rpartition(":")
    try:
        async with asyncio.timeout(RETURN_INTERVAL_S):
            _, writer = await asyncio.open_connection(host, int(port))
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


async def _follow(child: Child) -> None:
    """Show what a node logs, each line with the node's name before it."""
    colour = _COLOURS[child.node.node_id % len(_COLOURS)]
    prefix = f"{child.node.name} | "
    if sys.stdout.isatty():
        prefix = f"\x1b[{colour}m{prefix}\x1b[0m"
    with child.log.open("rb") as file:
        file.seek(child.log_start)
        rest, ended = b"", False
        while not ended:
            # Checked before reading, so that the last output is read after the process has ended.
            ended = child.process.returncode is not None
            *lines, rest = (rest + file.read()).split(b"\n")
            for line in lines:
                print_now(prefix + line.decode(errors="replace"))
            if not ended:
                await _first_of(child.process.wait(), seconds=FOLLOW_INTERVAL_S)
