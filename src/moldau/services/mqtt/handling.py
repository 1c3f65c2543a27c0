"""Handling: what each packet of a connected client does."""

from __future__ import annotations

import uuid
from typing import Final, assert_never

from moldau.client import KafkaError
from moldau.services.mqtt.authentication import Authentication
from moldau.services.mqtt.backend import Backend
from moldau.services.mqtt.clients import ClientSet
from moldau.services.mqtt.incoming import Incoming, Line
from moldau.services.mqtt.machine import encoding
from moldau.services.mqtt.machine._plain_packets import plain_packets
from moldau.services.mqtt.machine.flow import Flow
from moldau.services.mqtt.machine.outbound import Delivery
from moldau.services.mqtt.machine.packets import (
    V5,
    Ack,
    Auth,
    Connect,
    Disconnect,
    Packet,
    PacketType,
    Ping,
    Publish,
    Subscribe,
    SubscribeRequest,
    Unsubscribe,
)
from moldau.services.mqtt.machine.properties import Properties, Property
from moldau.services.mqtt.machine.reasons import MqttError, Reason, protocol_error
from moldau.services.mqtt.machine.topics import check_filter, parse_shared
from moldau.services.mqtt.publishing import reason_of
from moldau.services.mqtt.session import Session

__all__ = ["Handling"]

#: Plain packets that are handled before others get their turn.
_RUN_MAX: Final = 2000
_RECEIVE_DEFAULT: Final = 65_535
_NEVER: Final = 0xFFFFFFFF
_SHARE_ONLY: Final = "$share/"
#: What is wrong with the text of a filter.
_OF_FILTERS: Final = frozenset(
    {Reason.TOPIC_NAME_INVALID, Reason.PROTOCOL_ERROR, Reason.MALFORMED_PACKET}
)
_SUBACK_REASONS: Final = frozenset({0x80, 0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2})


