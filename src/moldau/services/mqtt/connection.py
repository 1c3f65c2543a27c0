"""Connection: one client's socket. Packets come in, in order; what the session has goes out.

Bounded on every side: the size of a packet, packets that wait here (reading pauses), what the
kernel has not taken (the session stops writing), the time until CONNECT and between packets.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from moldau.client import KafkaError
from moldau.services.mqtt.authentication import Authentication
from moldau.services.mqtt.backend import Backend
from moldau.services.mqtt.handling import Handling
from moldau.services.mqtt.machine import encoding
from moldau.services.mqtt.machine.decoding import Framer, decode_connect, decode_packet
from moldau.services.mqtt.machine.outbound import Delivery
from moldau.services.mqtt.machine.packets import V4, V5, Auth, Connect, Disconnect, Packet
from moldau.services.mqtt.machine.properties import NO_PROPERTIES, Properties, Property
from moldau.services.mqtt.machine.reasons import (
    MqttError,
    Reason,
    connect_return_code,
    protocol_error,
)
from moldau.services.mqtt.message_encoder import MessageEncoder

__all__ = ["Connection"]

logger = logging.getLogger(__name__)

#: Packets that wait before reading pauses.
_INBOX_MAX: Final = 512
_INBOX_BYTES_MAX: Final = 1 << 20
_REASON_TEXT_MAX: Final = 500
#: What a packet with a reason has at most beside it and its own list: header, lengths, identifier.
_PACKET_BYTES: Final = 20
#: For a client to read why it is disconnected.
_LINGER_S: Final = 1.0


class Connection(asyncio.Protocol):
    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._config = backend.config
        self._metrics = backend.metrics
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._framer = Framer(self._config["packet.size.max"])
        self._inbox: deque[tuple[int, bytes] | MqttError] = deque()
        self._inbox_bytes = 0
        self._reading = True
        self._worker: asyncio.Task[None] | None = None
        self._handling: Handling | None = None
        self._authentication: Authentication | None = None
        #: CONNECT, until its client is authenticated.
        self._connecting: Connect | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._lingering: asyncio.TimerHandle | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._last_s = 0.0
        self._keep_alive_s = 0.0
        self.version = V4
        self.connected = False
        """Whether CONNACK was sent."""
        self.writable = True
        self.lost = False
        self._wants_reasons = True
        self._encoder: MessageEncoder | None = None

    # Called by the loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        if not self._backend.admit(self):
            self.lost = True
            transport.close()
            return
        limit = self._config["write.buffer.bytes.max"]
        self._transport.set_write_buffer_limits(high=limit)  # type: ignore[union-attr]
        self._time_connect()

    def data_received(self, data: bytes) -> None:
        if self.lost:
            return
        self._last_s = self._loop.time()
        self._metrics.bytes_received_total += len(data)
        if self._worker is None and self._handling is not None:
            data = self._framer.join(data)
            done = self._handling.at_once(data)
            data = data[done:] if done else data
        inbox = self._inbox
        try:
            for item in self._framer.feed(data):
                inbox.append(item)
                self._inbox_bytes += len(item[1])
        except MqttError as error:
            inbox.append(error)
        if len(inbox) > _INBOX_MAX or self._inbox_bytes > _INBOX_BYTES_MAX:
            self._pause()
        if self._worker is None and inbox:
            self._worker = self._backend.run(self._work())

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self.writable = False

    def resume_writing(self) -> None:
        self.writable = True
        if self._handling is not None:
            self._handling.session.flush()

    def connection_lost(self, error: Exception | None) -> None:
        self._backend.dismiss(self)
        if self._lingering is not None:
            self._lingering.cancel()
        self._end()

    def _end(self) -> None:
        """Nothing more comes from the client. What came before is handled: a client may publish
        and hang up at once. Then its session ends, or waits for it to return."""
        if self.lost:
            return
        self.lost = True
        for timer in (self._timer, self._expiry):
            if timer is not None:
                timer.cancel()
        if self._worker is None:
            self._worker = self._backend.run(self._leave())

    # Packets, one after the other.

    async def _work(self) -> None:
        try:
            while self._inbox:
                item = self._inbox.popleft()
                if isinstance(item, MqttError):
                    raise item
                first, body = item
                self._inbox_bytes -= len(body)
                self._metrics.packets_received_total += 1
                if self._connecting is not None:
                    await self._on_authenticating(decode_packet(first, body, self.version))
                elif self._handling is None:
                    await self._connect(first, body)
                else:
                    await self._on_packet(self._handling, decode_packet(first, body, self.version))
                if not self._reading and len(self._inbox) < _INBOX_MAX // 2:
                    self._resume()
        except MqttError as error:
            logger.info("a connection is closed: %s", error.text)
            self.close(error.reason, error.text)
        except (KafkaError, TimeoutError) as error:
            logger.warning("a connection is closed: %s", error)
            self.close(Reason.SERVER_UNAVAILABLE, "the brokers cannot be reached")
        except Exception:
            # A bug; the other connections go on.
            logger.exception("a connection is closed")
            self.close(Reason.UNSPECIFIED_ERROR)
        if self.lost:
            await self._leave()
        elif self._inbox:
            self._worker = self._backend.run(self._work())
        else:
            self._worker = None

    async def _leave(self) -> None:
        if self._authentication is not None:
            self._authentication.finish()
        if self._handling is not None:
            handling, self._handling = self._handling, None
            try:
                await handling.leave()
            except (KafkaError, TimeoutError) as error:
                logger.warning("the end of a session was not stored: %s", error)

    async def _connect(self, first: int, body: bytes) -> None:
        packet = decode_connect(first, body)
        self.version = packet.version
        properties = packet.properties
        self._wants_reasons = properties.get(Property.REQUEST_PROBLEM_INFORMATION, 1) == 1
        self._encoder = MessageEncoder(packet, self._backend.clock)
        method = properties.get(Property.AUTHENTICATION_METHOD)
        if method is None:
            await self._open(packet, NO_PROPERTIES)
            return
        self._authentication = Authentication(self._config, self.write, method)
        self._connecting = packet
        final = await self._authentication.begin(properties.get(Property.AUTHENTICATION_DATA))
        if final is not None:
            await self._open(packet, final)

    async def _on_authenticating(self, packet: Packet) -> None:
        """Between CONNECT and CONNACK."""
        if isinstance(packet, Disconnect):
            self.hang_up()
            return
        if not isinstance(packet, Auth) or self._authentication is None or not self._connecting:
            raise protocol_error("only AUTH and DISCONNECT may come before CONNACK")
        final = await self._authentication.on_auth(packet, connected=False)
        if final is not None:
            await self._open(self._connecting, final)

    async def _on_packet(self, handling: Handling, packet: Packet) -> None:
        if not isinstance(packet, Auth) or self._authentication is None:
            await handling.handle(packet)
            return
        final = await self._authentication.on_auth(packet, connected=True)
        if final is not None:
            self._authentication.finish()
            self.write(encoding.auth(Reason.SUCCESS, final))

    async def _open(self, packet: Connect, final: Properties) -> None:
        """`final` is what ends the authentication."""
        handling, answer, present = await Handling.open(
            self._backend, self, packet, self._authentication
        )
        self._connecting = None
        self._handling = handling
        answer = {**answer, **final}
        if not self.lost:
            self._start_keep_alive(packet)
        self.connected = True
        self._metrics.clients_connected_total += 1
        self.write(
            encoding.connack(
                self.version, session_present=present, code=Reason.SUCCESS, properties=answer
            )
        )
        handling.resume()

    # Time.

    def _time_connect(self) -> None:
        timeout_s = self._config["connect.timeout.ms"] / 1000
        self._timer = self._loop.call_later(timeout_s, self._connect_timed_out)

    def _connect_timed_out(self) -> None:
        if self._worker is not None:
            # It has come, and is being handled: many clients that connect at once take a while.
            self._time_connect()
        elif self._handling is None:
            logger.info("a connection is closed: no CONNECT within connect.timeout.ms")
            if self._transport is not None:
                self._transport.abort()

    def _start_keep_alive(self, packet: Connect) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        most_s = self._config["keep.alive.max.s"]
        keep_alive_s = packet.keep_alive_s
        if self.version == V5 and most_s and not 0 < keep_alive_s <= most_s:
            keep_alive_s = most_s
        self._keep_alive_s = keep_alive_s * 1.5
        if self._keep_alive_s:
            self._timer = self._loop.call_later(self._keep_alive_s, self._check_alive)

    def _check_alive(self) -> None:
        left_s = self._last_s + self._keep_alive_s - self._loop.time()
        if left_s <= 0 and self._reading:
            self.close(Reason.KEEP_ALIVE_TIMEOUT, "nothing came within 1.5 times the keep alive")
        else:
            self._timer = self._loop.call_later(max(left_s, 0.5), self._check_alive)

    # Writing.

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self.lost:
            self._metrics.bytes_sent_total += len(data)
            self._transport.write(data)

    def encode(self, delivery: Delivery) -> bytes | None:
        """None for a message that is larger than the client takes."""
        data = None if self._encoder is None else self._encoder.encode(delivery)
        if data is not None:
            self._metrics.messages_sent_total += 1
        return data

    def reason_properties(self, text: str, beside: int = 0) -> Properties:
        """`beside` is how much the packet has besides: a text must not make it too large."""
        text = text[:_REASON_TEXT_MAX]
        if not text or not self._wants_reasons:
            return NO_PROPERTIES
        most = 0 if self._encoder is None else self._encoder.packet_max
        if 0 < most < beside + _PACKET_BYTES + len(text.encode()):
            return NO_PROPERTIES
        return {Property.REASON_STRING: text}

    def close(self, reason: Reason, text: str = "") -> None:
        """Give the client the reason, as far as its version has one, and hang up."""
        if self.lost or self._transport is None or self._transport.is_closing():
            return
        self._metrics.clients_refused_total += 1
        properties = self.reason_properties(text)
        if not self.connected:
            if reason not in (Reason.MALFORMED_PACKET, Reason.PROTOCOL_ERROR):
                code = reason if self.version == V5 else connect_return_code(reason)
                self._transport.write(
                    encoding.connack(
                        self.version, session_present=False, code=code, properties=properties
                    )
                )
        elif self.version == V5:
            self._transport.write(encoding.disconnect(V5, reason, properties))
        if self._transport.can_write_eof():
            # Closing with unread packets would reset the connection, and the reason be lost.
            with suppress(OSError):
                self._transport.write_eof()
            if not self._reading:
                self._transport.resume_reading()
        else:
            self._transport.close()
        self._lingering = self._loop.call_later(_LINGER_S, self._transport.abort)
        self._inbox.clear()
        self._end()

    def close_after(self, seconds: float) -> None:
        """The login lasts so long."""
        text = "the login has ended: connect again"
        self._expiry = self._loop.call_later(seconds, self.close, Reason.MAXIMUM_CONNECT_TIME, text)

    def hang_up(self) -> None:
        """After the client's DISCONNECT."""
        self._inbox.clear()
        if self._transport is not None:
            self._transport.close()
        self._end()

    def _pause(self) -> None:
        if self._reading and self._transport is not None:
            self._reading = False
            self._transport.pause_reading()

    def _resume(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._reading = True
            self._last_s = self._loop.time()
            self._transport.resume_reading()

    def is_abandoned(self) -> bool:
        """Whether the client has hung up and left nothing to be done."""
        return self.lost and not self._inbox

    def soon(self, callback: Callable[[], None]) -> None:
        self._loop.call_soon(callback)
