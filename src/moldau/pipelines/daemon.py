"""The process of the control loop: started detached, found by its folder, stopped by a signal.

    python -m moldau.pipelines.daemon FOLDER

Invariants: one loop runs per deployment folder, because it holds the folder's lock. The loop
outlives the process that started it, and the Spark server and its queries outlive the loop: the
next loop takes them over. Only `stop` stops queries. The registry keeps which pipelines are to run,
so the next loop starts them again. After `stop` or `kill` no loop runs, whether or not it raised.
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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from logging.handlers import RotatingFileHandler
from typing import TYPE_CHECKING, Any, Final

from moldau.pipelines.control.folder import ControlFolder, Heartbeat, Lock
from moldau.pipelines.errors import PipelineError
from moldau.spark.runtime.processes import is_running

if TYPE_CHECKING:
    from moldau.pipelines.control.shell import ControlLoop

__all__ = ["DaemonStatus", "ensure_running", "kill", "main", "status", "stop"]

_POLL_SECONDS: Final = 0.05
_HANGS_AFTER_MS: Final = 30_000
_LOG_SIZE_MAX: Final = 2 * 1024 * 1024
_OUTPUT_LINES: Final = 5
_LOCK_TRIES_MAX: Final = 20
_FAULT_PAUSE_SECONDS: Final = 5.0
_SIGNAL_AGAIN_SECONDS: Final = 5.0
_KILL_SECONDS_MAX: Final = 10.0


@dataclass(frozen=True, slots=True)
class DaemonStatus:
    """The state of a folder's control loop; the heartbeat is the last one of any loop."""

    alive: bool
    heartbeat: Heartbeat | None
    #: How long ago the heartbeat was written.
    silent_ms: int | None

    @property
    def pid(self) -> int | None:
        return self.heartbeat.pid if self.alive and self.heartbeat is not None else None

    @property
    def hangs(self) -> bool:
        """The process runs, but its last round was long ago."""
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

    `config` has further client settings (security); files that they name are meant from the working
    directory. With `keep_server` the loop keeps the Spark server running even while there is no
    pipeline; None leaves that unchanged. If this raises, or is interrupted, it has left no process
    behind.
    """
    control = ControlFolder(folder)
    wanted = {key: _from_here(key, str(value)) for key, value in (config or {}).items()}
    wanted["bootstrap.servers"] = bootstrap_servers
    deadline = time.monotonic() + timeout
    if control.is_locked():
        _check_cluster(control, bootstrap_servers)
    else:
        control.set_cluster(wanted)
        # A loop that runs is about to end with its owner.
        control.forget_lost_owner()
    if keep_server is not None:
        control.set_keep_server(keep_server)
    while True:
        process = None if control.is_locked() else _spawn(control)
        try:
            pid = _wait_for_beat(control, process, deadline)
            if pid is not None:
                return pid
            if time.monotonic() > deadline:
                raise PipelineError(
                    f"the control loop of {control.path} did not start in {timeout:g} s",
                    hint=f"see {control.output}",
                )
        except BaseException:
            # It may not have its lock yet, so `stop` would not find it.
            if process is not None:
                process.kill()
                process.wait()
            raise


def _from_here(key: str, value: str) -> str:
    """The loop and Spark's workers have other working directories."""
    is_file = key.startswith(("sasl.", "ssl.")) and key.endswith((".location", ".file"))
    return os.path.abspath(value) if is_file and value and "${" not in value else value


def stop(folder: str | os.PathLike[str], *, timeout: float = 75.0) -> bool:
    """Stop all queries and then the folder's loop; False if none runs.

    The registry keeps which pipelines are to run. The Spark server is left as it is. A loop that
    does not end in time is killed, and that is raised.
    """
    control = ControlFolder(folder)
    if control.path.exists():
        # First: a `moldau start --spark` that sees the loop end knows by this that it was stopped.
        control.set_keep_server(False)
    if not control.is_locked():
        return False
    ended = _end(control, signal.SIGTERM, seconds_max=timeout)
    if not ended:
        kill(folder)
        raise PipelineError(
            f"the control loop of {control.path} did not end in {timeout:g} s and was killed. "
            "Queries may run on until the Spark server stops",
            hint=f"see {control.output}",
        )
    return True


def kill(folder: str | os.PathLike[str]) -> None:
    """End the folder's loop at once. Its queries run on in the Spark server."""
    control = ControlFolder(folder)
    if not _end(control, signal.SIGKILL, seconds_max=_KILL_SECONDS_MAX):
        raise PipelineError(
            f"the control loop of {control.path} cannot be killed", hint=f"see {control.output}"
        )


def _end(control: ControlFolder, number: signal.Signals, *, seconds_max: float) -> bool:
    """Signal the loop until it has released its lock; False if it has not in time."""
    deadline = time.monotonic() + seconds_max
    signal_at = 0.0
    while control.is_locked():
        now = time.monotonic()
        if now > deadline:
            return False
        heartbeat = control.heartbeat()
        # A loop that has just started has not written its heartbeat, and one that starts again
        # after a fault may lose a signal.
        if now >= signal_at and heartbeat is not None and is_running(heartbeat.pid, heartbeat.mark):
            signal_at = now + _SIGNAL_AGAIN_SECONDS
            with contextlib.suppress(ProcessLookupError):
                os.kill(heartbeat.pid, number)
        time.sleep(_POLL_SECONDS)
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
    """The process id of the loop that has the lock and writes heartbeats; None to try again."""
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
                    hint=f"see {control.path / 'control.out'}",
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
        return "it left no output"
    return " ".join(line.strip() for line in lines[-_OUTPUT_LINES:] if line.strip())


def main(argv: list[str] | None = None) -> int:
    """The loop's process. The exit code is 0 also if another loop has the folder already."""
    words = sys.argv[1:] if argv is None else argv
    control = ControlFolder(words[0])
    lock = Lock.taken_over(int(words[1])) if len(words) > 1 else _take_lock(control)
    if lock is None:
        return 0
    _log_to(control)
    config = control.cluster
    if config is None or "bootstrap.servers" not in config:
        sys.stderr.write(f"{control.path} does not name a cluster\n")
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
        _run_in_thread(loop)
    except Exception:
        log.exception("the control loop failed")
        _start_again(control, lock, loop)
    log.info("control loop %d ended", os.getpid())
    # Workers that hang in a call must not keep the process alive: they own nothing.
    logging.shutdown()
    os._exit(0)


def _run_in_thread(loop: ControlLoop) -> None:
    """Signal handlers run in the main thread and set an event. If the loop waited for that event
    in the same thread, a handler could interrupt it while it holds the event's lock."""
    with ThreadPoolExecutor(1, thread_name_prefix="control-loop") as runner:
        runner.submit(loop.run).result()


def _start_again(control: ControlFolder, lock: Lock, loop: ControlLoop) -> None:
    """After a fault of ours, run the loop in a fresh program. Returns if it is to end instead.

    The lock is handed over, not released: `stop` would take a released lock for the loop's end.
    """
    deadline = time.monotonic() + _FAULT_PAUSE_SECONDS
    while time.monotonic() < deadline and not loop.is_ending:
        time.sleep(_POLL_SECONDS)
    if loop.is_ending:
        return
    logging.shutdown()
    command = [sys.executable, "-m", "moldau.pipelines.daemon", str(control.path)]
    os.execv(sys.executable, [*command, str(lock.hand_over())])


def _take_lock(control: ControlFolder) -> Lock | None:
    """None if a loop has it. A process that only checks for a loop holds it for a moment."""
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
