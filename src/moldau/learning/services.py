"""Starts what an exercise needs, beside the reader's own broker, and stops it again.

A service is a process of the `moldau` command. It gets its usual port if that is free, else
another. It outlives the command that started it; `stop` ends it by its process id, after making
sure that the id still means the same process.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from moldau.learning.folder import CourseFolder, Started
from moldau.learning.machine.exercise import DEFAULT_PLACES
from moldau.spark.runtime.processes import end, is_running, start_mark

__all__ = ["CourseServices", "StartError", "environment_of"]

_START_SECONDS_MAX = 120.0
_STOP_SECONDS_MAX = 60.0
_DEPLOYMENT = "moldau-data-spark"
# Printed by every service when it is ready, after its addresses.
_READY = "Ctrl-C stops it."
_PORTS = {
    "broker": 9092,
    "cluster": 19092,
    "registry": 8081,
    "rest": 8082,
    "connect": 8083,
    "sql": 8088,
}
# Waits that are right for a server and too long for a reader.
_QUICK = (
    "group.initial.rebalance.delay.ms=0",
    "log.cleaner.backoff.ms=1000",
    "broker.session.timeout.ms=3000",
    "broker.heartbeat.interval.ms=500",
)


class StartError(Exception):
    """A service did not start; the text says where its log is."""


class CourseServices:
    """`own` is the address of the reader's broker, if one answers."""

    def __init__(
        self,
        folder: CourseFolder,
        *,
        own: str | None,
        say: Callable[[str], None],
    ) -> None:
        self._folder = folder
        self._own = own
        self._say = say

    def places(self) -> dict[str, str]:
        """The addresses that the texts of exercises mention."""
        running = self.running()
        found = {
            **DEFAULT_PLACES,
            **{name: each.place for name, each in running.items() if name in DEFAULT_PLACES},
        }
        if "broker" in running:
            found["bootstrap"] = running["broker"].place
            found["data"] = str(self._folder.path / "broker")
        elif self._own is not None:
            found["bootstrap"] = self._own
            found["data"] = _log_directory(self._own)
        found["cluster_data"] = str(self._folder.path / "cluster")
        return found

    def running(self) -> dict[str, Started]:
        kept = self._folder.services()
        return {name: each for name, each in kept.items() if is_running(each.pid, each.mark)}

    def ensure(self, names: Sequence[str]) -> None:
        """Starts those of `names` that do not run."""
        for name in names:
            running = self.running()
            if name in running or (name == "broker" and self._own is not None):
                continue
            if name == "spark":
                self._start_spark()
                continue
            self._folder.keep_services({**running, name: self._start(name)})

    def stop(self) -> None:
        """Stops all, those that depend on the broker first."""
        if (self._folder.work / _DEPLOYMENT).exists():
            self._say("stopping spark")
            self._spark("stop")
        for name, service in reversed(self.running().items()):
            self._say(f"stopping {name}")
            end(service.pid, service.mark, seconds_max=_STOP_SECONDS_MAX)
        self._folder.keep_services({})

    def node_pid(self, node: int) -> int | None:
        """The process of a node of the cluster, also of one that the reader has started again."""
        file = str(self._folder.path / "cluster" / f"node-{node}.properties")
        listed = subprocess.run(
            ["ps", "-axww", "-o", "pid=,command="], capture_output=True, text=True, check=False
        )
        for line in listed.stdout.splitlines():
            pid, _, command = line.strip().partition(" ")
            if file in command.split():
                return int(pid)
        return None

    def _start(self, name: str) -> Started:
        log = self._folder.path / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        port = _free_port(_PORTS[name])
        self._say(f"starting {name}")
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "moldau.cli", *self._command(name, port)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self._folder.work,
                start_new_session=True,
            )
        deadline = time.monotonic() + _START_SECONDS_MAX
        while _READY not in (text := log.read_text(errors="replace")):
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                last = " ".join(text.strip().splitlines()[-1:])
                raise StartError(f"{name} did not start: {last} (log: {log})")
            time.sleep(0.05)
        return Started(process.pid, start_mark(process.pid) or "", _place(name, text))

    def _command(self, name: str, port: int) -> list[str]:
        at = ["--port", str(port)]
        if name in ("broker", "cluster"):
            words = ["start" if name == "broker" else name, *at]
            words += ["--data", str(self._folder.path / name)]
            return [*words, *(word for each in _QUICK for word in ("--override", each))]
        return [name, "start", *at, "--bootstrap-server", self._bootstrap()]

    def _bootstrap(self) -> str:
        return self.places()["bootstrap"]

    def _start_spark(self) -> None:
        self._say("starting Spark, which takes half a minute")
        done = self._spark("start", "--bootstrap-server", self._bootstrap())
        if done.returncode != 0:
            raise StartError(f"Spark did not start: {done.stderr.strip()}")

    def _spark(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Exercises find this deployment: it has the default name in their folder."""
        return subprocess.run(
            [sys.executable, "-m", "moldau.cli", "spark", *words, "--data", _DEPLOYMENT],
            cwd=self._folder.work,
            capture_output=True,
            text=True,
            check=False,
        )


def _free_port(wanted: int) -> int:
    """The wanted one, or 0 if it or one of the next five is taken: a cluster needs six."""
    for port in range(wanted, wanted + 6 if wanted == _PORTS["cluster"] else wanted + 1):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                return 0
    return wanted


def _place(name: str, ready: str) -> str:
    """Where a service listens, by what it printed."""
    if name in ("broker", "cluster"):
        return ",".join(dict.fromkeys(re.findall(r"PLAINTEXT://([\w.:]+)", ready)))
    found = re.search(r"^  listening  (\S+?),?(?: |$)", ready, re.MULTILINE)
    return found[1] if found else DEFAULT_PLACES[name]


def _log_directory(bootstrap: str) -> str:
    """Where a broker keeps its log, by its own account."""
    from moldau.client import Admin, KafkaError

    try:
        with Admin(bootstrap_servers=bootstrap) as admin:
            node = admin.describe_cluster().nodes[0].id
            return next(iter(admin.describe_log_dirs([node])[node]))
    except (KafkaError, KeyError, IndexError, StopIteration):
        return DEFAULT_PLACES["data"]


def environment_of(places: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """For the commands of an exercise: they reach the same services, and find `moldau`."""
    programs = str(Path(sys.executable).parent)
    return {
        **environment,
        "PATH": os.pathsep.join((programs, environment.get("PATH", os.defpath))),
        "MOLDAU_BOOTSTRAP_SERVERS": places["bootstrap"],
        "MOLDAU_SCHEMA_REGISTRY": places["registry"],
    }
