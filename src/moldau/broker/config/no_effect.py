"""Keys that are accepted for compatibility and have no effect, each with the reason.

A key is effective (something reads it), rejected (`supported.py` and the class keys of `checks.py`)
or listed here. tests/unit/config/test_standing.py checks that for every key of every table, and
compares docs/configuration.md with this list.
"""

from __future__ import annotations

from moldau.config.no_effect import Reasons

__all__ = ["GROUP_REASONS", "LISTENER_KEYS", "REASONS", "TOPIC_REASONS"]

#: What a listener may have for itself (`listener.name.x.`): names, and families that end with a
#: dot. For others the general setting holds.
LISTENER_KEYS = (
    "connection.failed.authentication.delay.ms",
    "connections.max.reauth.ms",
    "max.connection.creation.rate",
    "max.connections",
    "principal.builder.class",
    "sasl.",
    "ssl.",
)

_REMOTE = "there is no remote storage"
_PREALLOCATE = "segment files grow as they are written"
_STANDBY = "the assignor creates no standby tasks"

REASONS: Reasons = {
    "one event loop does this work, not a pool of threads": (
        "background.threads",
        "group.coordinator.background.threads",
        "group.coordinator.threads",
        "num.io.threads",
        "num.network.threads",
        "num.replica.alter.log.dirs.threads",
        "share.coordinator.threads",
    ),
    "the event loop recovers logs one after the other": (
        "num.recovery.threads.per.data.dir",
    ),
    "requests are handled as they are received: they wait in their connections, not in a queue": (
        "queued.max.requests",
    ),
    "a request that is done is removed at once": (
        "delete.records.purgatory.purge.interval.requests",
        "fetch.purgatory.purge.interval.requests",
        "producer.purgatory.purge.interval.requests",
        "share.fetch.purgatory.purge.interval.requests",
    ),
    "writes that arrive during an fsync share the next one, none waits for others": (
        "controller.quorum.append.linger.ms",
        "group.coordinator.append.linger.ms",
        "share.coordinator.append.linger.ms",
    ),
    "coordinators keep no write buffers": (
        "group.coordinator.cached.buffer.max.bytes",
        "share.coordinator.cached.buffer.max.bytes",
    ),
    "moves between log directories are not throttled": (
        "alter.log.dirs.replication.quota.window.num",
        "alter.log.dirs.replication.quota.window.size.seconds",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    ),
    "the operating system sizes this buffer": ("replica.socket.receive.buffer.bytes",),
    _PREALLOCATE: ("log.preallocate",),
    _STANDBY: ("group.streams.max.standby.replicas", "group.streams.num.standby.replicas"),
    "the broker has no metrics reporters": (
        "kafka.metrics.polling.interval.secs",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
    ),
    "the controller does not log its slow events": (
        "controller.performance.always.log.threshold.ms",
        "controller.performance.sample.period.ms",
    ),
    "metadata segments are deleted at once": ("internal.metadata.delete.delay.millis",),
    "a start waits for as long as it takes": ("server.max.startup.time.ms",),
    "there are no unstable versions": (
        "unstable.api.versions.enable",
        "unstable.feature.versions.enable",
    ),
    "a listener starts when it can serve: a broker's once it has the ACLs": (
        "early.start.listeners",
    ),
    "the Kerberos library gets new tickets from the key tab itself": (
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor",
    ),
    "OpenSSL takes the place of Java's providers": (
        "security.providers",
        "ssl.keymanager.algorithm",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
    ),
    _REMOTE: (
        "follower.fetch.last.tiered.offset.enable",
        "log.local.retention.bytes",
        "log.local.retention.ms",
        "remote.fetch.max.wait.ms",
        "remote.list.offsets.request.timeout.ms",
        "remote.log.",
        "rlmm.config.",
        "rsm.config.",
    ),
}

TOPIC_REASONS: Reasons = {
    _PREALLOCATE: ("preallocate",),
    _REMOTE: (
        "local.retention.bytes",
        "local.retention.ms",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
    ),
}

GROUP_REASONS: Reasons = {_STANDBY: ("streams.num.standby.replicas",)}
