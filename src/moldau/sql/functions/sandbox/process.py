"""Sandbox: a process with functions of a user, started when the first is called."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from dataclasses import dataclass
from typing import Any

from moldau.readable import wait_readable
from moldau.sql.errors import KsqlException, QueryFailed

__all__ = ["CallFailed", "Limits", "Sandbox"]

_ANSWER_MAX = 64 * 1024 * 1024
_START_TIMEOUT_S = 30.0
#: What a worker sees of the environment: no secrets of the server.
_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH")


class CallFailed(KsqlException):
    """A function raised: its result is NULL, and the processing log says why."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one call: time; of the process: memory."""

    timeout_ms: int = 5000
    memory_max: int = 512 * 1024 * 1024


class Sandbox:
    """One worker. A call that crashes it, or takes too long or too much memory, fails its query."""

    def __init__(self, where: str, limits: Limits) -> None:
        self._where = where
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = b""
        self._lock = threading.Lock()
        self.declared: list[dict[str, Any]] = []
        self._end: weakref.finalize[..., Sandbox] | None = None

    def call(self, *call: Any) -> Any:
        """One call: see `worker.py`."""
        return self.calls([list(call)])[0]

    def calls(self, batch: list[list[Any]]) -> list[Any]:
        """The results of several calls, which cost one trip to the worker."""
        with self._lock:
            self.start()
            answer = self._ask({"calls": batch}, self._limits.timeout_ms / 1000)
        found = []
        for each in answer.get("results") or ():
            if each.get("memory"):
                self.close()
                raise QueryFailed(f"{self._name} needs more memory than {self._limits.memory_max}")
            if "error" in each:
                raise CallFailed(each["error"])
            found.append(each.get("result"))
        if len(found) != len(batch):
            self.close()
            raise QueryFailed(f"{self._name} did not answer all calls")
        return found

    @property
    def _name(self) -> str:
        return f"The function of {os.path.basename(self._where)}"

    def start(self) -> None:
        """Start the worker, unless it runs; CallFailed if it cannot load the functions."""
        if self._process is not None and self._process.poll() is None:
            return
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        environment["PYTHONPATH"] = os.pathsep.join(each for each in sys.path if each)
        code = "from moldau.sql.functions.sandbox.worker import main; main()"
        command = [sys.executable, "-P", "-c", code, self._where, str(self._limits.memory_max)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd="/",
            start_new_session=True,
        )
        self._end = weakref.finalize(self, _kill, self._process)
        self._buffer = b""
        answer = self._answer(_START_TIMEOUT_S)
        if "functions" not in answer:
            self.close()
            raise CallFailed(f"{self._where} cannot be loaded: {answer.get('error')}")
        self.declared = answer["functions"]

    def _ask(self, request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        process = self._process
        if process is None or process.stdin is None:
            raise QueryFailed(f"{self._name} does not run")
        try:
            process.stdin.write(json.dumps(request, separators=(",", ":")).encode() + b"\n")
            process.stdin.flush()
        except OSError as error:
            self.close()
            raise QueryFailed(f"{self._name} has ended its process: {error}") from None
        return self._answer(timeout_s)

    def _answer(self, timeout_s: float) -> dict[str, Any]:
        process = self._process
        if process is None or process.stdout is None:
            raise QueryFailed(f"{self._name} does not run")
        deadline = time.monotonic() + timeout_s
        descriptor = process.stdout.fileno()
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not wait_readable(descriptor, left):
                self.close()
                raise QueryFailed(f"{self._name} took longer than {round(timeout_s * 1000)} ms")
            data = os.read(descriptor, 1 << 20)
            if not data:
                code = process.wait()
                self.close()
                raise QueryFailed(f"{self._name} has ended its process, with code {code}")
            self._buffer += data
            if len(self._buffer) > _ANSWER_MAX:
                self.close()
                raise QueryFailed(f"{self._name} returned more than {_ANSWER_MAX} bytes")
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            self.close()
            raise QueryFailed(f"{self._name} sent something that is no answer")
        return found

    def close(self) -> None:
        """End the worker; the next call starts another."""
        if self._end is not None:
            self._end()
        self._process = None


def _kill(process: subprocess.Popen[bytes]) -> None:
    # With the processes that functions have started: the worker has a session of its own.
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
