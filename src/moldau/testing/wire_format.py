"""Messages between a test, its template process and its nodes: JSON with a length in front.

Both ends are of one version of this package, so nothing here needs to be compatible.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterable
from typing import Any, Final

__all__ = ["ENDED", "encode", "receive", "receive_with_descriptor", "send"]

_LENGTH: Final = struct.Struct(">I")
#: What is received when the other end is no more.
ENDED: Final = None


def encode(message: Any) -> bytes:
    body = json.dumps(message, separators=(",", ":")).encode()
    return _LENGTH.pack(len(body)) + body


def send(to: socket.socket, message: Any, descriptors: Iterable[int] = ()) -> None:
    """Send one message, and file descriptors with it."""
    data, given = encode(message), list(descriptors)
    sent = socket.send_fds(to, [data], given) if given else to.send(data)
    if sent < len(data):
        to.sendall(data[sent:])


def receive(source: socket.socket) -> Any:
    """The next message; ENDED if there will be none."""
    head = _exactly(source, _LENGTH.size)
    if head is None:
        return ENDED
    return _body(source, head)


def receive_with_descriptor(source: socket.socket) -> tuple[Any, int | None]:
    """The next message and the file descriptor that came with it."""
    head, descriptors, _, _ = socket.recv_fds(source, _LENGTH.size, 1)
    descriptor = descriptors[0] if descriptors else None
    if not head:
        return ENDED, None
    while len(head) < _LENGTH.size:
        more = source.recv(_LENGTH.size - len(head))
        if not more:
            return ENDED, None
        head += more
    return _body(source, head), descriptor


def _body(source: socket.socket, head: bytes) -> Any:
    (length,) = _LENGTH.unpack(head)
    body = _exactly(source, length)
    return ENDED if body is None else json.loads(body)


def _exactly(source: socket.socket, length: int) -> bytes | None:
    parts = b""
    while len(parts) < length:
        try:
            more = source.recv(length - len(parts))
        except ConnectionResetError:
            return None
        if not more:
            return None
        parts += more
    return parts
