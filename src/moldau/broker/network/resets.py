"""Finds out that a client has reset its connection when the loop does not report it.

libuv reports a socket with an error once and then watches it no longer. If that one call receives
the data that came before the reset, and nothing is sent then, nothing else would find the error,
and the socket would stay open. So whoever receives and does not send asks the socket itself.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Protocol

__all__ = ["Broken", "reset_watch", "socket_error"]


class Broken(Protocol):
    """The connection, or what else has to be closed."""

    def on_broken(self, error: OSError) -> None: ...


def reset_watch(channel: object, owner: Broken) -> Callable[[], None]:
    """A function that has the owner close if the channel is broken. Only channels over a real
    socket, which have its `getsockopt`, can be asked."""
    getsockopt: Callable[[int, int], int] | None = getattr(channel, "getsockopt", None)

    def notice_reset() -> None:
        if getsockopt is not None and (error := socket_error(getsockopt)) is not None:
            owner.on_broken(error)

    return notice_reset


def socket_error(getsockopt: Callable[[int, int], int]) -> OSError | None:
    code = getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    return OSError(code, os.strerror(code)) if code else None
