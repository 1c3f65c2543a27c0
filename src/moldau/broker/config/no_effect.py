"""Keys that are accepted for compatibility and have no effect, each with the reason.

A key is effective (something reads it), rejected (`supported.py` and the class keys of `checks.py`)
or listed here. tests/unit/config/test_standing.py checks that for every key of every table, and
compares docs/configuration.md with this list.
"""

from __future__ import annotations

from moldau.config.no_effect import Reasons

__all__ = ["GROUP_REASONS", "REASONS", "TOPIC_REASONS"]

_SECURITY = "listeners are PLAINTEXT only"
_REMOTE = "there is no remote storage"
_LISTENER = "listeners have no settings of their own"
_PREALLOCATE = "segment files grow as they are written"
_STANDBY = "the assignor creates no standby tasks"

REASONS: Reasons = {
    "one event loop does this work, not a pool of threads": (
        "background.threads",
        "group.coordinator.background.threads",
        "group.coordinator.threads",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.alter.log.dirs.threads",
        "share.coordinator.threads",
    ),
    "requests are not queued: each connection has its own limit of requests under way": (
        "queued.max.request.bytes",
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
    "client quotas are not supported": (
        "controller.quota.window.num",
        "controller.quota.window.size.seconds",
        "quota.window.num",
        "quota.window.size.seconds",
    ),
    "new connections are limited by number, not by rate": ("max.connection.creation.rate",),
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
    "there is no authorizer to wait for": ("early.start.listeners",),
    _SECURITY: (
        "connection.failed.authentication.delay.ms",
        "connections.max.reauth.ms",
        "delegation.token.",
        "sasl.",
        "security.providers",
        "ssl.",
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
    _LISTENER: ("listener.name.",),
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
