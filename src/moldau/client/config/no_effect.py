"""Client keys that are accepted for compatibility and change nothing, each with the reason.

As for the broker's (broker/config/no_effect.py): every other key is read by the client, or refused.
"""

from __future__ import annotations

from moldau.config.no_effect import Reasons

__all__ = ["ADMIN", "CONSUMER", "PRODUCER", "SHARE_CONSUMER"]

_COMMON: Reasons = {
    "security.protocol is PLAINTEXT only": ("sasl.", "security.providers", "ssl."),
    "every metric is recorded": ("metrics.recording.level",),
}
_FETCH_STABLE: Reasons = {
    "brokers that cannot fetch stable offsets are not supported": (
        "internal.throw.on.fetch.stable.offset.unsupported",
    )
}

PRODUCER = _COMMON
ADMIN: Reasons = {
    **_COMMON,
    "metadata is fetched again when an answer shows that it is old": ("metadata.max.age.ms",),
}
CONSUMER: Reasons = {
    **_COMMON,
    **_FETCH_STABLE,
    "only share consumers acknowledge records": (
        "share.acknowledgement.mode",
        "share.acquire.mode",
    ),
}
SHARE_CONSUMER: Reasons = {
    **_COMMON,
    **_FETCH_STABLE,
    "share consumers commit no offsets": ("auto.commit.interval.ms",),
    "share consumers subscribe to topics by name": ("exclude.internal.topics",),
    "share fetches have a limit for all partitions together": ("max.partition.fetch.bytes",),
}
