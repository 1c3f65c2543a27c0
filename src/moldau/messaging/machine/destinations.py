"""Queues and topics. A destination is one Kafka topic; `queue` says how it is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moldau.messaging.machine.errors import InvalidDestinationError

__all__ = ["Destination", "Queue", "TemporaryQueue", "TemporaryTopic", "Topic", "parse_destination"]


@dataclass(frozen=True, slots=True)
class Destination:
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Queue(Destination):
    """Each message is for one of its consumers."""

    def __str__(self) -> str:
        return f"queue://{self.name}"


@dataclass(frozen=True, slots=True)
class Topic(Destination):
    """Each message is for all subscriptions that exist."""

    def __str__(self) -> str:
        return f"topic://{self.name}"


@dataclass(frozen=True, slots=True)
class TemporaryQueue(Queue):
    """Lives as long as its connection, which alone may consume from it."""

    connection: Any = None

    def __str__(self) -> str:
        return f"temp-queue://{self.name}"


@dataclass(frozen=True, slots=True)
class TemporaryTopic(Topic):
    connection: Any = None

    def __str__(self) -> str:
        return f"temp-topic://{self.name}"


_KINDS = {
    "queue": Queue,
    "topic": Topic,
    "temp-queue": TemporaryQueue,
    "temp-topic": TemporaryTopic,
}


def parse_destination(text: str) -> Destination:
    """What `str` of a destination wrote. Raises InvalidDestinationError."""
    scheme, separator, name = text.partition("://")
    if not separator or scheme not in _KINDS or not name:
        raise InvalidDestinationError(f"{text!r} is not a destination: use queue://NAME")
    return _KINDS[scheme](name)
