"""`moldau start --spark`: a broker, the Spark server and the control loop of pipelines.

They start and stop together, and are kept running meanwhile: `cli/nodes/machine/supervision.py`
decides what is started again. The broker is a child process. It is stopped last: until then queries
can end in order. A first Ctrl-C stops all in order, a second one kills all three. None of them
outlives the command, and if one had to be killed the exit code is not 0.

Invariants: one such command runs per directory, as the owner of the deployment; a command that is
refused, or that fails before everything is up, stops only what it has started itself. If the
command is killed, the broker ends by a signal of the system and the control loop ends Spark.
"""

from __future__ import annotations

import argparse
import os
import queue
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from moldau.cli.nodes.configuration import DEFAULT_DATA
from moldau.cli.nodes.machine import supervision
from moldau.cli.support.config_files import read_config_file
from moldau.cli.support.failures import Failure
from moldau.cli.support.output import print_now
from moldau.cli.support.parents import PARENT_VARIABLE
from moldau.cli.support.running import Announcement
from moldau.invariant import present
from moldau.pipelines.control.folder import ControlFolder, Lock

if TYPE_CHECKING:
    from moldau.spark.runtime.server import ConnectServer

__all__ = ["look", "run_with_spark", "spark_address"]

_LISTENING = "  listening  "
_READY = "Ctrl-C stops it."
_STOP_SECONDS_MAX = 60.0
_LOOP_SECONDS_MAX = 30.0
_LOOK_SECONDS = 1.0
_PROGRESS_SECONDS = 5.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_with_spark(arguments: argparse.Namespace) -> int:
    from moldau.spark.runtime.errors import SparkRuntimeError, require
    from moldau.spark.runtime.server import ConnectServer

    try:
        # Report what is missing before anything runs.
        require("pyspark")
        server = ConnectServer(_folder(arguments))
    except SparkRuntimeError as error:
        raise Failure(str(error)) from None
    config = read_config_file(arguments.command_config) if arguments.command_config else {}
    folder = ControlFolder(server.places.folder)
    with _interruptible(), _owning(folder):
        return _Deployment(server, folder, config).run(
            [word for word in arguments.given if word != "--spark"],
            data=None if arguments.file is not None else arguments.data or DEFAULT_DATA,
        )


@contextmanager
def _owning(folder: ControlFolder) -> Iterator[None]:
    lock: Lock | None = folder.own()
    if lock is None:
        by = "" if folder.owner is None else f" (process {folder.owner})"
        raise Failure(
            f"`moldau start --spark` is running with {folder.path} already{by}. Stop it first, or "
            "choose another directory and port: --data DIR --port P"
        )
    try:
        yield
    finally:
        folder.disown(lock)


