"""The test's end of the template process that nodes are forked from: one for each test process.

Invariants: a forked child of the test makes a template of its own; orders of several
threads do not mix; the template ends with the test, however that ends.
"""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from moldau.testing import wire_format
from moldau.testing.errors import BrokerError, BrokerStartError

__all__ = ["Template", "start_template"]

_MODULE: Final = "moldau.testing.process.zygote"
#: Importing the broker takes half a second; a busy machine may take its time.
_READY_S_MAX: Final = 60.0
_ANSWER_S_MAX: Final = 60.0


class Template:
    """The handle of a template process; it is started at once and waited for at first use."""

    def __init__(self) -> None:
        own, theirs = socket.socketpair()
        self._orders = own
        self._lock = threading.Lock()
        self._ready = False
        self.pid = os.getpid()
        environment = dict(os.environ)
        # The package as it is imported here, wherever that is.
        package = str(Path(__file__).resolve().parents[2])
        paths = [package, *filter(None, [environment.get("PYTHONPATH")])]
        environment["PYTHONPATH"] = os.pathsep.join(paths)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _MODULE, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                # Ctrl-C in a terminal is for the test alone.
                start_new_session=True,
            )

    @property
    def process_id(self) -> int:
        return self._process.pid

    @property
    def usable(self) -> bool:
        return self.pid == os.getpid() and self._process.poll() is None

    def spawn(self, node: Mapping[str, Any], control: socket.socket) -> int:
        """Fork a node that has the other end of `control`; its process id."""
        # Classes that the configuration names are found as the test finds them.
        order = {"order": "spawn", "node": node, "path": [entry for entry in sys.path if entry]}
        return int(self._ask(order, [control.fileno()])["pid"])

    def signal(self, pid: int, number: int) -> bool:
        """Whether the node was still there to get the signal."""
        return bool(self._ask({"order": "signal", "pid": pid, "signal": number})["sent"])

    def poll(self, pid: int) -> int | None:
        """The exit code of a node, None while it runs."""
        return self._code({"order": "wait", "pid": pid, "now": True})

    def wait(self, pid: int) -> int | None:
        """The exit code of a node that is about to end."""
        return self._code({"order": "wait", "pid": pid, "now": False})

    def own(self, folder: str) -> None:
        """Remove a directory if the test ends without doing so."""
        self._tell({"order": "own", "folder": folder})

    def remove(self, folder: str) -> None:
        """Remove a directory in the background."""
        self._tell({"order": "remove", "folder": folder})

    def close(self) -> None:
        """End the template and every node that is left."""
        self._orders.close()
        if self.pid != os.getpid():
            return
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()

    def _code(self, order: dict[str, Any]) -> int | None:
        code = self._ask(order)["code"]
        return None if code is None else int(code)

    def _tell(self, order: dict[str, Any]) -> None:
        with self._lock:
            self._await_ready()
            wire_format.send(self._orders, order)

    def _ask(self, order: dict[str, Any], descriptors: list[int] | None = None) -> dict[str, Any]:
        with self._lock:
            self._await_ready()
            try:
                wire_format.send(self._orders, order, descriptors or ())
                answer = wire_format.receive(self._orders)
            except OSError as error:
                raise BrokerError(f"the template process does not answer: {error}") from error
            if answer is wire_format.ENDED:
                raise BrokerError(f"the template process has ended: {self._last_words()}")
            return dict(answer)

    def _await_ready(self) -> None:
        if self._ready:
            return
        self._orders.settimeout(_READY_S_MAX)
        try:
            message = wire_format.receive(self._orders)
        except TimeoutError:
            raise BrokerStartError(
                f"the template process was not ready within {_READY_S_MAX:.0f} s"
            ) from None
        if message is wire_format.ENDED:
            raise BrokerStartError(f"the template process ended at start: {self._last_words()}")
        self._orders.settimeout(_ANSWER_S_MAX)
        self._ready = True

    def _last_words(self) -> str:
        self._process.wait(5)
        if self._process.stderr is None:
            return ""
        return self._process.stderr.read().decode(errors="replace")[-2000:]


_shared: Template | None = None
_shared_lock = threading.Lock()


def start_template() -> Template:
    """The process's template; started now if there is none, without waiting for it."""
    global _shared
    with _shared_lock:
        if _shared is None or not _shared.usable:
            _shared = Template()
            atexit.register(_shared.close)
        return _shared
