"""`moldau start --spark`: a broker, the Spark server and the control loop of pipelines.

They start and stop together. The broker is a child process. It is stopped last: until then queries
can end in order. If the broker ends by itself, the rest is stopped too. A first Ctrl-C stops all in
order, a second one kills all three. None of them outlives the command, and if one had to be killed
the exit code is not 0.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from moldau.cli.nodes.configuration import DEFAULT_DATA
from moldau.cli.nodes.start import PARENT_VARIABLE
from moldau.cli.support.config_files import read_config_file
from moldau.cli.support.failures import Failure
from moldau.cli.support.output import print_now
from moldau.invariant import present

if TYPE_CHECKING:
    from moldau.spark.runtime.server import ConnectServer

__all__ = ["run_with_spark", "spark_address"]

_LISTENING = "  listening  "
_READY = "Ctrl-C stops it."
_STOP_SECONDS_MAX = 60.0
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
    with _interruptible():
        broker = _Broker([word for word in arguments.given if word != "--spark"])
        try:
            listeners = broker.wait_until_ready()
            if listeners is not None:
                _start_spark(server, listeners, config)
            code = broker.wait()
        except KeyboardInterrupt:
            code = 0
        finally:
            in_order = _stop(server, broker)
    return code or broker.code or (0 if in_order else 1)


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


def _start_spark(server: ConnectServer, listeners: str, config: Mapping[str, str]) -> None:
    from moldau.cli.pipelines.spark import start_all, status_lines, status_of
    from moldau.pipelines.errors import PipelineError
    from moldau.spark.runtime.errors import SparkRuntimeError

    try:
        given = config.get("bootstrap.servers")
        start_all(server, given or spark_address(listeners, secured=bool(config)), config)
    except (SparkRuntimeError, PipelineError) as error:
        raise Failure(str(error)) from None
    status = status_of(server)
    print("\n" + "\n".join(status_lines(status, now_ms=status["startedMs"])), flush=True)


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
    """`moldau start` in a process of its own, whose output is passed on."""

    def __init__(self, words: Sequence[str]) -> None:
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
        self._reader = threading.Thread(target=self._pass_on, daemon=True)
        self._reader.start()

    @property
    def code(self) -> int:
        return self._process.returncode or 0

    def _pass_on(self) -> None:
        for line in present(self._process.stdout, "the broker's output is a pipe"):
            print_now(line, end="")
            if line.startswith(_LISTENING):
                self._listeners = line.removeprefix(_LISTENING).strip()
            if line.strip() == _READY:
                self._decided.set()
        self._decided.set()

    def wait_until_ready(self) -> str | None:
        """Its listeners; None if it ended instead."""
        self._decided.wait()
        return self._listeners

    def wait(self) -> int:
        code = self._process.wait()
        self._reader.join()
        return code

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