class _Deployment:
    """One broker, with one Spark server and one control loop."""

    def __init__(
        self, server: ConnectServer, folder: ControlFolder, config: Mapping[str, str]
    ) -> None:
        self._server = server
        self._folder = folder
        self._config = config
        self._bootstrap = ""
        self._words: list[str] = []
        self._events: queue.Queue[supervision.Event] = queue.Queue()
        self._announcement = Announcement(os.environ)

    def run(self, words: Sequence[str], *, data: str | None) -> int:
        """Until a signal, or until the broker is stopped by another command.

        `data` is the broker's data directory; None if a configuration file names it.
        """
        self._words = list(words)
        broker = self._broker = _Broker(words, self._events, first=True)
        is_up = in_order = False
        try:
            listeners = broker.wait_until_ready()
            if listeners is not None:
                if data is not None:
                    # Started again it has the same port, also if it was chosen by the system.
                    self._words = _with_port(words, listeners)
                self._announce(listeners, data)
                self._start_spark(listeners)
                is_up = True
                self._supervise()
        except KeyboardInterrupt:
            pass
        finally:
            if is_up:
                in_order = _stop(self._server, self._broker)
            else:
                broker.stop()
            self._announcement.withdraw()
        return self._broker.code or (0 if in_order or not is_up else 1)

    def _announce(self, listeners: str, data: str | None) -> None:
        plain = [one for one in listeners.split(", ") if one.startswith("PLAINTEXT://")]
        self._announcement.make(
            address=spark_address(listeners, secured=False) if plain else None,
            data=os.path.abspath(data or "."),
            spark=str(self._folder.path),
        )

    def _start_spark(self, listeners: str) -> None:
        from moldau.cli.pipelines.spark import start_all, status_lines, status_of, stop_all
        from moldau.pipelines import daemon
        from moldau.pipelines.errors import PipelineError
        from moldau.spark.runtime.errors import SparkRuntimeError

        given = self._config.get("bootstrap.servers")
        self._bootstrap = given or spark_address(listeners, secured=bool(self._config))
        found = self._adopted()
        try:
            with _progress("Starting Spark", log=self._server.places.log):
                start_all(self._server, self._bootstrap, self._config)
        except BaseException as error:
            if found == (None, None):
                stop_all(self._server)
            elif found[0] is None:
                daemon.stop(self._folder.path)
            if isinstance(error, SparkRuntimeError | PipelineError):
                raise Failure(str(error)) from None
            raise
        status = status_of(self._server)
        lines = status_lines(status, now_ms=int(time.time() * 1000))
        print_now("\n" + "\n".join([*lines, "", "Ctrl-C stops all of it."]))

    def _adopted(self) -> tuple[int | None, int | None]:
        """The processes of the control loop and of Spark that an earlier command has left."""
        seen = self._look()
        for name, pid in (("Spark", seen.spark), ("The control loop", seen.loop)):
            if pid is not None:
                print_now(f"{name} of {self._folder.path} is running (process {pid}): using it.")
        return seen.loop, seen.spark

    def _supervise(self) -> None:
        """Until the broker is stopped by another command."""
        supervisor = supervision.Supervisor(
            random.SystemRandom(), self._look(), now_ms=_monotonic_ms()
        )
        while True:
            try:
                event = self._events.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                event = self._look()
            for effect in supervisor.step(event, _monotonic_ms()):
                match effect:
                    case supervision.Say(text):
                        print_now(f"{time.strftime('%H:%M:%S')} {text}")
                    case supervision.StartBroker():
                        self._broker = _Broker(self._words, self._events, first=False)
                    case supervision.StartLoop():
                        self._start_loop()
                    case supervision.End():
                        return

    def _start_loop(self) -> None:
        from moldau.pipelines import daemon
        from moldau.pipelines.errors import PipelineError

        try:
            daemon.ensure_running(
                self._folder.path,
                self._bootstrap,
                config=self._config,
                keep_server=True,
                timeout=_LOOP_SECONDS_MAX,
            )
        except (PipelineError, OSError) as error:
            self._events.put(supervision.LoopFailed(" ".join(str(error).split())))

    def _look(self) -> supervision.Seen:
        return look(self._server, self._folder)


def look(server: ConnectServer, folder: ControlFolder) -> supervision.Seen:
    """The processes of a deployment that run now; of Spark once it answers."""
    from moldau.spark.runtime.processes import is_running
    from moldau.spark.runtime.state_files import read_state

    state = read_state(server.places)
    spark = None
    if state is not None and state.ready and is_running(state.pid, state.mark):
        spark = state.pid
    loop = None
    if folder.is_locked():
        heartbeat = folder.heartbeat()
        if heartbeat is not None and is_running(heartbeat.pid, heartbeat.mark):
            loop = heartbeat.pid
    return supervision.Seen(loop=loop, spark=spark, wanted=folder.keep_server)


def _with_port(words: Sequence[str], listeners: str) -> list[str]:
    """The words of the command, with the port that the broker has."""
    _, _, port = listeners.split(", ")[0].rpartition(":")
    kept = [
        word
        for index, word in enumerate(words)
        if not word.startswith("--port=") and "--port" not in words[max(0, index - 1) : index + 1]
    ]
    return [*kept, "--port", port]


