"""Subscription: one topic filter of one session, and what its options make of a message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moldau.services.mqtt.machine.outbound import Delivery
from moldau.services.mqtt.machine.packets import SubscribeRequest
from moldau.services.mqtt.machine.records import Message
from moldau.services.mqtt.machine.topics import matches

__all__ = ["Subscription", "delivery_of", "matching"]


class Subscription:
    """`owner` is the session. `floors` are the offsets where it begins, by partition: records
    below them were there before the subscription."""

    __slots__ = (
        "filter", "floors", "no_local", "owner", "qos", "retain_as_published", "retain_handling",
        "subscription_id",
    )  # fmt: skip

    def __init__(self, owner: Any, request: SubscribeRequest, subscription_id: int = 0) -> None:
        self.owner = owner
        self.filter = request.filter
        self.qos = request.qos
        self.no_local = request.no_local
        self.retain_as_published = request.retain_as_published
        self.retain_handling = request.retain_handling
        self.subscription_id = subscription_id
        self.floors: dict[Any, int] = {}

    def begins_after(self, message: Message) -> bool:
        floor = self.floors.get(message.partition)
        if floor is None:
            return False
        if message.offset < floor:
            return True
        # The log only goes forward.
        del self.floors[message.partition]
        return False


def matching(subscriptions: Sequence[Subscription], topic: str) -> list[Subscription]:
    return [each for each in subscriptions if matches(each.filter, topic)]


def delivery_of(
    message: Message, subscriptions: Sequence[Subscription], client_id: str
) -> Delivery | None:
    """What a session sends for a message that these of its subscriptions match: one delivery, with
    the highest QoS and all subscription identifiers. None if it sends nothing."""
    if len(subscriptions) == 1:
        one = subscriptions[0]
        if one.floors and one.begins_after(message):
            return None
        if one.no_local and message.publisher == client_id:
            return None
        only: tuple[int, ...] = (one.subscription_id,) if one.subscription_id else ()
        retain = message.retain and one.retain_as_published
        qos = one.qos if one.qos < message.qos else message.qos
        return Delivery(message, qos, retain, only)
    wanted = [
        each
        for each in subscriptions
        if not (each.floors and each.begins_after(message))
        and not (each.no_local and message.publisher == client_id)
    ]
    if not wanted:
        return None
    qos = min(message.qos, max(each.qos for each in wanted))
    retain = message.retain and any(each.retain_as_published for each in wanted)
    ids = tuple(each.subscription_id for each in wanted if each.subscription_id)
    return Delivery(message, qos, retain, ids)
