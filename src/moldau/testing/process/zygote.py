"""The template process: it has the broker imported, and every node is a fork of it.

A fork costs about ten milliseconds, importing the broker half a second. A node is still a process
of its own: it can be killed and stopped as any, and shares no interpreter lock with the test.

Invariants: this process has one thread and no event loop when it forks; it signals only
children that it has not reaped, so no signal ever hits a stranger with the same id; and when the
test's process is no more, its nodes end and their folders are removed.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import socket
import sys
import traceback
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from moldau.readable import wait_readable
from moldau.testing import wire_format

#: How often it is looked whether the test's process is still there; its socket mostly says it.
_PARENT_CHECK_S: Final = 2.0


class Zygote:
    def __init__(self, orders: socket.socket) -> None:
        self._orders = orders
        self._parent = os.getppid()
        #: Exit codes of children, None while they run; negative for a signal.
        self._children: dict[int, int | None] = {}
        self._folders: set[str] = set()

    def serve(self, in_idle_time: Iterator[None]) -> None:
        wire_format.send(self._orders, {"ready": os.getpid()})
        idle = True
        while True:
            timeout_s = 0.0 if idle else _PARENT_CHECK_S
            if not wait_readable(self._orders, timeout_s):
                if idle:
                    idle = _go_on(in_idle_time)
                elif os.getppid() != self._parent:
                    return
                continue
            order, descriptor = wire_format.receive_with_descriptor(self._orders)
            if order is wire_format.ENDED:
                return
            self._obey(order, descriptor)

    def end(self) -> None:
        """Leave nothing behind."""
        for pid, code in self._children.items():
            if code is None:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
        for folder in self._folders:
            shutil.rmtree(folder, ignore_errors=True)

    def _obey(self, order: dict[str, Any], descriptor: int | None) -> None:
        what = order["order"]
        if what == "spawn" and descriptor is not None:
            self._answer({"pid": self._spawn(order["node"], order["path"], descriptor)})
        elif what == "signal":
            self._answer({"sent": self._signal(order["pid"], order["signal"])})
        elif what == "wait":
            # Only asked once the child is as good as gone.
            self._answer({"code": self._poll(order["pid"], os.WNOHANG if order["now"] else 0)})
        elif what == "own":
            self._folders.add(order["folder"])
        elif what == "remove":
            self._folders.discard(order["folder"])
            shutil.rmtree(order["folder"], ignore_errors=True)

    def _answer(self, answer: dict[str, Any]) -> None:
        wire_format.send(self._orders, answer)

    def _spawn(self, node: dict[str, Any], path: list[str], descriptor: int) -> int:
        pid = os.fork()
        if pid:
            os.close(descriptor)
            self._children[pid] = None
            return pid
        code = 70
        try:
            self._orders.close()
            sys.path.extend(entry for entry in path if entry not in sys.path)
            code = _be_node(node, descriptor)
        except BaseException:
            traceback.print_exc()
        finally:
            with suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            # Nothing of the template's own end is to happen twice.
            os._exit(code)

    def _signal(self, pid: int, number: int) -> bool:
        if self._poll(pid, os.WNOHANG) is not None:
            return False
        os.kill(pid, number)
        return True

    def _poll(self, pid: int, options: int) -> int | None:
        # One that is not known here was a former template's, and ended with it.
        code = self._children.get(pid, -signal.SIGKILL)
        if code is None:
            ended, status = os.waitpid(pid, options)
            if ended:
                code = self._children[pid] = os.waitstatus_to_exitcode(status)
        return code


def _go_on(work: Iterator[None]) -> bool:
    """Whether there is more of it; when there is not, its results are shared with all nodes."""
    for _ in work:
        return True
    gc.freeze()
    return False


def _be_node(node: dict[str, Any], descriptor: int) -> int:
    from moldau.testing.process.node import run_node

    _end_with_parent()
    log = os.open(node["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    return run_node(node, socket.socket(fileno=descriptor))


def _end_with_parent() -> None:
    """On Linux also a stopped process ends with its parent; elsewhere the control socket's end
    is what ends a node."""
    if sys.platform != "linux":
        return
    import ctypes

    set_parent_death_signal = 1
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


def main(descriptor: int) -> None:
    from moldau.testing.process.node import warm_up
    from moldau.testing.process.warming import warm_codecs

    # Ctrl-C is the test's to handle: it tears its brokers down itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    orders = socket.socket(fileno=descriptor)
    orders.setblocking(True)
    warm_up()
    gc.collect()
    # What exists now is shared with all nodes as long as no collector writes to it.
    gc.freeze()
    zygote = Zygote(orders)
    try:
        with suppress(BrokenPipeError, ConnectionResetError):
            zygote.serve(warm_codecs())
    finally:
        zygote.end()


if __name__ == "__main__":
    main(int(sys.argv[1]))
