"""What the coordinator reads of a consumer's subscription: the topics, nothing else.

The version-0 layout is the beginning of every version's, so newer clients are
understood without knowing their version.
"""

from __future__ import annotations

from collections.abc import Iterable

from moldau.wire.codec import decode
from moldau.wire.errors import WireError
from moldau.wire.messages import ConsumerProtocolSubscription

_VERSION_SIZE = 2


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """The topics of all subscriptions together, or None if one cannot be read."""
    topics: set[str] = set()
    for subscription in subscriptions:
        try:
            if int.from_bytes(subscription[:_VERSION_SIZE], "big", signed=True) < 0:
                return None
            message = decode(ConsumerProtocolSubscription, 0, subscription, _VERSION_SIZE)
        except WireError:
            return None
        topics.update(message.topics)
    return frozenset(topics)
