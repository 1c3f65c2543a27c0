"""Ports of servers under test, each given to one test process only.

Between the choice of a port and the start of its server, and whenever that server is down, nobody
listens there. So the ports lie below those that the system gives to outgoing connections and to
whoever asks for any port, and a process takes them from blocks that are its own while it lives.
"""

from __future__ import annotations

import random
import socket
import sys

# Not those from which `moldau cluster --port 0` chooses.
FIRST, END, BLOCK_SIZE = 10_000, 20_000, 50


class Ports:
    """Gives out each port once."""

    def __init__(self) -> None:
        self._left: list[int] = []
        self._blocks: list[socket.socket] = []

    def take(self) -> int:
        while True:
            if not self._left:
                self._left = list(self._new_block())
            port = self._left.pop()
            if is_free(port):
                return port

    def _new_block(self) -> range:
        starts = list(range(FIRST, END, BLOCK_SIZE))
        random.SystemRandom().shuffle(starts)
        for start in starts:
            if self._claim(start):
                return range(start, start + BLOCK_SIZE)
        raise RuntimeError(f"all ports from {FIRST} to {END} are claimed by test processes")

    def _claim(self, start: int) -> bool:
        """A name outside the file system, which is gone with the process that has it."""
        if sys.platform != "linux":
            return True
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claim.bind(f"\0moldau-test-ports-{start}")
        except OSError:
            claim.close()
            return False
        self._blocks.append(claim)
        return True


def is_free(port: int) -> bool:
    """Whether nobody listens there on any address."""
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
        return True


_ports = Ports()


def free_port() -> int:
    return _ports.take()
