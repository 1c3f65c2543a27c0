"""Incoming: what a connected client publishes, and the acknowledgements of it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

from moldau.client import KafkaError
from moldau.services.mqtt.backend import Backend
from moldau.services.mqtt.clients import ClientSet
from moldau.services.mqtt.machine import encoding
from moldau.services.mqtt.machine._plain_packets import pubacks
from moldau.services.mqtt.machine.inbound import Aliases, Pending, Receipt
from moldau.services.mqtt.machine.outbound import Delivery
from moldau.services.mqtt.machine.packets import V5, PacketType, Publish
from moldau.services.mqtt.machine.properties import NO_PROPERTIES, Properties, Property
from moldau.services.mqtt.machine.reasons import MqttError, Reason
from moldau.services.mqtt.machine.records import base_headers
from moldau.services.mqtt.publishing import reason_of
from moldau.services.mqtt.session import Session

__all__ = ["Incoming", "Line"]

_UNSENT_MAX: Final = 200
_LOOK_S: Final = 1.0
_ARRIVAL_S: Final = 2.0


class Line(Protocol):
    """The connection."""

    version: int
    writable: bool
    lost: bool

    def encode(self, delivery: Delivery) -> bytes | None: ...

    def write(self, data: bytes) -> None: ...

    def close(self, reason: Reason, text: str = "") -> None: ...

    def hang_up(self) -> None: ...

    def close_after(self, seconds: float) -> None: ...

    def is_abandoned(self) -> bool: ...

    def reason_properties(self, text: str, beside: int = 0) -> Properties: ...

    def soon(self, callback: Callable[[], None]) -> None: ...


class Incoming:
    def __init__(self, backend: Backend, line: Line, clients: ClientSet, session: Session) -> None:
        self._backend = backend
        self._line = line
        self._clients = clients
        self._session = session
        self._headers = base_headers(session.client_id)
        self._aliases = Aliases(backend.config["topic.alias.maximum"])
        self._acks_due = False
        #: The acknowledgement whose record is waited for.
        self._watched: Receipt | None = None
        #: QoS 2 messages that are not in the log yet, the first `_stored` of them stored.
        self._unsent: deque[tuple[Publish, Receipt, Pending]] = deque()
        self._stored = 0
        self._opened_s = asyncio.get_running_loop().time()
        self._sent = asyncio.Event()
        self._sender: asyncio.Task[None] | None = None

    def close(self) -> None:
        """The connection is gone: nobody waits any more."""
        self._sent.set()

    def on_plain(self, messages: list[tuple[bytes, bytes, int, int]]) -> int:
        """Publish messages that need no waiting; how many of them were, for the others take the
        long way."""
        futures = self._backend.publisher.publish_at_once(self._clients, self._headers, messages)
        begin = self._session.inbound.begin_sent
        for (_, _, packet_id, _), future in zip(messages, futures, strict=False):
            if packet_id:
                begin(packet_id, future)
        self._backend.metrics.messages_received_total += len(futures)
        self._watch()
        return len(futures)

    def _watch(self) -> None:
        """Wait for the first of the acknowledgements only: no other can leave before it."""
        first = self._session.inbound.first
        if first is not None and first.sent is not None and first is not self._watched:
            self._watched = first
            first.sent.add_done_callback(self._on_sent)

    def _on_sent(self, _: object) -> None:
        self._write_acks_soon()

    async def on_publish(self, packet: Publish) -> None:
        self._backend.metrics.messages_received_total += 1
        alias = packet.properties.get(Property.TOPIC_ALIAS)
        if alias is not None:
            packet.topic = self._aliases.resolve(packet.topic, alias)
        if packet.qos == 0:
            try:
                await self._backend.publisher.publish(self._clients, self._headers[0], packet, None)
            except MqttError as error:
                if self._line.version != V5:
                    raise
                self._line.close(error.reason, error.text)
            return
        inbound = self._session.inbound
        if packet.qos == 2 and packet.packet_id in inbound.pending:
            await self._on_repeated(packet, inbound.pending[packet.packet_id])
            return
        if inbound.unfinished >= inbound.receive_max and self._line.version == V5:
            raise MqttError(
                Reason.RECEIVE_MAXIMUM_EXCEEDED,
                f"more than {inbound.receive_max} messages are not acknowledged yet",
            )
        kind = PacketType.PUBACK if packet.qos == 1 else PacketType.PUBREC
        receipt = inbound.begin(kind, packet.packet_id)
        pending: Pending | None = None
        if packet.qos == 2:
            pending = self._backend.publisher.new_pending(packet.topic)
            pending.receipt = receipt
            inbound.pending[packet.packet_id] = pending
            if self._session.persistent:
                await self._send_once_stored(packet, receipt, pending)
                return
        await self._send(packet, receipt, pending)

    async def _send_once_stored(self, packet: Publish, receipt: Receipt, pending: Pending) -> None:
        """Messages that come meanwhile are stored together; they are sent in their order."""
        self._unsent.append((packet, receipt, pending))
        self._session.after_store(self._send_stored)
        while len(self._unsent) >= _UNSENT_MAX and not (self._session.ended or self._line.lost):
            self._sent.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._sent.wait(), _LOOK_S)

    def _send_stored(self) -> None:
        """One more of those that wait is stored."""
        self._stored += 1
        if self._sender is None or self._sender.done():
            self._sender = self._backend.run(self._send_all_stored())

    async def _send_all_stored(self) -> None:
        try:
            while self._stored:
                self._stored -= 1
                await self._send(*self._unsent.popleft())
                self._sent.set()
        except KafkaError as error:
            self._line.close(Reason.SERVER_UNAVAILABLE, str(error))
        finally:
            self._sent.set()

    async def _send(self, packet: Publish, receipt: Receipt, pending: Pending | None) -> None:
        def done(error: Exception | None) -> None:
            if pending is None:
                self._finish(receipt, error)
                return
            pending.sending = False
            pending.certain = error is None
            if error is not None:
                self._session.inbound.pending.pop(packet.packet_id, None)
                self._session.changed = True
            self._finish(pending.receipt or receipt, error)

        try:
            await self._backend.publisher.publish(
                self._clients, self._headers[packet.qos], packet, done, pending
            )
        except MqttError as error:
            done(error)

    async def _on_repeated(self, packet: Publish, pending: Pending) -> None:
        """A QoS 2 message that came before: it is written once."""
        receipt = self._session.inbound.begin(PacketType.PUBREC, packet.packet_id)
        pending.receipt = receipt
        if pending.sending:
            return
        if not pending.certain:
            pending.certain = await self._is_in_log(pending)
        if pending.certain:
            self._finish(receipt, None)
            return
        pending.sending = True
        await self._send(packet, receipt, pending)

    async def _is_in_log(self, pending: Pending) -> bool:
        publisher = self._backend.publisher
        if await publisher.is_in_log(self._clients, pending):
            return True
        # What another proxy was just sending arrives within this time.
        left_s = self._opened_s + _ARRIVAL_S - asyncio.get_running_loop().time()
        if left_s <= 0:
            return False
        await asyncio.sleep(left_s)
        return await publisher.is_in_log(self._clients, pending)

    def on_pubrel(self, packet_id: int) -> None:
        line = self._line
        found = self._session.inbound.pending.pop(packet_id, None)
        if found is None:
            code = Reason.PACKET_IDENTIFIER_NOT_FOUND
            line.write(encoding.ack(line.version, PacketType.PUBCOMP, packet_id, code))
            return
        data = encoding.ack(line.version, PacketType.PUBCOMP, packet_id)
        if self._session.persistent:
            self._session.after_store(lambda: line.write(data))
        else:
            line.write(data)

    def _finish(self, receipt: Receipt, error: Exception | None) -> None:
        if error is None:
            receipt.reason = Reason.SUCCESS
        else:
            receipt.reason, receipt.text = reason_of(error)
        self._write_acks_soon()

    def _write_acks_soon(self) -> None:
        if not self._acks_due:
            # All acknowledgements of a batch leave together.
            self._acks_due = True
            self._line.soon(self._write_acks)

    def _write_acks(self) -> None:
        self._acks_due = False
        line = self._line
        version = line.version
        parts: list[bytes] = []
        plain: list[int] = []
        for receipt in self._session.inbound.ready(_settle):
            reason = receipt.reason or 0
            if not reason and receipt.kind == PacketType.PUBACK:
                plain.append(receipt.packet_id)
                continue
            if plain:
                parts.append(pubacks(plain))
                plain.clear()
            if reason and version != V5:
                # 3.1.1 cannot refuse a message, and acknowledging it would be a lie.
                line.write(b"".join(parts))
                line.close(Reason(reason), receipt.text)
                return
            properties = line.reason_properties(receipt.text) if reason else NO_PROPERTIES
            parts.append(encoding.ack(version, receipt.kind, receipt.packet_id, reason, properties))
        if plain:
            parts.append(pubacks(plain))
        if parts:
            line.write(b"".join(parts))
        self._watch()


def _settle(receipt: Receipt) -> bool:
    """Look what became of the record of a plain message; False if that is not known yet."""
    sent = receipt.sent
    if sent is None or not sent.done():
        return False
    error = sent.exception()
    if error is None:
        receipt.reason = 0
    else:
        receipt.reason, receipt.text = reason_of(error)
    return True
