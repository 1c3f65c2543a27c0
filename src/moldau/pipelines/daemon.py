"""The process of the control loop: started detached, found by its folder, stopped by a signal.

    python -m moldau.pipelines.daemon FOLDER

What always holds: one loop per deployment folder, by the folder's lock. The loop outlives whoever
started it, and the Spark server and its queries outlive the loop: the next one takes them over.
Only `stop` stops queries, and what users want stays written down: the next loop starts them again.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from logging.handlers import RotatingFileHandler
from typing import Any, Final

from moldau.pipelines.control.folder import ControlFolder, Heartbeat, Lock
from moldau.pipelines.errors import PipelineError
from moldau.spark.runtime.processes import is_running

__all__ = ["DaemonStatus", "ensure_running", "main", "status", "stop"]

_POLL_SECONDS: Final = 0.05
_HANGS_AFTER_MS: Final = 30_000
_LOG_SIZE_MAX: Final = 2 * 1024 * 1024
_OUTPUT_LINES: Final = 5
_LOCK_TRIES_MAX: Final = 20
_FAULT_PAUSE_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class DaemonStatus:
    """What is known of a folder's control loop; the heartbeat is the last one of any loop."""

    alive: bool
    heartbeat: Heartbeat | None
    #: How long ago it gave a sign of life.
    silent_ms: int | None

    @property
    def pid(self) -> int | None:
        return self.heartbeat.pid if self.alive and self.heartbeat is not None else None

    @property
    def hangs(self) -> bool:
        """It runs, but has not been round its loop for long."""
        beat = self.heartbeat
        return self.alive and beat is not None and beat.at_ms - beat.round_at_ms > _HANGS_AFTER_MS


def status(folder: str | os.PathLike[str]) -> DaemonStatus:
    control = ControlFolder(folder)
    alive = control.is_locked()
    heartbeat = control.heartbeat()
    silent_ms = None if heartbeat is None else max(0, int(time.time() * 1000) - heartbeat.at_ms)
    return DaemonStatus(alive, heartbeat, silent_ms)


def ensure_running(
    folder: str | os.PathLike[str],
    bootstrap_servers: str,
    *,
    config: Mapping[str, Any] | None = None,
    keep_server: bool | None = None,
    timeout: float = 120.0,
) -> int:
    """Start the folder's control loop unless it runs; returns its process id.

    `config` are further settings of the client (security). With `keep_server` the loop keeps the
    Spark server running also while there is no pipeline; None leaves that as it was.
    """
    control = ControlFolder(folder)
    wanted = {key: str(value) for key, value in (config or {}).items()}
    wanted["bootstrap.servers"] = bootstrap_servers
    deadline = time.monotonic() + timeout
    if control.is_locked():
        _check_cluster(control, bootstrap_servers)
    else:
        control.set_cluster(wanted)
    if keep_server is not None:
        control.set_keep_server(keep_server)
    while True:
        process = None if control.is_locked() else _spawn(control)
        pid = _wait_for_beat(control, process, deadline)
        if pid is not None:
            return pid
        if time.monotonic() > deadline:
            raise PipelineError(
                f"the control loop of {control.path} did not start in {timeout:g} s",
                hint=f"{control.output} tells more",
            )


def stop(folder: str | os.PathLike[str], *, timeout: float = 75.0) -> bool:
    """Stop the folder's loop, and before that all queries; False if none runs.

    What users want is kept. The server is left as it is.
    """
    control = ControlFolder(folder)
    if not control.is_locked():
        return False
    deadline = time.monotonic() + timeout
    asked: int | None = None
    while control.is_locked():
        heartbeat = control.heartbeat()
        if (
            heartbeat is not None
            and heartbeat.pid != asked
            and is_running(heartbeat.pid, heartbeat.mark)
        ):
            asked = heartbeat.pid
            with contextlib.suppress(ProcessLookupError):
                os.kill(asked, signal.SIGTERM)
        if time.monotonic() > deadline:
            raise PipelineError(
                f"the control loop of {control.path} (process {asked}) did not end in "
                f"{timeout:g} s",
                hint=f"{control.output} tells more",
            )
        time.sleep(_POLL_SECONDS)
    control.set_keep_server(False)
    return True


