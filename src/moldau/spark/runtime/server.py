"""The Connect server of a deployment folder: started once, found again by anybody.

What always holds: at most one server runs from a folder (starts and stops hold its lock); the
server is in a session of its own and outlives who started it; `server.json` names the process by
id and time of start, so that no other process is taken for it. Started again, it listens on the
port it had before, if that is free.
"""

from __future__ import annotations

import fcntl
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from moldau import __version__
from moldau.invariant import present
from moldau.spark.runtime import launcher, probe, processes
from moldau.spark.runtime.errors import (
    ServerNotRunning,
    ServerStartError,
    SparkRuntimeError,
    require,
)
from moldau.spark.runtime.java import LAUNCHER_OPTIONS, JavaHome, find_java
from moldau.spark.runtime.machine import logs
from moldau.spark.runtime.machine.command import (
    Environment,
    connector_of,
    log_settings,
    server_conf,
    spark_submit,
)
from moldau.spark.runtime.machine.settings import ServerSettings, ServerState
from moldau.spark.runtime.places import DEFAULT_FOLDER, Places, cache_folder, spark_home

__all__ = ["ConnectServer"]

# A server that ends is noticed at once; this is for one that hangs, on however busy a machine.
START_SECONDS_MAX = 240.0
STOP_SECONDS_MAX = 30.0
_ASK_SECONDS = 20.0
_POLL_SECONDS = 0.05
# Long after Spark itself has ended workers without work, which it does after a minute.
_DAEMON_IDLE_SECONDS = 300.0
# Another program may take a port that was free when we looked.
_PORT_TRIES = 3
# What would make Spark's scripts think that they are clients, or another Spark's.
_NOT_INHERITED = (
    "MASTER",
    "SPARK_API_MODE",
    "SPARK_CONNECT_MODE_ENABLED",
    "SPARK_HOME",
    "SPARK_LOCAL_REMOTE",
    "SPARK_REMOTE",
)


