"""Errors about a topic as a whole, in the words of Kafka's clients."""

from __future__ import annotations

from typing import Final

from moldau.client.errors.base import KafkaError
from moldau.client.errors.broker import error_for
from moldau.wire.errors import ErrorCode

__all__ = ["topic_error"]

_TEXTS: Final[dict[int, str]] = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Not authorized to access topics: [{}]",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "Invalid topics: [{}]",
}


def topic_error(code: int, topic: str) -> KafkaError:
    """What a broker answered when it was asked about the topic."""
    return error_for(code, _TEXTS.get(code, "topic {}").format(topic))
