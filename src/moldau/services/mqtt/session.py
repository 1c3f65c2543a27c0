"""Session: what the proxy knows of a client that is connected here, and how it sends messages.

A session that outlives its connection is stored in the sessions topic (`sessions.py`): as a whole
when subscriptions change and when the client leaves, its flow every `session.commit.interval.ms`,
and before every step of a QoS 2 message that the client sees.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from moldau.client import KafkaError, TopicPartition
from moldau.clock import Clock
from moldau.services.mqtt.catch_up import CatchUp
from moldau.services.mqtt.clients import ClientSet
from moldau.services.mqtt.config import MqttConfig
from moldau.services.mqtt.machine import encoding
from moldau.services.mqtt.machine.flow import Flow, write_flow
from moldau.services.mqtt.machine.inbound import Inbound
from moldau.services.mqtt.machine.outbound import RELEASED, Delivery, Outbound
from moldau.services.mqtt.machine.packets import PacketType, SubscribeRequest, Will
from moldau.services.mqtt.machine.reasons import Reason
from moldau.services.mqtt.machine.records import Message
from moldau.services.mqtt.machine.session_book import (
    Version,
    session_key,
    subscription_values,
    will_value,
)
from moldau.services.mqtt.machine.subscriptions import Subscription, delivery_of
from moldau.services.mqtt.machine.topics import SharedFilter, parse_shared
from moldau.services.mqtt.state_topic import StateTopic

__all__ = ["Session", "Wire"]

logger = logging.getLogger(__name__)

_WRITE_BYTES: Final = 65_536


class Wire(Protocol):
    """The connection, as its session sees it."""

    version: int
    writable: bool

    def encode(self, delivery: Delivery) -> bytes | None:
        """None for a message larger than the client accepts."""
        ...

    def write(self, data: bytes) -> None: ...

    def close(self, reason: Reason, text: str = "") -> None: ...


class Session:
    def __init__(
        self,
        client_id: str,
        version: Version,
        config: MqttConfig,
        clients: ClientSet,
        topic: StateTopic,
        clock: Clock,
        *,
        user: str,
        receive_max: int,
    ) -> None:
        self.client_id = client_id
        self.version = version
        self.user = user
        self.clients = clients
        self._config = config
        self._topic = topic
        self._clock = clock
        self._hub = clients.hub
        self.wire: Wire | None = None
        self.expiry_s = 0
        self.will: Will | None = None
        self.will_delay_s = 0
        self.subscriptions: dict[str, Subscription] = {}
        self._shared: dict[str, tuple[SharedFilter, Subscription]] = {}
        self.outbound = Outbound(
            receive_max=receive_max,
            count_max=config["queue.messages.max"],
            bytes_max=config["queue.bytes.max"],
        )
        self.inbound = Inbound(config["receive.maximum"])
        #: Where to read on, for a session that is not where the hub is; None for one that is.
        self.behind: dict[TopicPartition, int] | None = None
        #: The stored flow, until what it has in flight is restored.
        self.unrestored: Flow | None = None
        self._catch_up: CatchUp | None = None
        self._retained: deque[Delivery] = deque()
        self._after: list[Callable[[], None]] = []
        self._storing: asyncio.Task[None] | None = None
        self.changed = False
        """Whether the stored flow is out of date."""
        self.ended = False

    @property
    def persistent(self) -> bool:
        return self.expiry_s > 0

    # Messages from the hub.

    def deliver(self, message: Message, subscriptions: list[Subscription]) -> bool:
        if self.behind is not None:
            return False
        delivery = delivery_of(message, subscriptions, self.client_id)
        if delivery is None:
            return False
        self.changed = True
        if self.outbound.offer(delivery):
            return True
        if not delivery.qos:
            self.outbound.dropped += 1
            return False
        self.fall_behind(self.hub_positions())
        return False

    def hub_positions(self) -> dict[TopicPartition, int]:
        """Of the topics that the session reads."""
        mapper = self._config.mapper
        filters = [each.filter for each in self.subscriptions.values()]
        wanted: dict[str, bool] = {}
        found = {}
        for key, offset in self._hub.positions.items():
            topic = key.topic
            if topic not in wanted:
                wanted[topic] = any(mapper.wants(text, topic) for text in filters)
            if wanted[topic]:
                found[key] = offset
        return found

    def fall_behind(self, positions: dict[TopicPartition, int], flow: Flow | None = None) -> None:
        """Read on from these positions, without the hub; first what a stored flow has in flight."""
        self.behind = positions
        if self._catch_up is None or self._catch_up.done:
            self._catch_up = CatchUp(self, self._config, flow)
            self._catch_up.start()

    def offer_now(self, message: Message, subscriptions: list[Subscription]) -> bool:
        """From the log, when the session is behind. False if there is no room."""
        delivery = delivery_of(message, subscriptions, self.client_id)
        if delivery is None:
            return True
        if not self.outbound.offer(delivery):
            return False
        self.changed = True
        return True

    def send_retained(self, deliveries: Iterable[Delivery]) -> None:
        """Retained messages of a new subscription: as soon as there is room for each. They are in
        memory anyway."""
        self.changed = True
        self._retained.extend(deliveries)

    def offer_shared(self, delivery: Delivery) -> bool:
        if self.wire is None or not self.wire.writable or not self.outbound.offer(delivery):
            return False
        self.flush()
        return True

    # To the client.

    def flush(self) -> None:
        """Send what the client may be sent now."""
        wire = self.wire
        if wire is None or self.unrestored is not None:
            # What was on its way comes first, and keeps its packet identifiers.
            return
        parts: list[bytes] = []
        held: list[bytes] = []
        taken: list[Delivery] = []
        size = 0
        now_ms = self._clock.now_ms()
        retained = self._retained
        while wire.writable:
            while retained and self.outbound.offer(retained[0]):
                retained.popleft()
            delivery = self.outbound.take(now_ms)
            if delivery is None:
                break
            data = wire.encode(delivery)
            if data is None:
                self.outbound.drop(delivery)
                _settle(delivery, accepted=True)
                continue
            if delivery.qos == 2 and self.persistent:
                held.append(data)
                taken.append(delivery)
            else:
                parts.append(data)
            if not delivery.qos or (delivery.qos == 2 and not self.persistent):
                # With QoS 2 it must not go to another client if this one does not return.
                _settle(delivery, accepted=True)
            size += len(data)
            if size >= _WRITE_BYTES:
                wire.write(b"".join(parts))
                parts.clear()
                size = 0
        if parts:
            wire.write(b"".join(parts))
        if held:

            def send() -> None:
                # The session has them now, and completes them when its client returns.
                for each in taken:
                    _settle(each, accepted=True)
                wire.write(b"".join(held))

            self.after_store(send)
        if self._catch_up is not None and self.outbound.is_half_empty:
            self._catch_up.room.set()

    def resend(self) -> None:
        """The client is back, and what it has not acknowledged is restored: send it again."""
        self.unrestored = None
        wire = self.wire
        if wire is None:
            return
        for delivery in self.outbound.unfinished():
            if delivery.stage == RELEASED:
                wire.write(encoding.ack(wire.version, PacketType.PUBREL, delivery.packet_id))
            elif (data := wire.encode(delivery)) is not None:
                wire.write(data)
            else:
                self.outbound.drop(delivery)
        self.flush()

    def on_pubacks(self, packet_ids: list[int]) -> None:
        """Several at a time: what they make room for leaves together."""
        outbound = self.outbound
        for packet_id in packet_ids:
            delivery = outbound.acknowledge(packet_id)
            if delivery is not None and delivery.token is not None:
                delivery.token.settle(accepted=True)
        self.changed = True
        self.flush()

    def on_pubrec(self, packet_id: int, reason: int) -> None:
        delivery = self.outbound.receive(packet_id, failed=reason >= Reason.UNSPECIFIED_ERROR)
        wire = self.wire
        if wire is None:
            return
        if delivery is None:
            code = Reason.PACKET_IDENTIFIER_NOT_FOUND
            wire.write(encoding.ack(wire.version, PacketType.PUBREL, packet_id, code))
            return
        self.changed = True
        _settle(delivery, accepted=True)
        if delivery.stage != RELEASED:
            self.flush()
            return
        data = encoding.ack(wire.version, PacketType.PUBREL, packet_id)
        if self.persistent:
            self.after_store(lambda: wire.write(data))
        else:
            wire.write(data)

    def on_pubcomp(self, packet_id: int) -> None:
        if self.outbound.complete(packet_id) is not None:
            self.changed = True
            self.flush()

    # Subscriptions.

    async def subscribe(self, request: SubscribeRequest, subscription_id: int) -> bool:
        """True if the subscription is new. Raises MqttError, KafkaError."""
        subscription = Subscription(self, request, subscription_id)
        shared = parse_shared(request.filter)
        if shared is not None:
            await self.clients.shared.join(shared, self, subscription)
            is_new = request.filter not in self._shared
            self._shared[request.filter] = (shared, subscription)
            return is_new
        old = self.subscriptions.get(request.filter)
        if old is not None:
            # The messages go on as before, with other options.
            subscription.floors = old.floors
        else:
            subscription.floors = {
                key: offset
                for key, offset in (await self._hub.watch(request.filter)).items()
                if offset > self._hub.positions.get(key, 0)
            }
            if self.behind is not None:
                for key, offset in self._hub.positions.items():
                    if self._config.mapper.wants(request.filter, key.topic):
                        self.behind.setdefault(key, offset)
        self.subscriptions[request.filter] = subscription
        self._hub.add(subscription)
        return old is None

    async def restore(self, request: SubscribeRequest, subscription_id: int) -> None:
        """A subscription of a stored session. Raises MqttError, KafkaError."""
        if request.filter.startswith("$share/"):
            await self.subscribe(request, subscription_id)
            return
        await self._hub.watch(request.filter)
        self.subscriptions[request.filter] = Subscription(self, request, subscription_id)

    def attach(self) -> None:
        for each in self.subscriptions.values():
            self._hub.add(each)

    def unsubscribe(self, filter_text: str) -> bool:
        shared = self._shared.pop(filter_text, None)
        if shared is not None:
            self.clients.shared.quit(shared[0], self)
            return True
        subscription = self.subscriptions.pop(filter_text, None)
        if subscription is None:
            return False
        self._hub.remove(subscription)
        self._hub.leave(filter_text)
        return True

    def _all_subscriptions(self) -> list[Subscription]:
        return [*self.subscriptions.values(), *(each for _, each in self._shared.values())]

    @property
    def subscription_count(self) -> int:
        return len(self.subscriptions) + len(self._shared)

    # Storing.

    def after_store(self, callback: Callable[[], None]) -> None:
        """Call this once the flow, as it is now, is stored."""
        self._after.append(callback)
        if self._storing is None or self._storing.done():
            self._storing = asyncio.get_running_loop().create_task(self._store())

    async def _store(self) -> None:
        while self._after:
            callbacks, self._after = self._after, []
            try:
                await self.store_flow(read_back=True)
            except (KafkaError, TimeoutError) as error:
                logger.warning("the session of %r was not stored: %s", self.client_id, error)
                if self.wire is not None:
                    self.wire.close(Reason.SERVER_UNAVAILABLE, "the session cannot be stored")
                return
            if self.ended:
                return
            for each in callbacks:
                each()

    async def store_flow(self, *, read_back: bool = False) -> None:
        self.changed = False
        value = write_flow(self.positions(), self.outbound, self.inbound, self.unrestored)
        key = session_key("f", self.client_id, self.version)
        await self._topic.append(key, value, read_back=read_back)

    def positions(self) -> dict[TopicPartition, int]:
        """From where the session reads on if it is interrupted now."""
        if self.behind is not None:
            found = dict(self.behind)
        elif self.unrestored is not None:
            return {TopicPartition(*key): at for key, at in self.unrestored.positions.items()}
        else:
            found = self.hub_positions()
        for each in self.outbound.queued():
            message = each.message
            if message.partition is not None and message.offset < found.get(message.partition, 0):
                found[message.partition] = message.offset
        return found

    async def store(self, *, connected: bool) -> None:
        content: dict[str, Any] = {
            "user": self.user,
            "connected": connected,
            "expiry": self.expiry_s,
            "at": self._clock.now_ms(),
            "subs": [
                subscription_values(_request(each), each.subscription_id)
                for each in self._all_subscriptions()
            ],
            "will": will_value(self.will),
            "will_delay": self.will_delay_s,
        }
        key = session_key("s", self.client_id, self.version)
        await self._topic.append(key, json.dumps(content).encode())

    def detach(self) -> None:
        """No message comes any more; what is queued is read from the log later."""
        self.ended = True
        self.wire = None
        if self._catch_up is not None:
            self._catch_up.stop()
        for each in self.subscriptions.values():
            self._hub.remove(each)
        for shared, _ in self._shared.values():
            self.clients.shared.quit(shared, self)

    def leave_hub(self) -> None:
        for each in self.subscriptions.values():
            self._hub.leave(each.filter)


def _request(each: Subscription) -> SubscribeRequest:
    return SubscribeRequest(
        each.filter, each.qos, each.no_local, each.retain_as_published, each.retain_handling
    )


def _settle(delivery: Delivery, *, accepted: bool) -> None:
    if delivery.token is not None:
        delivery.token.settle(accepted=accepted)