class Handling:
    def __init__(
        self, backend: Backend, line: Line, clients: ClientSet, session: Session, flow: Flow | None
    ) -> None:
        self._backend = backend
        self._line = line
        self._clients = clients
        self.session = session
        self._flow = flow
        self._incoming = Incoming(backend, line, clients, session)
        self._with_will = True
        self._connect_expiry_s = 0

    # CONNECT.

    @classmethod
    async def open(
        cls,
        backend: Backend,
        line: Line,
        packet: Connect,
        authentication: Authentication | None = None,
    ) -> tuple[Handling, Properties, bool]:
        """What CONNACK says. `authentication` is over, where the client has one. Raises MqttError,
        KafkaError."""
        config = backend.config
        client_id, assigned = _client_id(packet, config["client.id.length.max"])
        if packet.will is not None:
            backend.publisher.target(packet.will.topic)
        name = packet.user or ""
        if authentication is None or authentication.login is None:
            clients = await backend.clients.acquire(packet.user, packet.password)
        else:
            name = authentication.user
            clients = await backend.clients.acquire_relayed(authentication.login)
            authentication.finish()
        try:
            receive_max = packet.properties.get(Property.RECEIVE_MAXIMUM, _RECEIVE_DEFAULT)
            user = name if config.authenticates else ""
            session, flow = await backend.sessions.open(
                client_id,
                clients,
                user=user,
                clean=packet.clean_start,
                receive_max=receive_max,
                is_abandoned=line.is_abandoned,
            )
        except BaseException:
            backend.clients.release(clients)
            raise
        session.wire = line
        if clients.expires_ms is not None:
            line.close_after(max(0, clients.expires_ms - backend.clock.now_ms()) / 1000)
        session.will = packet.will
        asked_s = packet.properties.get(Property.SESSION_EXPIRY, 0)
        if packet.version != V5:
            asked_s = 0 if packet.clean_start else _NEVER
        session.expiry_s = min(asked_s, config["session.expiry.max.s"])
        if packet.will is not None:
            session.will_delay_s = packet.will.properties.get(Property.WILL_DELAY, 0)
        handling = cls(backend, line, clients, session, flow)
        handling._connect_expiry_s = session.expiry_s
        try:
            await backend.sessions.restore(session, flow)
            await backend.sessions.store_new(session)
        except BaseException:
            handling._with_will = False
            await handling.leave()
            raise
        answer = handling._answer(packet, assigned, asked_s) if packet.version == V5 else {}
        return handling, answer, flow is not None

    def _answer(self, packet: Connect, assigned: bool, asked_s: int) -> Properties:
        config = self._backend.config
        answer: Properties = {
            Property.RECEIVE_MAXIMUM: config["receive.maximum"],
            Property.MAXIMUM_PACKET_SIZE: config["packet.size.max"],
            Property.TOPIC_ALIAS_MAXIMUM: config["topic.alias.maximum"],
        }
        if assigned:
            answer[Property.ASSIGNED_CLIENT_ID] = self.session.client_id
        if self.session.expiry_s != asked_s:
            answer[Property.SESSION_EXPIRY] = self.session.expiry_s
        most_s = config["keep.alive.max.s"]
        if most_s and not 0 < packet.keep_alive_s <= most_s:
            answer[Property.SERVER_KEEP_ALIVE] = most_s
        return answer

    def resume(self) -> None:
        """CONNACK was sent."""
        self._backend.sessions.resume(self.session, self._flow)
        self._flow = None
        self.session.flush()

    async def leave(self) -> None:
        """The connection is gone. Raises KafkaError."""
        self._incoming.close()
        try:
            await self._backend.sessions.end(self.session, with_will=self._with_will)
        finally:
            self._backend.clients.release(self._clients)

    # Everything else.

    def at_once(self, data: bytes) -> int:
        """Handle the plain packets that the data begins with, as far as nothing has to be waited
        for; how many bytes they were."""
        session = self.session
        if session.ended:
            return 0
        line, config = self._line, self._backend.config
        count_max = _RUN_MAX
        if line.version == V5:
            inbound = session.inbound
            count_max = min(count_max, inbound.receive_max - inbound.unfinished)
        messages, acknowledged, end = plain_packets(
            data, line.version, config["packet.size.max"], count_max
        )
        if messages:
            done = self._incoming.on_plain(messages)
            if done < len(messages):
                end = messages[done - 1][3] if done else 0
                # PUBACKs that come later are handled later.
                messages, acknowledged, end = plain_packets(data[:end], line.version, end, _RUN_MAX)
        if acknowledged:
            session.on_pubacks(acknowledged)
        self._backend.metrics.packets_received_total += len(messages) + len(acknowledged)
        return end

    async def handle(self, packet: Packet) -> None:
        """Raises MqttError for what ends the connection, KafkaError."""
        session = self.session
        if session.ended:
            return
        if isinstance(packet, Publish):
            await self._incoming.on_publish(packet)
        elif isinstance(packet, Ack):
            self._on_ack(packet)
        elif isinstance(packet, Ping):
            self._line.write(encoding.PINGRESP)
        elif isinstance(packet, Subscribe):
            await self._on_subscribe(packet)
        elif isinstance(packet, Unsubscribe):
            await self._on_unsubscribe(packet)
        elif isinstance(packet, Disconnect):
            await self._on_disconnect(packet)
        elif isinstance(packet, Auth | Connect):
            raise protocol_error("there is no authentication to be continued")
        else:
            assert_never(packet)

    def _on_ack(self, packet: Ack) -> None:
        session = self.session
        if packet.kind == PacketType.PUBACK:
            session.on_pubacks([packet.packet_id])
        elif packet.kind == PacketType.PUBREC:
            session.on_pubrec(packet.packet_id, packet.reason)
        elif packet.kind == PacketType.PUBCOMP:
            session.on_pubcomp(packet.packet_id)
        else:
            self._incoming.on_pubrel(packet.packet_id)

    async def _on_disconnect(self, packet: Disconnect) -> None:
        expiry_s = packet.properties.get(Property.SESSION_EXPIRY)
        if expiry_s is not None:
            if expiry_s and not self._connect_expiry_s:
                raise protocol_error("DISCONNECT has a session expiry, but CONNECT had none")
            self.session.expiry_s = min(expiry_s, self._backend.config["session.expiry.max.s"])
        self._with_will = packet.reason != Reason.SUCCESS
        self._line.hang_up()

    # Subscriptions.

    async def _on_subscribe(self, packet: Subscribe) -> None:
        ids = packet.properties.get(Property.SUBSCRIPTION_ID, ())
        number = ids[0] if ids else 0
        codes: list[int] = []
        text = ""
        retained: list[SubscribeRequest] = []
        for request in packet.requests:
            try:
                is_new = await self._subscribe(request, number)
            except (MqttError, KafkaError) as error:
                reason, why = reason_of(error)
                if reason in _OF_FILTERS:
                    reason = Reason.TOPIC_FILTER_INVALID
                # SUBACK has fewer reasons than others (3.9.3).
                codes.append(reason if reason in _SUBACK_REASONS else Reason.UNSPECIFIED_ERROR)
                text = text or why
                continue
            codes.append(request.qos)
            if request.retain_handling == 0 or (request.retain_handling == 1 and is_new):
                retained.append(request)
        line = self._line
        if self.session.persistent:
            await self.session.store(connected=True)
            await self.session.store_flow()
        properties = line.reason_properties(text, len(codes))
        line.write(encoding.suback(line.version, packet.packet_id, codes, properties))
        for request in retained:
            if not request.filter.startswith(_SHARE_ONLY):
                self._send_retained(request, number)
        self.session.flush()

    async def _subscribe(self, request: SubscribeRequest, number: int) -> bool:
        config = self._backend.config
        shared = parse_shared(request.filter)
        check_filter(request.filter if shared is None else shared.filter)
        if self.session.subscription_count >= config["subscriptions.max"]:
            raise MqttError(
                Reason.QUOTA_EXCEEDED,
                f"a session has at most {config['subscriptions.max']} subscriptions "
                "(subscriptions.max)",
            )
        if not config.mapper.named_topics(
            request.filter if shared is None else shared.filter
        ) and not config.mapper.is_open(request.filter if shared is None else shared.filter):
            raise MqttError(
                Reason.TOPIC_FILTER_INVALID, f"{request.filter!r} is mapped to no Kafka topic"
            )
        return await self.session.subscribe(request, number)

    def _send_retained(self, request: SubscribeRequest, number: int) -> None:
        readable = {key.topic for key in self._clients.hub.positions}
        deliveries = []
        for message in self._backend.retained.matching(request.filter):
            target = self._backend.config.mapper.to_kafka(message.topic)
            if self._backend.config.authenticates and (
                target is None or target.topic not in readable
            ):
                continue
            qos = min(message.qos, request.qos)
            ids = (number,) if number else ()
            deliveries.append(Delivery(message, qos, True, ids))
        self.session.send_retained(deliveries)

    async def _on_unsubscribe(self, packet: Unsubscribe) -> None:
        codes = [
            Reason.SUCCESS if self.session.unsubscribe(each) else Reason.NO_SUBSCRIPTION_EXISTED
            for each in packet.filters
        ]
        if self.session.persistent:
            await self.session.store(connected=True)
        line = self._line
        line.write(encoding.unsuback(line.version, packet.packet_id, codes))


def _client_id(packet: Connect, length_max: int) -> tuple[str, bool]:
    """The client's name, and whether it was chosen here."""
    if not packet.client_id:
        if packet.version != V5 and not packet.clean_start:
            raise MqttError(
                Reason.CLIENT_IDENTIFIER_NOT_VALID,
                "a client without an identifier cannot keep a session",
            )
        return f"moldau-{uuid.uuid4().hex}", True
    if len(packet.client_id) > length_max:
        raise MqttError(
            Reason.CLIENT_IDENTIFIER_NOT_VALID,
            f"a client identifier has at most {length_max} characters (client.id.length.max)",
        )
    return packet.client_id, False
