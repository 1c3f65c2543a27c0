# cython: boundscheck=False, wraparound=False, annotation_typing=False
"""Decrypts the TLS records that came, with one call of OpenSSL for each.

Plain Python, and with `_tls_records.pxd` beside it also the source of a compiled module. Some
clients send records of a few bytes, so what is done around each call counts.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from types import SimpleNamespace

try:
    import cython
except ImportError:
    globals()["cython"] = SimpleNamespace(compiled=False)

COMPILED: bool = cython.compiled

if not cython.compiled:

    def after(room: tuple[int, memoryview], count: int) -> tuple[int, memoryview]:
        """The room without its first bytes."""
        return room[0], room[1][count:]


def read_records(
    read: Callable[[int, memoryview], int], incoming: ssl.MemoryBIO, buffer: memoryview
) -> tuple[int, bool]:
    """How many bytes are decrypted into the buffer, and whether the peer said that it was the end.

    Reads until the buffer is full or the next record is not complete. Raises ssl.SSLError.
    """
    size = len(buffer)
    count = 0
    # `read` takes the size of the view where the number is larger.
    room = (size, memoryview(buffer))
    try:
        while True:
            received = read(*room)
            if not received:
                return count, True
            count += received
            if count == size or not incoming.pending:
                return count, False
            room = after(room, received)
    except ssl.SSLWantReadError:
        return count, False
