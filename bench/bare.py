"""Bare loopback servers, the limits of fetch and of one synchronous round trip.

python -m bench.bare echo     each 4-byte-sized frame is answered with a frame of 60 bytes
python -m bench.bare send     each frame is answered with ANSWER_SIZE bytes from memory
"""

from __future__ import annotations

import socket
import struct
import sys

ANSWER_SIZE = 1 << 20


def receive_frame(connection: socket.socket, buffer: memoryview) -> bool:
    """Read one frame into `buffer`; False when the peer is gone."""
    received = 0
    needed = 4
    while received < needed:
        count = connection.recv_into(buffer[received:])
        if count == 0:
            return False
        received += count
        if received >= 4:
            needed = 4 + struct.unpack_from(">i", buffer)[0]
    return True


def main() -> None:
    answer_size = 60 if sys.argv[1] == "echo" else ANSWER_SIZE
    answer = memoryview(struct.pack(">i", answer_size) + bytes(answer_size))
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    buffer = memoryview(bytearray(2 << 20))
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while receive_frame(connection, buffer):
            connection.sendall(answer)
        connection.close()


if __name__ == "__main__":
    main()