class ConnectServer:
    """One folder's server. Without settings it has those of its last start, or the defaults."""

    def __init__(
        self,
        folder: str | os.PathLike[str] = DEFAULT_FOLDER,
        *,
        master: str | None = None,
        conf: Mapping[str, str] | None = None,
        packages: Sequence[str] | None = None,
        connector: str | None = None,
        host: str | None = None,
        port: int | None = None,
        ship: Sequence[str] | None = None,
        start_seconds_max: float = START_SECONDS_MAX,
        stop_seconds_max: float = STOP_SECONDS_MAX,
    ) -> None:
        self.places = Places(folder)
        self._start_seconds_max = start_seconds_max
        self._stop_seconds_max = stop_seconds_max
        given: dict[str, Any] = {
            "master": master,
            "conf": None if conf is None else {key: str(value) for key, value in conf.items()},
            "packages": None if packages is None else tuple(packages),
            "connector": connector,
            "host": host,
            "port": port,
            "ship": None if ship is None else tuple(ship),
        }
        self.settings = replace(
            _read_settings(self.places),
            **{name: value for name, value in given.items() if value is not None},
        )
        self._state: ServerState | None = None
        #: Lines that a user should see: what was left out and why.
        self.notices: list[str] = []

    # What it is.

    @property
    def state(self) -> ServerState:
        if self._state is None and not self.attach():
            raise ServerNotRunning(
                f"no Spark server runs from {self.places.folder}. Start one: moldau spark start "
                f"--data {self.places.folder}"
            )
        return present(self._state, "a server that runs has a state")

    @property
    def url(self) -> str:
        """What a session connects to, sc://..."""
        return self.state.url

    @property
    def ui_url(self) -> str | None:
        return self.state.ui

    @property
    def pid(self) -> int:
        return self.state.pid

    @property
    def log_path(self) -> Path:
        return self.places.log

    def alive(self) -> bool:
        """Whether the process that `start` or `attach` found runs and listens."""
        state = self._state
        if state is None:
            return self.attach()
        host, port = _address(state.url)
        return processes.is_running(state.pid, state.mark) and probe.listens(host, port)

    def answers(self, *, seconds_max: float = _ASK_SECONDS) -> bool:
        """Whether it also answers a question, which a server that hangs does not."""
        host, port = _address(self.state.url)
        return probe.answers(host, port, seconds_max=seconds_max) is not None

    def status(self) -> dict[str, Any]:
        """For people and scripts; `running` is False where there is no server."""
        running = self.alive()
        told: dict[str, Any] = {"running": running, "folder": str(self.places.folder)}
        if running:
            state = self.state
            told |= {
                "pid": state.pid,
                "url": state.url,
                "ui": state.ui,
                "master": state.master,
                "connector": state.connector,
                "startedMs": state.started_ms,
                "versions": state.versions,
            }
        return told | {"log": str(self.places.log), "events": str(self.places.events)}

    # Its life.

    def attach(self) -> bool:
        """Take the server that runs from the folder, whoever started it; False if none does.

        One that another process is just starting is waited for.
        """
        state = _read_state(self.places)
        if state is not None and not state.ready and processes.is_running(state.pid, state.mark):
            with self._locked():
                state = _read_state(self.places)
        if state is None or not state.ready or not processes.is_running(state.pid, state.mark):
            self._state = None
            return False
        self._state = state
        return True

    def start(self) -> ConnectServer:
        """Start the server unless it runs already; returns when it answers."""
        if self.attach():
            return self
        self.places.make()
        with self._locked():
            if self._attach_locked():
                return self
            self.tidy()
            self._start()
        return self

    def remember(self) -> None:
        """Keep the settings for the next start."""
        _write(self.places.settings, self.settings.to_json())

    def stop(self) -> bool:
        """Stop it, and what it left behind; False if there was none."""
        if not self.places.state.exists():
            return False
        with self._locked():
            state = _read_state(self.places)
            self._state = None
            if state is None:
                return False
            ran = processes.is_running(state.pid, state.mark)
            processes.end(state.pid, state.mark, seconds_max=self._stop_seconds_max)
            self.places.state.unlink(missing_ok=True)
            return ran

    def kill(self) -> None:
        """Without waiting for anything, also not for a start by somebody else."""
        state = _read_state(self.places)
        if state is not None:
            processes.end(state.pid, state.mark, seconds_max=0)

    def __enter__(self) -> ConnectServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def tidy(self) -> None:
        """Delete the oldest of the event log; the server's own and those of earlier ones. End what
        sessions that are over have left in memory."""
        from moldau.spark.runtime.events import trim_events

        trim_events(self.places.events)
        if self._state is not None:
            processes.end_idle_daemons(self._state.pid, seconds_min=_DAEMON_IDLE_SECONDS)

    # How it starts.

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Waits for another process that starts or stops the server, for as long as these may."""
        self.places.folder.mkdir(parents=True, exist_ok=True)
        with self.places.lock.open("a") as lock:
            deadline = time.monotonic() + self._start_seconds_max + self._stop_seconds_max
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError:
                    if time.monotonic() > deadline:
                        raise SparkRuntimeError(
                            f"another process has been starting or stopping the Spark server of "
                            f"{self.places.folder} for too long. `moldau spark status` tells more"
                        ) from None
                    time.sleep(_POLL_SECONDS)
            yield

    def _attach_locked(self) -> bool:
        """With the lock held a server that is not ready is one whose starter died."""
        state = _read_state(self.places)
        if state is None:
            return False
        if not processes.is_running(state.pid, state.mark):
            processes.end_strays(state.pid, state.mark)
            return False
        if not state.ready:
            state = self._wait_until_ready(state, log_start=0)
            _write(self.places.state, state.to_json())
        self._state = state
        return True

    def _start(self) -> None:
        version = str(require("pyspark").__version__)
        java = find_java(os.environ, cache_folder(os.environ))
        automatic = self.settings.port == 0
        if not automatic and probe.listens(_bare(self.settings.host), self.settings.port):
            raise _port_in_use(self.settings.port)
        for attempt in range(_PORT_TRIES):
            port = self.settings.port or _free_port(0 if attempt else self.settings.last_port)
            try:
                self._start_on(port, java, version)
                return
            except _PortTaken as taken:
                if not automatic or attempt + 1 == _PORT_TRIES:
                    raise _port_in_use(port) from taken

    def _start_on(self, port: int, java: JavaHome, version: str) -> None:
        places, settings = self.places, self.settings
        jars, packages = self._connector_jars(version)
        environment = Environment(
            cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2,
            memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            port=port,
            jars=jars,
            shipped=self._shipped(),
        )
        conf = server_conf(settings, places, environment)
        home = spark_home()
        command = spark_submit(str(home / "bin" / "spark-submit"), settings, conf, packages)
        self.settings = replace(settings, last_port=port)
        self.remember()
        _write(places.log_settings, log_settings(places))
        if places.output.exists():
            places.output.replace(places.output.with_name("server.out.1"))
        log_start = places.log.stat().st_size if places.log.exists() else 0
        process = _spawn(command, places, self._environ(java, home, environment))
        state = ServerState(
            pid=process.pid,
            mark=processes.start_mark(process.pid) or "ended",
            url=f"sc://{_reachable(settings.host)}:{port}",
            master=settings.master,
            log=str(places.log),
            connector=connector_of(settings, jars),
            started_ms=int(time.time() * 1000),
            versions={
                "java": str(java),
                "python": sys.version.split()[0],
                "moldau": __version__,
                "spark": version,
            },
        )
        # Before it is ready: should this process die now, the next one finds the server.
        _write(places.state, state.to_json())
        try:
            state = self._wait_until_ready(state, log_start=log_start)
        except BaseException:
            processes.end(state.pid, state.mark, seconds_max=0)
            places.state.unlink(missing_ok=True)
            raise
        _write(places.state, state.to_json())
        self._state = state

    def _connector_jars(self, spark_version: str) -> tuple[list[str], list[str]]:
        """The jars of Spark's own connector, and what Spark itself has to resolve."""
        packages = list(self.settings.packages)
        named = connector_of(self.settings, ()) == "kafka"
        if self.settings.connector == "moldau" or named:
            return [], packages
        from moldau.spark.runtime import connector
        from moldau.spark.runtime.errors import ConnectorUnavailable

        cache = cache_folder(os.environ)
        jars = connector.cached(cache, spark_version)
        if not jars and self.settings.connector == "kafka":
            try:
                jars = connector.fetch(cache, spark_version)
            except ConnectorUnavailable as error:
                self.notices.append(f"{error}. Topics are read by moldau's own source")
        return [str(jar) for jar in jars], packages

    def _shipped(self) -> Any:
        if self.settings.is_local:
            return None
        from moldau.spark.runtime.shipping import ship

        return ship(cache_folder(os.environ), extra=self.settings.ship)

    def _environ(self, java: JavaHome, home: Path, environment: Environment) -> dict[str, str]:
        environ = {key: value for key, value in os.environ.items() if key not in _NOT_INHERITED}
        environ |= {"JAVA_HOME": java.home, "SPARK_HOME": str(home)}
        environ.setdefault("SPARK_LAUNCHER_OPTS", LAUNCHER_OPTIONS)
        python = self.settings.conf.get("spark.pyspark.python")
        if python is None:
            python = sys.executable
            if self.settings.is_local:
                # Executors elsewhere do not have this folder.
                python = launcher.install(self.places.python, python, home)
        environ |= {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python}
        if "spark.local.dir" not in self.settings.conf:
            environ.setdefault("SPARK_LOCAL_DIRS", str(self.places.local))
        if self.settings.on_this_machine:
            # Also the UI, on which anybody may stop queries, is for this machine only.
            environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        if environment.shipped is not None:
            paths = (environment.shipped.folder, environ.get("PYTHONPATH"))
            environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        return environ

    def _wait_until_ready(self, state: ServerState, *, log_start: int) -> ServerState:
        """Until it answers a question; ServerStartError tells why it does not."""
        host, port = _address(state.url)
        deadline = time.monotonic() + self._start_seconds_max
        while time.monotonic() < deadline:
            if not processes.is_running(state.pid, state.mark):
                raise self._start_error("ended at its start", log_start)
            if probe.listens(host, port):
                version = probe.answers(host, port, seconds_max=_ASK_SECONDS)
                if version is not None and processes.is_running(state.pid, state.mark):
                    ui = logs.ui_port(self._logged(log_start))
                    return replace(
                        state,
                        ready=True,
                        ui=None if ui is None else f"http://{_reachable(self._ui_host())}:{ui}",
                        versions={**state.versions, "spark": version},
                    )
            time.sleep(_POLL_SECONDS)
        within = f"did not answer within {self._start_seconds_max:.0f} s"
        raise self._start_error(within, log_start)

    def _ui_host(self) -> str:
        return "127.0.0.1" if self.settings.on_this_machine else "0.0.0.0"

    def _start_error(self, how: str, log_start: int) -> ServerStartError:
        logged = self._logged(log_start)
        if logs.port_taken(logged):
            return _PortTaken(how)
        reason = logs.failure_line(logged)
        told = f": {reason}" if reason else ""
        return ServerStartError(
            f"the Spark server {how}{told}. All it said is in {self.places.log} and "
            f"{self.places.output}"
        )

    def _logged(self, log_start: int) -> str:
        """What this start has logged and printed."""
        text = ""
        for path, start in ((self.places.output, 0), (self.places.log, log_start)):
            try:
                with path.open("rb") as file:
                    file.seek(start)
                    text += file.read().decode(errors="replace")
            except FileNotFoundError:
                continue
        return text


