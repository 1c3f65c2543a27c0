"""Processes of `python -m moldau.cli` that need not import it: forks of one that has.

Tests start hundreds of brokers, and more than half of what a start costs is imports. A template has
them done and forks for each start, with the arguments, the environment and the directory of the
test; everything after the imports is as in any other process. That `moldau` starts by itself is
tested elsewhere (tests/unit/cli/test_scripts.py, README's commands, bin/). `moldau.testing` and
`support.shell` do the same for their purposes.

A fork is a child of the template, which reports its end, and is killed when the template ends. `ps`
shows the template's command line: a test that needs the command's own puts `env` before it.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Protocol

_PREFIX: Final = [sys.executable, "-m", "moldau.cli"]
# What is read before Python's first line, or by Python itself: a fork would not have it.
_EARLY: Final = ("LD_", "PYTHON", "MALLOC_")
# Taken out of the environment by conftest.py, perhaps after this module is loaded.
_REMOVED: Final = "PYTHONDONTWRITEBYTECODE"
_SET_PARENT_DEATH_SIGNAL: Final = 1
_MESSAGE_BYTES_MAX: Final = 1 << 20


class Process(Protocol):
    """What tests use of `subprocess.Popen`."""

    pid: int
    returncode: Any

    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int) -> None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


def start(command: Sequence[str], log: Path) -> Process:
    """Start a process that appends what it prints to a file; a fork, where the command allows."""
    with log.open("ab") as output:
        is_ours = list(command[:3]) == _PREFIX and sys.platform == "linux"
        if is_ours and _early_variables() == _template.variables:
            return _template.fork(command[3:], output.fileno())
        return subprocess.Popen(list(command), stdout=output, stderr=output)


def ended_cpu_seconds() -> float:
    """The processor time of all forks that have ended."""
    return Forked.ended_cpu_seconds


def _early_variables() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith(_EARLY) and name != _REMOVED
    }


def _ready(descriptors: Sequence[int], timeout: float | None) -> set[int]:
    """Those with something to read. Not `select`, which refuses descriptors over 1,023: a process
    with thousands of tests may have them."""
    poll = select.poll()
    for each in descriptors:
        poll.register(each, select.POLLIN)
    return {each for each, _ in poll.poll(None if timeout is None else timeout * 1000)}


class Forked:
    """A fork; its end is a line in a pipe, with the exit code and the processor time."""

    ended_cpu_seconds = 0.0

    def __init__(self, status: int) -> None:
        self._status = status
        self._lock = threading.Lock()
        self.returncode: int | None = None
        self.pid = int(self._line())

    def poll(self) -> int | None:
        with self._lock:
            if self.returncode is None and _ready([self._status], 0):
                self._on_end()
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        with self._lock:
            if self.returncode is None:
                if not _ready([self._status], timeout):
                    raise subprocess.TimeoutExpired("a fork", timeout or 0.0)
                self._on_end()
            assert self.returncode is not None
            return self.returncode

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _on_end(self) -> None:
        # Nothing there: the template is gone, and its forks with it.
        code, cpu_seconds = (self._line() or f"{-signal.SIGKILL} 0").split()
        self.returncode = int(code)
        Forked.ended_cpu_seconds += float(cpu_seconds)
        os.close(self._status)

    def _line(self) -> str:
        found = b""
        while not found.endswith(b"\n") and (more := os.read(self._status, 1)):
            found += more
        return found.decode().strip()


class _Template:
    """The process that forks, as seen from the tests; started when it is first needed."""

    def __init__(self) -> None:
        self.variables = _early_variables()
        self._lock = threading.Lock()
        self._orders: socket.socket | None = None

    def fork(self, words: Sequence[str], output: int) -> Forked:
        status, of_template = os.pipe()
        said = json.dumps([list(words), dict(os.environ), os.getcwd()]).encode()
        with self._lock:
            orders = self._orders = self._orders or self._start()
            socket.send_fds(orders, [len(said).to_bytes(4, "big")], [output, of_template])
            orders.sendall(said)
        os.close(of_template)
        return Forked(status)

    def _start(self) -> socket.socket:
        ours, its = socket.socketpair()
        program = (
            f"import sys; sys.path[:0] = {sys.path!r}; from support import forks; forks.serve()"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(its.fileno())],
            stdin=subprocess.DEVNULL,
            pass_fds=[its.fileno()],
            env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
        )
        its.close()

        def end() -> None:
            ours.close()
            process.wait()

        atexit.register(end)
        return ours


_template = _Template()


# In the template.


def serve() -> None:
    """Fork for each order until there is nobody to give any; in a fork, be the command."""
    import_all()
    orders = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    gc.collect()
    gc.freeze()
    running: dict[int, int] = {}
    while True:
        ready = _ready([orders.fileno(), woken], None)
        if woken in ready:
            os.read(woken, 4096)
            _report_ends(running)
        if orders.fileno() not in ready:
            continue
        head, descriptors, _, _ = socket.recv_fds(orders, 4, 2)
        if not head:
            break
        words, environment, directory = json.loads(_read(orders, int.from_bytes(head, "big")))
        output, status = descriptors
        pid = os.fork()
        if pid == 0:
            for each in (orders.detach(), woken, waking, status, *running.values()):
                os.close(each)
            _become(words, environment, directory, output)
        os.close(output)
        running[pid] = status
        os.write(status, b"%d\n" % pid)
    for pid in running:
        os.kill(pid, signal.SIGKILL)


def import_all() -> None:
    """What a broker has imported when it listens."""
    import importlib

    for module in (
        "moldau.broker.app", "moldau.cli.main", "moldau.cli.nodes.start",
        "moldau.cli.nodes.storage", "moldau.config.providers", "uvloop", "encodings.idna",
    ):  # fmt: skip
        importlib.import_module(module)


def _read(orders: socket.socket, size: int) -> bytes:
    assert size <= _MESSAGE_BYTES_MAX
    return orders.recv(size, socket.MSG_WAITALL)


def _report_ends(running: dict[int, int]) -> None:
    while running:
        pid, code, usage = os.wait4(-1, os.WNOHANG)
        if not pid:
            return
        status = running.pop(pid)
        took = usage.ru_utime + usage.ru_stime
        os.write(status, f"{os.waitstatus_to_exitcode(code)} {took}\n".encode())
        os.close(status)


def _become(words: list[str], environment: dict[str, str], directory: str, output: int) -> None:
    """In the fork: what Python has done before the first line of `moldau.cli`."""
    from moldau.cli.main import main

    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.chdir(directory)
    sys.argv = ["moldau", *words]
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.exit(main(words))
