"""TLS records after the handshake, changed between the client's OpenSSL and the socket."""

from __future__ import annotations

import asyncio
import random
import ssl
import struct
from collections.abc import Callable, Sequence
from typing import Final

from fuzz.mutations import flipped

_RECEIVE_BYTES: Final = 65_536
#: What a frame is divided into, one record for each piece.
_PIECE_BYTES: Final = (1, 3, 10, 100, 16_384)
_PIECES_MAX: Final = 300
_KINDS: Final = (0, 20, 21, 22, 23, 24, 255)


def send(writer: asyncio.StreamWriter, data: bytes) -> None:
    """uvloop raises RuntimeError where asyncio drops what is written to a closed connection."""
    if writer.transport.is_closing():
        raise ConnectionResetError("the broker has closed the connection")
    writer.write(data)


class Tls:
    """The client's side of a connection, with its records in the caller's hands."""

    def __init__(
        self,
        context: ssl.SSLContext,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        session: ssl.SSLSession | None,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, session=session)

    @property
    def session(self) -> ssl.SSLSession | None:
        return self._object.session

    async def handshake(self) -> None:
        while True:
            try:
                self._object.do_handshake()
            except ssl.SSLWantReadError:
                send(self._writer, self._outgoing.read())
                await self._receive()
            else:
                send(self._writer, self._outgoing.read())
                return

    async def _receive(self) -> None:
        data = await self._reader.read(_RECEIVE_BYTES)
        if not data:
            raise asyncio.IncompleteReadError(b"", None)
        self._incoming.write(data)

    def records(self, data: bytes, piece_bytes: int) -> list[bytes]:
        found = []
        for start in range(0, len(data), piece_bytes):
            self._object.write(data[start : start + piece_bytes])
            found.append(self._outgoing.read())
        return found

    async def readexactly(self, count: int) -> bytes:
        """What the broker sends; a fatal alert is raised as `ConnectionError`."""
        data = b""
        while len(data) < count:
            try:
                piece = self._object.read(count - len(data))
            except ssl.SSLWantReadError:
                await self._receive()
                continue
            except ssl.SSLError as error:
                raise ConnectionError(str(error)) from error
            if not piece:
                raise asyncio.IncompleteReadError(data, count)
            data += piece
        return data


def piece_bytes(data: bytes, chance: random.Random) -> int:
    return max(chance.choice(_PIECE_BYTES), len(data) // _PIECES_MAX, 1)


def spoiled_records(records: Sequence[bytes], chance: random.Random) -> bytes:
    """The records with one changed, missing, repeated, exchanged, cut off or of another length, or
    with others between them; sometimes as they are, when all that is odd is their size."""
    parts = list(records)
    at = chance.randrange(len(parts))
    other = chance.randrange(len(parts))

    def exchanged() -> None:
        parts[at], parts[other] = parts[other], parts[at]

    def changed(part: bytes) -> Callable[[], None]:
        return lambda: parts.__setitem__(at, part)

    ways: tuple[Callable[[], None], ...] = (
        lambda: None,
        changed(flipped(parts[at], chance)),
        changed(parts[at][:5] + flipped(parts[at][5:], chance)),
        changed(_with_header(parts[at], chance)),
        changed(parts[at][: chance.randrange(len(parts[at]))]),
        lambda: parts.__delitem__(at),
        lambda: parts.insert(at, parts[other]),
        exchanged,
        lambda: parts.insert(at, _foreign(chance)),
        lambda: parts.append(_foreign(chance)),
    )
    chance.choice(ways)()
    return b"".join(parts)


def _with_header(record: bytes, chance: random.Random) -> bytes:
    size = len(record) - 5
    sizes = (0, 1, size - 1, size + 1, 16_384 + 256, 16_384 + 257, 65_535)
    versions = (0x0303, 0x0301, 0x0304, 0, 0xFFFF)
    head = struct.pack(">BHH", chance.choice(_KINDS), chance.choice(versions), chance.choice(sizes))
    return head + record[5:]


def _foreign(chance: random.Random) -> bytes:
    """A record in the clear: alerts (close_notify, a warning, fatal), a change of cipher, a key
    update, a hello for a second handshake, bytes."""
    kind, body = chance.choice(
        (
            (21, b"\x01\x00"),
            (21, b"\x01\x5a"),
            (21, b"\x02\x28"),
            (20, b"\x01"),
            (22, b"\x18\x00\x00\x01\x01"),
            (22, b"\x01\x00\x00\x26\x03\x03" + bytes(36)),
            (23, b""),
            (23, chance.randbytes(chance.choice((1, 17, 40, 16_384)))),
            (chance.choice(_KINDS), chance.randbytes(20)),
        )
    )
    return struct.pack(">BHH", kind, 0x0303, len(body)) + body
