"""`moldau cluster`: several nodes on this machine as one cluster, for development.

The nodes are ordinary `moldau start FILE` processes; this one writes their files, formats their
folders once, watches them and stops them. Their output goes to a log file each. One that ends by
itself is reported, and the others go on. Ctrl-C stops all in order; a second one kills.
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import os
import random
import signal
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from moldau import __version__
from moldau.cli.configuration import DEFAULT_PORT, load_config, parse_overrides
from moldau.cli.failures import Failure, listen_problem, unusable_folder
from moldau.cli.machine.cluster_plan import CONTROLLERS_MAX, Layout, NodePlan, plan_nodes, ports_of
from moldau.cli.start import PARENT_VARIABLE, try_lines
from moldau.config.errors import ConfigError
from moldau.config.properties import dump_properties, load_properties

__all__ = ["ClusterRun", "prepare", "run_cluster"]

DEFAULT_CLUSTER_DATA = "moldau-cluster"
BROKERS_DEFAULT = 3
BROKERS_MAX = 100
START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 30.0
LAST_LINES = 12
FOLLOW_INTERVAL_S = 0.2
# Long enough for a node that is just ending: a signal then would make it end badly.
HURRY_AFTER_S = 1.0
READY = b" is up.\n"
_OWN_KEYS = (
    "process.roles",
    "node.id",
    "broker.id",
    "listeners",
    "advertised.listeners",
    "controller.listener.names",
    "controller.quorum.voters",
    "controller.quorum.bootstrap.servers",
    "log.dir",
    "log.dirs",
    "metadata.log.dir",
)
_COLOURS = (36, 33, 32, 35, 34, 31)


def run_cluster(arguments: argparse.Namespace) -> int:
    with ExitStack() as held:
        layout, nodes, data = prepare(arguments, held)
        run = ClusterRun(nodes, data, command_of=_command, show_logs=arguments.logs)
        try:
            return asyncio.run(
                run.serve(lambda: print(ready_text(layout, nodes, data), flush=True))
            )
        except OSError as error:
            raise Failure(f"cannot run the nodes: {error}") from None


# Before anything runs.


def prepare(arguments: argparse.Namespace, held: ExitStack) -> tuple[Layout, list[NodePlan], Path]:
    """Check everything, write the nodes' files and format folders that are new.

    The lock on the data folder lasts as long as `held`.
    """
    data = Path(os.path.abspath(arguments.data or DEFAULT_CLUSTER_DATA))
    overrides = _checked_overrides(arguments.override)
    _lock(data, held)
    layout = _layout(data, arguments.brokers)
    if arguments.replication is not None and not 1 <= arguments.replication <= layout.brokers:
        raise Failure(
            f"--replication {arguments.replication}: a cluster of {layout.brokers} can hold 1 to "
            f"{layout.brokers} replicas"
        )
    ports, controller_ports = _free_ports(arguments.port, layout)
    nodes = plan_nodes(
        ports,
        controller_ports,
        replication=arguments.replication or min(3, layout.brokers),
        data=str(data),
        overrides=overrides,
    )
    for node in nodes:
        load_config(node.properties)
    _format(data, layout, nodes)
    return layout, nodes, data


def _checked_overrides(texts: Sequence[str]) -> dict[str, str]:
    overrides = parse_overrides(texts)
    for key in overrides:
        if key in _OWN_KEYS:
            raise Failure(
                f"--override {key}: this differs from node to node and is set by `moldau cluster`. "
                "Use --port or --data, or start nodes with files of your own"
            )
    return overrides


def _lock(data: Path, held: ExitStack) -> None:
    if "," in str(data):
        raise Failure(f"--data {data}: the name of the data folder cannot have a comma")
    problem = unusable_folder(str(data))
    if problem is not None:
        raise Failure(problem)
    if (data / "meta.properties").exists():
        raise Failure(f"{data} holds the data of a single node. Choose another folder with --data")
    lock = held.enter_context((data / ".lock").open("w"))
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise Failure(
            f"{data} is in use by another `moldau cluster`. Stop it or choose another --data"
        ) from None


def _layout(data: Path, brokers: int | None) -> Layout:
    """What an earlier start fixed, or a new one."""
    wanted = BROKERS_DEFAULT if brokers is None else brokers
    if not 1 <= wanted <= BROKERS_MAX:
        raise Failure(f"--brokers {wanted}: choose 1 to {BROKERS_MAX}")
    file = data / "cluster.properties"
    if not file.exists():
        from moldau.cli.storage import new_uuid_text

        strays = sorted(data.glob("node-*/meta.properties"))
        if strays:
            raise Failure(
                f"{strays[0].parent} has data, but {file} is missing. Restore it or choose another "
                "--data"
            )
        controllers = min(wanted, CONTROLLERS_MAX)
        return Layout(cluster_id=new_uuid_text(), brokers=wanted, controllers=controllers)
    try:
        layout = Layout.from_properties(load_properties(file.read_text()))
    except (ValueError, ConfigError) as error:
        raise Failure(f"{file} is damaged: {error}. Restore it or choose another --data") from None
    if brokers is None or brokers == layout.brokers:
        return layout
    if brokers < layout.brokers:
        raise Failure(
            f"--brokers {brokers}: {data} has a cluster of {layout.brokers}, and the replicas on "
            f"the others would be missing. Start it with --brokers {layout.brokers} or choose "
            "another --data"
        )
    # The voters stay as they are; more brokers may join at any time.
    return replace(layout, brokers=brokers)


def _free_ports(first: int | None, layout: Layout) -> tuple[list[int], list[int]]:
    counts = {"brokers": layout.brokers, "controllers": layout.controllers}
    if first == 0:
        first = _free_range(layout.brokers + layout.controllers)
    first = DEFAULT_PORT if first is None else first
    last = first + layout.brokers + layout.controllers - 1
    if not 1 <= first <= last <= 65535:
        raise Failure(
            f"--port {first}: {layout.brokers} brokers and {layout.controllers} controllers take "
            f"the ports up to {last}; ports are between 1 and 65535"
        )
    ports, controller_ports = ports_of(first, **counts)
    for port in (*ports, *controller_ports):
        problem = listen_problem("127.0.0.1", port)
        if problem is not None:
            raise Failure(f"cannot listen on 127.0.0.1:{port}: {problem}")
    return ports, controller_ports


def _free_range(count: int) -> int:
    """The first of `count` consecutive ports that nobody uses now.

    Below those that systems give to outgoing connections: one of these could take the port of a
    node that is down for a while.
    """
    for _ in range(100):
        first = random.randrange(20_000, 32_000 - count)
        if not any(listen_problem("127.0.0.1", port) for port in range(first, first + count)):
            return first
    raise Failure(f"found no {count} free ports in a row. Choose them with --port")


def _format(data: Path, layout: Layout, nodes: Sequence[NodePlan]) -> None:
    """Folders are formatted once; one that was and is gone is never replaced by an empty one."""
    from moldau.cli.storage import format_folders

    new = [node for node in nodes if not (data / node.name / "meta.properties").exists()]
    for node in new:
        if node.node_id <= layout.formatted:
            raise Failure(
                f"the data of {node.name} is missing in {data}. Restore the folder, or begin anew "
                f"without all of {data}"
            )
    _write(data / "cluster.properties", layout.to_properties())
    for node in nodes:
        _write(data / f"{node.name}.properties", node.properties)
    for node in new:
        format_folders(load_config(node.properties), layout.cluster_id)
    formatted = replace(layout, formatted=len(nodes))
    _write(data / "cluster.properties", formatted.to_properties())


def _write(path: Path, properties: Mapping[str, str]) -> None:
    text = "# Written by `moldau cluster` at every start.\n" + dump_properties(properties)
    partial = path.with_name(f"{path.name}.tmp")
    try:
        partial.write_text(text)
        partial.replace(path)
    except OSError as error:
        raise Failure(f"cannot write {path}: {error.strerror}") from None


def ready_text(layout: Layout, nodes: Sequence[NodePlan], data: Path) -> str:
    """What is up, lines to try it, and how to stop it."""
    count = len(nodes)
    first = nodes[0].properties
    replicas = first["default.replication.factor"]
    lines = [
        f"Moldau {__version__}: a cluster of {count} is up.",
        f"  cluster    {layout.cluster_id}",
        *(
            f"  node {node.node_id:<5} PLAINTEXT://{node.address} ({node.roles.replace(',', ', ')})"
            for node in nodes
        ),
        f"  data       {data}",
        f"  logs       {data}/node-*.log",
        f"  replicas   {replicas} of every topic; acks=all waits for those in sync, at least "
        f"{first['min.insync.replicas']}",
        "",
        "Try it:",
        *try_lines(",".join(node.address for node in nodes[:CONTROLLERS_MAX])),
        "",
        "Ctrl-C stops it.",
    ]
    return "\n".join(lines)


# While it runs.


def _command(node: NodePlan, data: Path) -> list[str]:
    return [sys.executable, "-m", "moldau.cli", "start", str(data / f"{node.name}.properties")]


@dataclass(slots=True)
class _Child:
    node: NodePlan
    log: Path
    log_start: int  # what is before it in the file is of earlier starts
    process: asyncio.subprocess.Process

    def output(self) -> bytes:
        with self.log.open("rb") as file:
            file.seek(self.log_start)
            return file.read()

    def last_lines(self) -> str:
        lines = self.output().decode(errors="replace").splitlines()[-LAST_LINES:]
        return "\n".join(f"  | {line}" for line in lines)


class ClusterRun:
    """The processes of one cluster, from their start to their stop."""

    def __init__(
        self,
        nodes: Sequence[NodePlan],
        data: Path,
        *,
        command_of: Callable[[NodePlan, Path], list[str]],
        show_logs: bool = False,
        start_seconds_max: float = START_SECONDS_MAX,
        stop_seconds_max: float = STOP_SECONDS_MAX,
    ) -> None:
        self._nodes = nodes
        self._data = data
        self._command_of = command_of
        self._show_logs = show_logs
        self._start_seconds_max = start_seconds_max
        self._stop_seconds_max = stop_seconds_max
        self._children: list[_Child] = []
        self._stopping = asyncio.Event()
        self._killing = asyncio.Event()

    @property
    def pids(self) -> dict[int, int]:
        """Of every node that was started."""
        return {child.node.node_id: child.process.pid for child in self._children}

    async def serve(self, on_ready: Callable[[], None]) -> int:
        """Run until a signal or the last node's end; the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._on_signal)
        followers: list[asyncio.Task[None]] = []
        try:
            for node in self._nodes:
                self._children.append(await self._spawn(node))
            if self._show_logs:
                followers = [loop.create_task(_follow(child)) for child in self._children]
            if await self._started():
                on_ready()
                await self._watch()
            code = await self._stop()
            await asyncio.gather(*followers)
            return code
        finally:
            for follower in followers:
                follower.cancel()
            for child in self._children:
                if child.process.returncode is None:
                    child.process.kill()
                    await child.process.wait()

    def _on_signal(self) -> None:
        if self._stopping.is_set():
            self._killing.set()
        self._stopping.set()

    async def _spawn(self, node: NodePlan) -> _Child:
        log = self._data / f"{node.name}.log"
        with log.open("ab") as output:
            # Before the child writes: it shares the position.
            log_start = output.tell()
            process = await asyncio.create_subprocess_exec(
                *self._command_of(node, self._data),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # Ctrl-C in a terminal reaches all of a group at once; here one after the other.
                start_new_session=True,
                env={**os.environ, PARENT_VARIABLE: str(os.getpid())},
            )
            return _Child(node, log, log_start, process)

    async def _started(self) -> bool:
        """Wait until every node serves; False when a signal came first."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._start_seconds_max
        waiting = list(self._children)
        while waiting and not self._stopping.is_set():
            for child in waiting:
                if child.process.returncode is not None:
                    raise Failure(
                        f"{child.node.name} ended at its start:\n{child.last_lines()}\n"
                        f"All of its output is in {child.log}"
                    )
            if loop.time() > deadline:
                names = ", ".join(child.node.name for child in waiting)
                raise Failure(
                    f"{names} did not start within {self._start_seconds_max:.0f} s. The last lines "
                    f"of {waiting[0].log}:\n{waiting[0].last_lines()}"
                )
            waiting = [child for child in waiting if READY not in child.output()]
            if waiting:
                await _first_of(self._stopping.wait(), seconds=0.05)
        return not self._stopping.is_set()

    async def _watch(self) -> None:
        """Report nodes that end, until a signal comes or none is left."""
        ends = {asyncio.ensure_future(child.process.wait()): child for child in self._children}
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            while ends and not stopping.done():
                done, _ = await asyncio.wait([stopping, *ends], return_when=asyncio.FIRST_COMPLETED)
                for task in done - {stopping}:
                    self._report_end(ends.pop(task), others=len(ends))
        finally:
            stopping.cancel()
            for task in ends:
                task.cancel()

    def _report_end(self, child: _Child, *, others: int) -> None:
        code = child.process.returncode or 0
        how = (
            f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        )
        if code == 0:
            how = "has stopped"
        file = self._data / f"{child.node.name}.properties"
        print(f"\n{child.node.name} {how}. Its last lines ({child.log}):", file=sys.stderr)
        print(child.last_lines(), file=sys.stderr)
        if others:
            print(
                f"The other {others} go on. To start it again: moldau start {file}",
                file=sys.stderr,
            )
        sys.stderr.flush()

    async def _stop(self) -> int:
        """Brokers first, then the controllers, which the brokers need to hand over; bounded."""
        running = [child for child in self._children if child.process.returncode is None]
        if running:
            print("\nStopping. Ctrl-C again kills the nodes.", flush=True)
        controllers = [child for child in running if child.node.controller_port is not None]
        brokers = [child for child in running if child.node.controller_port is None]
        majority = sum(node.controller_port is not None for node in self._nodes) // 2 + 1
        for child in reversed(brokers):
            await self._stop_together([child])
        while len(controllers) > majority:
            await self._stop_together([controllers.pop()])
        # From here on there is nobody to hand anything over to.
        await self._stop_together(controllers, majority)
        codes = [child.process.returncode for child in self._children]
        if running and not any(child.process.returncode for child in running):
            print("Moldau has stopped; everything is on disk.", flush=True)
        return 0 if not any(codes) else 1

    async def _stop_together(self, children: Sequence[_Child], majority: int = 0) -> None:
        """Without a `majority` of controllers those that are left need not wait for anybody."""
        ended = self._all_end(children, majority)
        await _first_of(ended, self._killing.wait(), seconds=self._stop_seconds_max)
        for child in children:
            if child.process.returncode is None:
                reason = "" if self._killing.is_set() else " It did not stop in time."
                print(f"Killing {child.node.name}.{reason}", file=sys.stderr, flush=True)
                child.process.kill()
                await child.process.wait()

    async def _all_end(self, children: Sequence[_Child], majority: int) -> None:
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


def _signal(children: Iterable[_Child]) -> None:
    for child in children:
        if child.process.returncode is None:
            child.process.send_signal(signal.SIGTERM)


async def _first_of(*waits: Awaitable[object], seconds: float) -> None:
    """Until one of `waits` is over or the time has passed."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


async def _follow(child: _Child) -> None:
    """Show what a node logs, each line with the node's name before it."""
    colour = _COLOURS[child.node.node_id % len(_COLOURS)]
    prefix = f"{child.node.name} | "
    if sys.stdout.isatty():
        prefix = f"\x1b[{colour}m{prefix}\x1b[0m"
    with child.log.open("rb") as file:
        file.seek(child.log_start)
        rest, ended = b"", False
        while not ended:
            # Asked before reading: what it wrote last is read after its end.
            ended = child.process.returncode is not None
            *lines, rest = (rest + file.read()).split(b"\n")
            for line in lines:
                print(prefix + line.decode(errors="replace"), flush=True)
            if not ended:
                await _first_of(child.process.wait(), seconds=FOLLOW_INTERVAL_S)
