"""Outbound: what a session still has to send its client.

    queued -> sent -> (QoS 1) PUBACK: done
                   -> (QoS 2) PUBREC -> released -> PUBCOMP: done

Invariants: no more than the client's receive maximum is between sent and done; packet identifiers
in use are never given out; messages leave in the order of their coming. The queue is bounded: who
offers has to look, and reads the rest from the log later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from moldau.services.mqtt.machine.records import Message

__all__ = ["QUEUED", "RELEASED", "SENT", "Delivery", "Outbound"]

QUEUED: Final = 0
SENT: Final = 1
RELEASED: Final = 2
_ID_MAX: Final = 65_535


class Delivery:
    """One message for one client. `token` is the shared subscription's, None for others."""

    __slots__ = ("dup", "message", "packet_id", "qos", "retain", "stage", "subscription_ids",
                 "token")  # fmt: skip

    def __init__(
        self,
        message: Message,
        qos: int,
        retain: bool = False,
        subscription_ids: tuple[int, ...] = (),
        token: Any = None,
    ) -> None:
        self.message = message
        self.qos = qos
        self.retain = retain
        self.subscription_ids = subscription_ids
        self.token = token
        self.packet_id = 0
        self.stage = QUEUED
        self.dup = False


class Outbound:
    """See the module."""

    def __init__(self, *, receive_max: int, count_max: int, bytes_max: int) -> None:
        self.receive_max = receive_max
        self._count_max = count_max
        self._bytes_max = bytes_max
        self._queue: deque[Delivery] = deque()
        self._bytes = 0
        self._last_id = 0
        self.in_flight: dict[int, Delivery] = {}
        self.dropped = 0
        """Messages that expired here, or found no room."""

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def has_room(self) -> bool:
        return len(self._queue) < self._count_max and self._bytes < self._bytes_max

    @property
    def is_half_empty(self) -> bool:
        """Whether it is worth reading more from the log."""
        return len(self._queue) * 2 <= self._count_max and self._bytes * 2 <= self._bytes_max

    def offer(self, delivery: Delivery) -> bool:
        """False if there is no room, and nothing has changed."""
        if not self.has_room:
            return False
        self._queue.append(delivery)
        self._bytes += len(delivery.message.payload)
        return True

    def take(self, now_ms: int) -> Delivery | None:
        """The next to be sent, with its packet identifier; None if the client has to answer
        first, or nothing is queued. `now_ms` is of the wall clock."""
        while self._queue:
            delivery = self._queue[0]
            if delivery.qos and len(self.in_flight) >= self.receive_max:
                return None
            self._queue.popleft()
            self._bytes -= len(delivery.message.payload)
            expires_ms = delivery.message.expires_ms
            if expires_ms and expires_ms <= now_ms:
                self.dropped += 1
                continue
            if delivery.qos:
                delivery.packet_id = self._next_id()
                delivery.stage = SENT
                self.in_flight[delivery.packet_id] = delivery
            return delivery
        return None

    def _next_id(self) -> int:
        """There is a free one: the receive maximum is not larger than their number."""
        while True:
            self._last_id = self._last_id % _ID_MAX + 1
            if self._last_id not in self.in_flight:
                return self._last_id

    def acknowledge(self, packet_id: int) -> Delivery | None:
        """A PUBACK came; None if nothing waits for it."""
        return self._finish(packet_id, 1, SENT)

    def receive(self, packet_id: int, *, failed: bool) -> Delivery | None:
        """A PUBREC came. One that reports a failure ends the message."""
        delivery = self.in_flight.get(packet_id)
        if delivery is None or delivery.qos != 2:
            return None
        if failed:
            del self.in_flight[packet_id]
        else:
            delivery.stage = RELEASED
        return delivery

    def complete(self, packet_id: int) -> Delivery | None:
        """A PUBCOMP came."""
        return self._finish(packet_id, 2, RELEASED)

    def _finish(self, packet_id: int, qos: int, stage: int) -> Delivery | None:
        delivery = self.in_flight.get(packet_id)
        if delivery is None or delivery.qos != qos or delivery.stage != stage:
            return None
        del self.in_flight[packet_id]
        return delivery

    def drop(self, delivery: Delivery) -> None:
        """A message cannot be sent at all: it is larger than the client accepts."""
        self.dropped += 1
        self.in_flight.pop(delivery.packet_id, None)

    def restore(self, delivery: Delivery, packet_id: int, stage: int) -> None:
        """Put back what was in flight when the session was stored."""
        delivery.packet_id = packet_id
        delivery.stage = stage
        self.in_flight[packet_id] = delivery
        self._last_id = packet_id

    def unfinished(self) -> list[Delivery]:
        """In flight, in the order of sending: to be sent again when the client returns."""
        found = list(self.in_flight.values())
        for each in found:
            each.dup = True
        return found

    def queued(self) -> Iterator[Delivery]:
        return iter(self._queue)

    def clear_queue(self) -> list[Delivery]:
        """Forget what was not sent; its messages are read from the log again."""
        found = list(self._queue)
        self._queue.clear()
        self._bytes = 0
        return found
