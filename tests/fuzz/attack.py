"""Sends cases over some connections at a time and counts what becomes of them."""

from __future__ import annotations

import asyncio
import random
import socket
import ssl
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from fuzz.cases import Case, Manner, Place, case, sound
from fuzz.records import Tls, piece_bytes, send, spoiled_records
from fuzz.target import Target
from moldau.wire.apis import ApiKey
from moldau.wire.messages import SaslAuthenticateRequest, SaslHandshakeRequest

WORKERS: Final = 24
#: For the answer to a spoiled frame: some, as a join of a group, have none for a long time.
ANSWER_SECONDS_MAX: Final = 0.25
#: For what has to be answered.
SOUND_SECONDS_MAX: Final = 30.0
_LOGIN: Final = (
    sound(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism="PLAIN")),
    sound(
        ApiKey.SASL_AUTHENTICATE,
        2,
        SaslAuthenticateRequest(auth_bytes=b"\x00mallory\x00mallory-secret"),
    ),
)
_KEPT: Final = (Place.PLAINTEXT, Place.SSL, Place.LOGGED_IN, Place.CONTROLLER_LOGGED_IN)
_LOGGED_IN: Final = (Place.LOGGED_IN, Place.CONTROLLER_LOGGED_IN)


class Broken(Exception):
    """The broker does not do what it must."""


class _Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def close(self) -> None:
        self.writer.transport.abort()

    def write(self, data: bytes) -> None:
        send(self.writer, data)

    async def answered(self, data: bytes) -> None:
        """Send what has to be answered."""
        self.write(data)
        async with asyncio.timeout(SOUND_SECONDS_MAX):
            (size,) = struct.unpack(">i", await self.reader.readexactly(4))
            await self.reader.readexactly(size)


class Attack:
    def __init__(self, target: Target, seed: int, on_case: Callable[[], None]) -> None:
        self._target = target
        self._seed = seed
        self._on_case = on_case
        self.outcomes: Counter[str] = Counter()
        self.places: Counter[Place] = Counter()
        self._session: ssl.SSLSession | None = None
        self._ports = {
            Place.PLAINTEXT: target.plaintext,
            Place.SSL: target.ssl,
            Place.BEFORE_TLS: target.ssl,
            Place.IN_TLS: target.ssl,
            Place.BEFORE_LOGIN: target.sasl,
            Place.LOGGED_IN: target.sasl,
            Place.CONTROLLER_BEFORE_LOGIN: target.controller,
            Place.CONTROLLER_LOGGED_IN: target.controller,
        }

    async def run(self, first: int, count: int) -> None:
        indexes = iter(range(first, first + count))
        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(self._work(indexes))

    async def _work(self, indexes: Iterator[int]) -> None:
        kept: dict[Place, _Connection] = {}
        try:
            for index in indexes:
                each = case(self._seed, index)
                try:
                    outcome = await self._send(each, kept)
                except OSError as error:
                    where = f"case {index} ({each.place.value}, {each.what})"
                    raise Broken(f"{where}: {error}") from error
                self.outcomes[outcome] += 1
                self.places[each.place] += 1
                self._on_case()
        finally:
            for connection in kept.values():
                connection.close()

    async def _send(self, each: Case, kept: dict[Place, _Connection]) -> str:
        connection = kept.pop(each.place, None)
        if connection is None:
            connection = await self._connect(each.place)
        outcome = "closed"
        try:
            for frame in each.before:
                await connection.answered(frame)
            outcome = await self._outcome(each, connection)
        except (asyncio.IncompleteReadError, ConnectionError):
            # The broker may close before all has been sent.
            pass
        if outcome == "answered" and each.place in _KEPT:
            kept[each.place] = connection
        else:
            connection.close()
        return outcome

    async def _connect(self, place: Place) -> _Connection:
        tls = self._target.tls if place is Place.SSL else None
        async with asyncio.timeout(SOUND_SECONDS_MAX):
            reader, writer = await asyncio.open_connection("127.0.0.1", self._ports[place], ssl=tls)
        connection = _Connection(reader, writer)
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if place in _LOGGED_IN:
            try:
                for frame in _LOGIN:
                    await connection.answered(frame)
            except BaseException:
                # Or it would count as one that the broker has kept.
                connection.close()
                raise
        return connection

    async def _in_tls(self, each: Case, connection: _Connection) -> str:
        chance = random.Random(each.index)
        # Every second one resumes the session of another: a handshake in half the time.
        session = self._session if chance.random() < 0.5 else None
        tls = Tls(self._target.tls, connection.reader, connection.writer, session=session)
        async with asyncio.timeout(SOUND_SECONDS_MAX):
            await tls.handshake()
        records = tls.records(each.data, piece_bytes(each.data, chance))
        connection.write(spoiled_records(records, chance))
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                (size,) = struct.unpack(">i", await tls.readexactly(4))
                await tls.readexactly(size)
                self._session = tls.session
                return "answered"
        except TimeoutError:
            return "no answer yet"

    async def _outcome(self, each: Case, connection: _Connection) -> str:
        if each.place is Place.IN_TLS:
            return await self._in_tls(each, connection)
        if each.manner is Manner.BYTE_BY_BYTE:
            for position in range(len(each.data)):
                connection.write(each.data[position : position + 1])
                await connection.writer.drain()
        else:
            connection.write(each.data)
        if each.manner is Manner.HALF:
            await connection.writer.drain()
            return "half a frame"
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                head = await connection.reader.readexactly(4)
                if each.place is Place.BEFORE_TLS:
                    return "answered"
                await connection.reader.readexactly(struct.unpack(">i", head)[0])
                return "answered"
        except TimeoutError:
            return "no answer yet"