def _check_cluster(control: ControlFolder, bootstrap_servers: str) -> None:
    present = (control.cluster or {}).get("bootstrap.servers", bootstrap_servers)
    if _addresses(present).isdisjoint(_addresses(bootstrap_servers)):
        raise PipelineError(
            f"the control loop of {control.path} works with the cluster at {present}, not with "
            f"{bootstrap_servers}",
            hint="use another folder for another cluster, or stop it first: moldau spark stop",
        )


def _addresses(bootstrap_servers: str) -> set[str]:
    return {
        entry.strip().replace("localhost", "127.0.0.1") for entry in bootstrap_servers.split(",")
    }


def _spawn(control: ControlFolder) -> subprocess.Popen[bytes]:
    """In a session of its own: neither a closed terminal nor Ctrl-C reaches it."""
    control.make()
    environ = {key: value for key, value in os.environ.items() if key != "SPARK_REMOTE"}
    with open(control.path / "control.out", "ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "moldau.pipelines.daemon", str(control.path)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=control.path,
            env=environ,
            start_new_session=True,
        )


def _wait_for_beat(
    control: ControlFolder, process: subprocess.Popen[bytes] | None, deadline: float
) -> int | None:
    """The id of the loop that has the lock and gives signs of life; None to try again."""
    while time.monotonic() < deadline:
        heartbeat = control.heartbeat()
        if (
            control.is_locked()
            and heartbeat is not None
            and is_running(heartbeat.pid, heartbeat.mark)
        ):
            return heartbeat.pid
        if process is not None and process.poll() is not None and not control.is_locked():
            if process.returncode:
                raise PipelineError(
                    f"the control loop ended at its start: {_last_words(control)}",
                    hint=f"{control.path / 'control.out'} tells more",
                )
            return None
        if process is None and not control.is_locked():
            return None
        time.sleep(_POLL_SECONDS)
    return None


def _last_words(control: ControlFolder) -> str:
    try:
        lines = (control.path / "control.out").read_text(errors="replace").split("\n")
    except OSError:
        return "nothing is known"
    return " ".join(line.strip() for line in lines[-_OUTPUT_LINES:] if line.strip())


def main(argv: list[str] | None = None) -> int:
    """The loop's process. Exit code 0 also if another loop has the folder already."""
    words = sys.argv[1:] if argv is None else argv
    control = ControlFolder(words[0])
    lock = _take_lock(control)
    if lock is None:
        return 0
    _log_to(control)
    config = control.cluster
    if config is None or "bootstrap.servers" not in config:
        sys.stderr.write(f"{control.path} names no cluster\n")
        return 1
    from moldau.pipelines.control.shell import ControlLoop
    from moldau.spark.runtime.errors import require
    from moldau.spark.runtime.server import ConnectServer

    require("pyspark")
    loop = ControlLoop(control, config, ConnectServer(control.path))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: loop.shut_down())
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    log = logging.getLogger("moldau.pipelines")
    log.info("control loop %d of %s for %s", os.getpid(), control.path, config["bootstrap.servers"])
    try:
        loop.run()
    except Exception:
        log.exception("the control loop failed")
        if not loop.is_ending:
            _begin_anew(control)
    log.info("control loop %d ended", os.getpid())
    # Workers that hang in a call must not keep the process: nothing of theirs is owned here.
    logging.shutdown()
    os._exit(0)


def _begin_anew(control: ControlFolder) -> None:
    """After a fault of ours: pipelines are looked after again, by a process that knows nothing."""
    time.sleep(_FAULT_PAUSE_SECONDS)
    logging.shutdown()
    os.execv(sys.executable, [sys.executable, "-m", "moldau.pipelines.daemon", str(control.path)])


def _take_lock(control: ControlFolder) -> Lock | None:
    """None if a loop has it. Whoever only looks has it for a moment."""
    for _ in range(_LOCK_TRIES_MAX):
        lock = control.lock()
        if lock is not None:
            return lock
        time.sleep(_POLL_SECONDS)
    return None


def _log_to(control: ControlFolder) -> None:
    handler = RotatingFileHandler(control.output, maxBytes=_LOG_SIZE_MAX, backupCount=2)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-5s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)


if __name__ == "__main__":
    sys.exit(main())
