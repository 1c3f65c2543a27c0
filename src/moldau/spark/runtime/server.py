"""The Connect server of a deployment folder: started once, found again by any process.

Invariants: at most one server runs from a folder (starts and stops hold its lock); the server is in
a session of its own and outlives the process that started it; `server.json` names the process by id
and time of start, so that no other process is taken for it. Started again, it listens on the port
it had before, if that is free.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from moldau.invariant import present
from moldau.spark.runtime import probe, processes
from moldau.spark.runtime.errors import ServerNotRunning, SparkRuntimeError
from moldau.spark.runtime.machine.settings import ServerState
from moldau.spark.runtime.places import DEFAULT_FOLDER, Places
from moldau.spark.runtime.startup import ANSWER_SECONDS, ServerStartup, address_of
from moldau.spark.runtime.state_files import read_settings, read_state, read_token, write

__all__ = ["ConnectServer"]

# A server that ends is noticed at once; this is for one that hangs, on however busy a machine.
START_SECONDS_MAX = 240.0
STOP_SECONDS_MAX = 30.0
_POLL_SECONDS = 0.05
# Long after Spark itself has ended workers without work, which it does after a minute.
_DAEMON_IDLE_SECONDS = 300.0


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
            read_settings(self.places),
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
    def session_url(self) -> str:
        """The address with the token, for `session` and for SPARK_REMOTE: not to be shown."""
        return f"{self.url}/;use_ssl=false;token={self.token}" if self.token else self.url

    @property
    def token(self) -> str | None:
        """What a session has to prove itself with; a secret."""
        return read_token(self.places)

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
        host, port = address_of(state.url)
        return processes.is_running(state.pid, state.mark) and probe.listens(host, port)

    def answers(self, *, seconds_max: float = ANSWER_SECONDS) -> bool:
        """Whether it also answers a request, which a server that hangs does not."""
        host, port = address_of(self.state.url)
        return probe.responds(host, port, seconds_max=seconds_max, token=self.token)

    def status(self) -> dict[str, Any]:
        """For people and scripts; `running` is False where there is no server."""
        running = self.alive()
        shown: dict[str, Any] = {"running": running, "folder": str(self.places.folder)}
        if running:
            state = self.state
            shown |= {
                "pid": state.pid,
                "url": state.url,
                "token": str(self.places.token),
                "ui": state.ui,
                "master": state.master,
                "connector": state.connector,
                "startedMs": state.started_ms,
                "versions": state.versions,
            }
        return shown | {"log": str(self.places.log), "events": str(self.places.events)}

    # Its life.

    def attach(self) -> bool:
        """Use the server that runs from the folder, if there is one.

        A server that another process is starting is waited for.
        """
        state = read_state(self.places)
        if state is not None and not state.ready and processes.is_running(state.pid, state.mark):
            with self._locked():
                state = read_state(self.places)
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
        """Save the settings for the next start."""
        write(self.places.settings, self.settings.to_json())

    def stop(self) -> bool:
        """Stop it, and what it left behind; False if there was none."""
        if not self.places.state.exists():
            return False
        with self._locked():
            state = read_state(self.places)
            self._state = None
            if state is None:
                return False
            ran = processes.is_running(state.pid, state.mark)
            processes.end(state.pid, state.mark, seconds_max=self._stop_seconds_max)
            self.places.state.unlink(missing_ok=True)
            return ran

    def kill(self) -> None:
        """Do not wait for anything, not even for a start by another process."""
        state = read_state(self.places)
        if state is not None:
            processes.end(state.pid, state.mark, seconds_max=0)

    def __enter__(self) -> ConnectServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def tidy(self) -> None:
        """Delete the oldest event logs, of this server and of earlier ones, and end the worker
        processes that ended sessions have left."""
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
                            f"{self.places.folder} for too long. See `moldau spark status`"
                        ) from None
                    time.sleep(_POLL_SECONDS)
            yield

    def _attach_locked(self) -> bool:
        """With the lock held a server that is not ready is one whose starter died."""
        state = read_state(self.places)
        if state is None:
            return False
        if not processes.is_running(state.pid, state.mark):
            processes.end_strays(state.pid, state.mark)
            return False
        if not state.ready:
            state = self._startup().wait_until_ready(state, log_start=0)
            write(self.places.state, state.to_json())
        self._state = state
        return True

    def _startup(self) -> ServerStartup:
        return ServerStartup(self.places, self.settings, seconds_max=self._start_seconds_max)

    def _start(self) -> None:
        startup = self._startup()
        try:
            self._state = startup.start()
        finally:
            self.settings = startup.settings
            self.notices += startup.notices
