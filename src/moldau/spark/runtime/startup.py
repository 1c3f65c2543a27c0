"""Starts a Connect server: its command, environment and port, and the wait until it answers.

Invariants: the caller holds the folder's lock; the state file names the process before the server
is ready, so that a starter that dies leaves no unknown server; a failed start leaves no process.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from moldau import __version__
from moldau.spark.runtime import checkpoint_jar, launcher, probe, processes, sockets
from moldau.spark.runtime.errors import ServerStartError, SparkRuntimeError, require
from moldau.spark.runtime.java import LAUNCHER_OPTIONS, JavaHome, find_java
from moldau.spark.runtime.machine import logs
from moldau.spark.runtime.machine.command import (
    Environment,
    connector_of,
    log_settings,
    properties_text,
    server_conf,
    spark_submit,
)
from moldau.spark.runtime.machine.settings import ServerSettings, ServerState
from moldau.spark.runtime.places import Places, cache_folder, spark_home
from moldau.spark.runtime.state_files import (
    TOKEN_VARIABLE,
    read_token,
    token_for_start,
    write,
)

__all__ = ["ServerStartup", "address_of"]

ANSWER_SECONDS = 20.0
_POLL_SECONDS = 0.05
# Another program may take a port that was free when we looked.
_PORT_TRIES = 3
_JAVA_OPTIONS = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS")
# What would make Spark's scripts think that they are clients, or another Spark's.
_NOT_INHERITED = (
    "MASTER",
    "SPARK_API_MODE",
    "SPARK_CONNECT_MODE_ENABLED",
    "SPARK_HOME",
    "SPARK_LOCAL_REMOTE",
    "SPARK_REMOTE",
)


class ServerStartup:
    """One start of a folder's server."""

    def __init__(self, places: Places, settings: ServerSettings, *, seconds_max: float) -> None:
        self.places = places
        #: With the port of this start, for the next one.
        self.settings = settings
        #: Lines that a user should see: what was left out and why.
        self.notices: list[str] = []
        self._seconds_max = seconds_max

    def start(self) -> ServerState:
        """The state of the server once it answers; on its last port, if that is free."""
        version = str(require("pyspark").__version__)
        java = find_java(os.environ, cache_folder(os.environ))
        token, self.settings = token_for_start(self.places, self.settings, os.environ)
        automatic = self.settings.port == 0
        if not automatic and probe.listens(_bare(self.settings.host), self.settings.port):
            raise _port_in_use(self.settings.port)
        for attempt in range(_PORT_TRIES):
            port = self.settings.port or _free_port(0 if attempt else self.settings.last_port)
            try:
                return self._start_on(port, java, version, token)
            except _PortTaken as taken:
                if not automatic or attempt + 1 == _PORT_TRIES:
                    raise _port_in_use(port) from taken

        raise _port_in_use(self.settings.port)

    def _start_on(self, port: int, java: JavaHome, version: str, token: str) -> ServerState:
        places, settings = self.places, self.settings
        jars, packages = self._connector_jars(version)
        environment = Environment(
            cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2,
            memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            port=port,
            jars=jars,
            shipped=self._shipped(),
            sockets=self._sockets(),
            java_options=" ".join(os.environ.get(name, "") for name in _JAVA_OPTIONS),
        )
        conf = server_conf(settings, places, environment)
        home = spark_home()
        program = str(home / "bin" / "spark-submit")
        command = spark_submit(
            program,
            settings,
            conf,
            packages,
            secrets=places.secret_conf,
            cores=environment.cores,
        )
        self.settings = replace(settings, last_port=port)
        write(places.settings, self.settings.to_json())
        write(places.secret_conf, properties_text(conf))
        write(places.log_settings, log_settings(places))
        if settings.is_local:
            checkpoint_jar.install(places.checkpoint_jar)
        if places.output.exists():
            places.output.replace(places.output.with_name("server.out.1"))
        log_start = places.log.stat().st_size if places.log.exists() else 0
        environ = self._environ(java, home, environment)
        # Not as a setting: those are on the command line and in the event log.
        process = _spawn(command, places, environ | {TOKEN_VARIABLE: token})
        state = ServerState(
            pid=process.pid,
            mark=processes.start_mark(process.pid) or "ended",
            url=f"sc://{_session_host(settings.host)}:{port}",
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
        write(places.state, state.to_json())
        try:
            state = self.wait_until_ready(state, log_start=log_start)
        except BaseException:
            processes.end(state.pid, state.mark, seconds_max=0)
            places.state.unlink(missing_ok=True)
            raise
        write(places.state, state.to_json())
        return state

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

    def _sockets(self) -> str | None:
        """Spark's launcher and all its Python processes are on this machine."""
        if self.settings.is_local and sockets.usable(self.places.sockets):
            return str(self.places.sockets)
        return None

    def _shipped(self) -> Any:
        if self.settings.is_local:
            return None
        from moldau.spark.runtime.shipping import ship

        return ship(cache_folder(os.environ), extra=self.settings.ship)

    def _environ(self, java: JavaHome, home: Path, environment: Environment) -> dict[str, str]:
        environ = {key: value for key, value in os.environ.items() if key not in _NOT_INHERITED}
        environ |= {"JAVA_HOME": java.home, "SPARK_HOME": str(home)}
        environ.setdefault("SPARK_LAUNCHER_OPTS", LAUNCHER_OPTIONS)
        # By default the C library keeps memory apart for each of Java's hundreds of threads.
        environ.setdefault("MALLOC_ARENA_MAX", "2")
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
            # The UI, on which anybody may stop queries, is for this machine only too.
            environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        if environment.shipped is not None:
            paths = (environment.shipped.folder, environ.get("PYTHONPATH"))
            environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        return environ

    def wait_until_ready(self, state: ServerState, *, log_start: int) -> ServerState:
        """Until it answers a request; ServerStartError gives the reason if it does not."""
        host, port = address_of(state.url)
        deadline = time.monotonic() + self._seconds_max
        while time.monotonic() < deadline:
            if not processes.is_running(state.pid, state.mark):
                raise self._start_error("ended at its start", log_start)
            if probe.listens(host, port):
                token = read_token(self.places)
                version = probe.answers(host, port, seconds_max=ANSWER_SECONDS, token=token)
                if version is not None and processes.is_running(state.pid, state.mark):
                    ui = logs.ui_port(self._logged(log_start))
                    return replace(
                        state,
                        ready=True,
                        ui=None if ui is None else f"http://{_reachable(self._ui_host())}:{ui}",
                        versions={**state.versions, "spark": version},
                    )
            time.sleep(_POLL_SECONDS)
        within = f"did not answer within {self._seconds_max:.0f} s"
        raise self._start_error(within, log_start)

    def _ui_host(self) -> str:
        return "127.0.0.1" if self.settings.on_this_machine else "0.0.0.0"

    def _start_error(self, how: str, log_start: int) -> ServerStartError:
        logged = self._logged(log_start)
        if logs.port_taken(logged):
            return _PortTaken(how)
        reason = logs.failure_line(logged)
        because = f": {reason}" if reason else ""
        return ServerStartError(
            f"the Spark server {how}{because}. Its output is in {self.places.log} and "
            f"{self.places.output}"
        )

    def _logged(self, log_start: int) -> str:
        """The log and output of this start."""
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
    # Only for the owner: what programs print may hold anything.
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with open(os.open(places.output, flags, 0o600), "wb") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=places.folder,
            env=dict(environ),
            start_new_session=True,
        )


def address_of(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    # Whoever listens on the same port of ::1 is not our server and must not get its token.
    host = "127.0.0.1" if parts.hostname in (None, "localhost") else parts.hostname
    return host, parts.port or 15002


def _port_in_use(port: int) -> ServerStartError:
    return ServerStartError(
        f"port {port} is in use: choose another with --port, or --port 0 for a free one"
    )


def _session_host(host: str) -> str:
    """As `_reachable`, but PySpark's own sessions send a token without TLS to `localhost` only."""
    reachable = _reachable(host)
    return "localhost" if reachable == "127.0.0.1" else reachable


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
