"""A client of MQTT 5 that sends bytes as it is told to, for what no library would send."""

from __future__ import annotations

import socket
from collections import deque
from types import TracebackType

from moldau.services.mqtt.machine.decoding import Framer, decode_packet
from moldau.services.mqtt.machine.packets import V5, Auth, PacketType
from moldau.services.mqtt.machine.properties import Properties, read_properties

__all__ = ["Raw"]


class Raw:
    """A client that sends what it is told to; `with` closes it."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._framer = Framer(1 << 20)
        self._frames: deque[tuple[int, bytes]] = deque()

    def __enter__(self) -> Raw:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def frame(self) -> tuple[int, bytes]:
        while not self._frames:
            data = self._socket.recv(65_536)
            assert data, "the proxy has hung up without a word"
            self._frames.extend(self._framer.feed(data))
        return self._frames.popleft()

    def ended(self) -> bool:
        """Whether the proxy hangs up without another packet."""
        return not self._frames and self._socket.recv(65_536) == b""

    def auth(self) -> Auth:
        packet = decode_packet(*self.frame(), V5)
        assert isinstance(packet, Auth)
        return packet

    def connack(self) -> tuple[int, Properties]:
        first, body = self.frame()
        assert first >> 4 == PacketType.CONNACK
        return body[1], read_properties(body, 2, frozenset(range(0x30)))[0]

    def reason(self, kind: PacketType) -> int:
        first, body = self.frame()
        assert first >> 4 == kind
        return body[0] if kind == PacketType.DISCONNECT else body[2] if len(body) > 2 else 0