class _PortTaken(ServerStartError):
    pass


def _spawn(
    command: Sequence[str], places: Places, environ: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    with places.output.open("wb") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=places.folder,
            env=dict(environ),
            start_new_session=True,
        )


def _read_settings(places: Places) -> ServerSettings:
    try:
        return ServerSettings.from_json(places.settings.read_text())
    except FileNotFoundError:
        return ServerSettings()
    except ValueError as error:
        raise SparkRuntimeError(
            f"{places.settings} is damaged: {error}. Delete it to begin with the defaults"
        ) from None


def _read_state(places: Places) -> ServerState | None:
    """What the file says; a file that says nothing is as good as none."""
    try:
        return ServerState.from_json(places.state.read_text())
    except (FileNotFoundError, ValueError):
        return None


def _write(path: Path, text: str) -> None:
    """Whole or not at all, and for nobody else: Spark's settings may hold passwords."""
    partial = path.with_name(f"{path.name}.tmp")
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    partial.replace(path)


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "127.0.0.1", parts.port or 15002


def _port_in_use(port: int) -> ServerStartError:
    return ServerStartError(
        f"port {port} is in use: choose another with --port, or --port 0 for a free one"
    )


def _bare(host: str) -> str:
    return _reachable(host).strip("[]")


def _reachable(host: str) -> str:
    """An address that leads to a server bound to `host`, from here, as it stands in a URL."""
    if host in ("0.0.0.0", ""):
        return "127.0.0.1"
    if host in ("::", "::0"):
        return "[::1]"
    return f"[{host}]" if ":" in host else host


def _free_port(last: int) -> int:
    """The port of the last start if it is free: sessions find a server that was started again.

    Else one below those that the system gives to outgoing connections.
    """
    if last and not probe.listens("127.0.0.1", last):
        return last
    for _ in range(100):
        port = random.randrange(20_000, 32_000)
        if not probe.listens("127.0.0.1", port):
            return port
    raise SparkRuntimeError("no free port was found. Choose one with --port")
