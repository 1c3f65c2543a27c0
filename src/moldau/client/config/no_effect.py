"""Client keys that are accepted for compatibility and change nothing, each with the reason.

As for the broker's (broker/config/no_effect.py): every other key is read by the client, or refused.
"""

from __future__ import annotations

from moldau.config.no_effect import Reasons

__all__ = ["ADMIN", "CONSUMER", "PRODUCER", "SHARE_CONSUMER"]

_COMMON: Reasons = {
    "the Kerberos library gets new tickets from the key tab itself": (
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor",
    ),
    "the broker checks tokens, the client only sends them": (
        "sasl.oauthbearer.clock.skew.seconds",
        "sasl.oauthbearer.expected.",
        "sasl.oauthbearer.jwks.",
        "sasl.oauthbearer.jwt.validator.class",
        "sasl.oauthbearer.scope.claim.name",
        "sasl.oauthbearer.sub.claim.name",
    ),
    "sasl.login.callback.handler.class takes a class of your own": (
        "sasl.client.callback.handler.class",
        "sasl.login.class",
    ),
    "OpenSSL takes the place of Java's providers": (
        "security.providers",
        "ssl.keymanager.algorithm",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
    ),
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