@contextmanager
def _progress(what: str, *, log: Path) -> Iterator[None]:
    """Prints ever more seldom that something is still going on, and for how long."""
    began = time.monotonic()
    over = threading.Event()
    print_now(f"\n{what}, which takes 10 to 30 seconds (log: {log}) ...")

    def report() -> None:
        pause = _PROGRESS_SECONDS
        while not over.wait(pause):
            elapsed = time.monotonic() - began
            print_now(f"  ... {elapsed:.0f} s")
            pause = max(_PROGRESS_SECONDS, elapsed / 2)

    reporter = threading.Thread(target=report, daemon=True)
    reporter.start()
    try:
        yield
    finally:
        over.set()
        reporter.join()


def _monotonic_ms() -> int:
    return int(time.monotonic() * 1000)


def _folder(arguments: argparse.Namespace) -> Path:
    """Beside the broker's data directory, in which Kafka takes every directory for a partition; if
    a configuration file names the data directory, the default of `moldau spark`."""
    if arguments.file is not None:
        from moldau.spark.runtime.places import DEFAULT_FOLDER

        return Path(DEFAULT_FOLDER)
    data = Path(arguments.data or DEFAULT_DATA)
    return data.with_name(f"{data.name}-spark")


def spark_address(listeners: str, *, secured: bool) -> str:
    """The address for Spark among the broker's listeners, as `moldau start` prints them: the first
    one if there are settings for a `secured` one."""
    for listener in listeners.split(", "):
        protocol, _, address = listener.partition("://")
        if secured or protocol == "PLAINTEXT":
            host, _, port = address.rpartition(":")
            return f"127.0.0.1:{port}" if host in ("", "0.0.0.0", "[::]") else address
    raise Failure(
        f"--spark needs a PLAINTEXT listener, and there is only {listeners}. Give the settings of "
        "a client for it: --command-config FILE"
    )


def _stop(server: ConnectServer, broker: _Broker) -> bool:
    """Queries and server first, then the broker; a second signal kills what is left.

    False if something had to be killed.
    """
    from moldau.cli.pipelines.spark import stop_all
    from moldau.pipelines import daemon
    from moldau.pipelines.errors import PipelineError
    from moldau.spark.runtime.errors import SparkRuntimeError

    in_order = False
    try:
        stop_all(server)
        in_order = True
    except (SparkRuntimeError, PipelineError) as error:
        print(f"moldau: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        server.kill()
        broker.kill()
        daemon.kill(server.places.folder)
    broker.stop()
    return in_order


@contextmanager
def _interruptible() -> Iterator[None]:
    """All signals that mean an end arrive as KeyboardInterrupt."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Broker:
    """`moldau start` in a process of its own. The output of the `first` one is passed on; of later
    ones only what it writes to standard error, because they are reported in one line."""

    def __init__(
        self, words: Sequence[str], events: queue.Queue[supervision.Event], *, first: bool
    ) -> None:
        self._first = first
        self._events = events
        self._process = subprocess.Popen(
            [sys.executable, "-m", "moldau.cli", "start", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            # Ctrl-C in a terminal reaches the whole process group; here they stop in order.
            start_new_session=True,
            env={**os.environ, PARENT_VARIABLE: str(os.getpid()), "PYTHONUNBUFFERED": "1"},
        )
        self._listeners: str | None = None
        self._decided = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def code(self) -> int:
        """The exit code of a shell: that of a process that was killed is not 0 either."""
        code = self._process.returncode or 0
        return code if code >= 0 else 128 - code

    def _read(self) -> None:
        has_banner = self._first
        for line in present(self._process.stdout, "the broker's output is a pipe"):
            if line.startswith(_LISTENING):
                self._listeners = line.removeprefix(_LISTENING).strip()
            if line.strip() == _READY:
                # All of it is stopped so, which is said when all of it is up.
                self._on_ready()
                has_banner = True
            elif has_banner:
                print_now(line, end="")
        self._decided.set()
        self._events.put(supervision.BrokerEnded(self._process.wait()))

    def _on_ready(self) -> None:
        if not self._first:
            self._events.put(supervision.BrokerReady())
        self._decided.set()

    def wait_until_ready(self) -> str | None:
        """Its listeners; None if it ended instead."""
        self._decided.wait()
        return self._listeners

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_STOP_SECONDS_MAX)
            except (subprocess.TimeoutExpired, KeyboardInterrupt):
                self.kill()
        self._reader.join()

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
