"""The settings of a flow: MirrorMaker 2's names and defaults, and a few of Moldau's own.

`SOURCE`, `CHECKPOINT` and `HEARTBEAT` are those of the three connectors; a flow of its own has all
of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from moldau.config import (
    REQUIRED,
    ConfigDef,
    ConfigKey,
    ConfigType,
    Importance,
    OneOf,
    Range,
    Validator,
)

__all__ = ["ALL", "BASE", "CHECKPOINT", "HEARTBEAT", "OWN", "SOURCE", "Row"]

_PACKAGE = "org.apache.kafka.connect.mirror."
_SIDES = OneOf(("source", "target"))


class Row(NamedTuple):
    """A key with its documentation."""

    name: str
    type: ConfigType
    default: Any
    doc: str
    importance: Importance = Importance.LOW
    validator: Validator | None = None

    def key(self) -> ConfigKey:
        return ConfigKey(self.name, self.type, self.default, self.validator, self.importance)


_STRING, _LIST, _BOOLEAN = ConfigType.STRING, ConfigType.LIST, ConfigType.BOOLEAN
_INT, _LONG, _SHORT, _CLASS = ConfigType.INT, ConfigType.LONG, ConfigType.SHORT, ConfigType.CLASS
_HIGH = Importance.HIGH


def _every(what: str, enabled: bool, seconds: int, doc: str) -> tuple[Row, Row]:
    return (
        Row(f"{what}.enabled", _BOOLEAN, enabled, f"Whether to {doc}."),
        Row(f"{what}.interval.seconds", _LONG, seconds, f"How often to {doc}.", validator=Range(0)),
    )


BASE = (
    Row("enabled", _BOOLEAN, True, "Whether to replicate source->target."),
    Row("source.cluster.alias", _STRING, REQUIRED, "The source cluster's name.", _HIGH),
    Row("target.cluster.alias", _STRING, "target", "The target cluster's name.", _HIGH),
    Row("admin.timeout.ms", _LONG, 60_000, "Limit for administrative calls."),
    Row(
        "replication.policy.class",
        _CLASS,
        _PACKAGE + "DefaultReplicationPolicy",
        "How topics are named in the target: a Java name of MirrorMaker 2, or a Python class.",
    ),
    Row("replication.policy.separator", _STRING, ".", "Between cluster and topic in names."),
    Row(
        "replication.policy.internal.topic.separator.enabled",
        _BOOLEAN,
        True,
        "Whether internal topics use the separator too, or a dot.",
    ),
    Row(
        "forwarding.admin.class",
        _CLASS,
        "org.apache.kafka.clients.admin.ForwardingAdmin",
        "No effect: a Java class.",
    ),
)
_SYNCS = (
    Row(
        "offset-syncs.topic.location",
        _STRING,
        "source",
        "The cluster that has the topic of offset syncs.",
        validator=_SIDES,
    ),
    Row("emit.offset-syncs.enabled", _BOOLEAN, True, "Whether to write offset syncs."),
    Row(
        "topic.filter.class",
        _CLASS,
        _PACKAGE + "DefaultTopicFilter",
        "Which topics are copied: a Python class with should_replicate_topic.",
    ),
    Row("metric.names.formats", _LIST, ("legacy",), "Names of metrics: legacy, new or both."),
    Row("consumer.poll.timeout.ms", _LONG, 1000, "How long a poll of the source waits."),
)
SOURCE = (
    *BASE,
    Row("topics", _LIST, (".*",), "Topics to copy: names and regular expressions.", _HIGH),
    Row(
        "topics.exclude",
        _LIST,
        (r"mm2.*\.internal", r".*\.replica", "__.*"),
        "Topics not to copy: names and regular expressions.",
        _HIGH,
    ),
    Row("replication.factor", _INT, 2, "Of topics that are created in the target."),
    Row(
        "config.properties.exclude",
        _LIST,
        (
            "follower.replication.throttled.replicas",
            "leader.replication.throttled.replicas",
            "message.timestamp.difference.max.ms",
            "log.message.timestamp.before.max.ms",
            "log.message.timestamp.after.max.ms",
            "message.timestamp.type",
            "unclean.leader.election.enable",
            "min.insync.replicas",
        ),
        "Topic settings not to copy: names and regular expressions.",
        _HIGH,
    ),
    Row(
        "use.defaults.from",
        _STRING,
        "target",
        "Whose defaults apply to settings that the source topic does not have.",
        validator=_SIDES,
    ),
    Row(
        "config.property.filter.class",
        _CLASS,
        _PACKAGE + "DefaultConfigPropertyFilter",
        "Which topic settings are copied: a Python class.",
    ),
    *_every("refresh.topics", True, 600, "look for new topics and partitions"),
    *_every("sync.topic.configs", True, 600, "copy the settings of topics"),
    *_every("sync.topic.acls", True, 600, "copy the ACLs of topics"),
    Row("offset.lag.max", _LONG, 100, "How many records an offset sync may be behind."),
    Row("offset-syncs.topic.replication.factor", _SHORT, 3, "Of the topic of offset syncs."),
    Row("heartbeats.replication.enabled", _BOOLEAN, True, "Whether to copy heartbeats too."),
    *_SYNCS,
)
CHECKPOINT = (
    *BASE,
    Row("groups", _LIST, (".*",), "Groups to follow: names and regular expressions.", _HIGH),
    Row(
        "groups.exclude",
        _LIST,
        ("console-consumer-.*", "connect-.*", "__.*"),
        "Groups not to follow: names and regular expressions.",
        _HIGH,
    ),
    Row(
        "group.filter.class",
        _CLASS,
        _PACKAGE + "DefaultGroupFilter",
        "Which groups are followed: a Python class with should_replicate_group.",
    ),
    *_every("refresh.groups", True, 600, "look for new groups"),
    *_every("emit.checkpoints", True, 60, "write the groups' offsets as checkpoints"),
    *_every("sync.group.offsets", False, 60, "commit the groups' offsets in the target"),
    Row("checkpoints.topic.replication.factor", _SHORT, 3, "Of the topic of checkpoints."),
    *_SYNCS,
)
HEARTBEAT = (
    *BASE,
    *_every("emit.heartbeats", True, 1, "write heartbeats to the target"),
    Row("heartbeats.topic.replication.factor", _SHORT, 3, "Of the topic of heartbeats."),
)
#: Not MirrorMaker 2's.
OWN = (
    Row("tasks.max", _INT, 1, "How many tasks share the partitions.", _HIGH, Range(1)),
    Row(
        "moldau.offset.map.enabled",
        _BOOLEAN,
        True,
        "Whether to keep the exact map of offsets in the target.",
    ),
    Row("moldau.offset.map.replication.factor", _SHORT, -1, "Of the map's topic; -1: the default."),
    Row(
        "moldau.offset.map.runs.max",
        _INT,
        100_000,
        "How many runs of offsets are kept of a partition.",
        validator=Range(100),
    ),
    Row(
        "moldau.transaction.interval.ms",
        _INT,
        200,
        "The longest time that a transaction of the mirror is open.",
        validator=Range(1),
    ),
    Row(
        "moldau.transaction.bytes",
        _LONG,
        64 * 1024 * 1024,
        "What a transaction of the mirror holds at most.",
        validator=Range(1),
    ),
    Row(
        "moldau.batch.min.bytes",
        _INT,
        4096,
        "Smaller batches are combined; larger ones are copied as they are.",
        validator=Range(0),
    ),
    Row(
        "moldau.throttle.bytes.per.second",
        _LONG,
        -1,
        "What a task copies at most; -1: no limit.",
    ),
)


def _defined(*tables: tuple[Row, ...]) -> ConfigDef:
    rows = {row.name: row for table in tables for row in table}
    return ConfigDef(row.key() for row in rows.values())


ALL = _defined(SOURCE, CHECKPOINT, HEARTBEAT, OWN)
