"""Every topic key of Kafka 4.3, and which broker keys supply its value when a topic has none.

Notation: moldau.config.table. The first synonym that is set wins; units are converted to the
topic key's milliseconds.
"""

from __future__ import annotations

from moldau.broker.config.rules import RULES
from moldau.config.definition import ConfigDef
from moldau.config.table import parse_table

__all__ = ["SYNONYM_UNITS_MS", "TOPIC_KEYS", "TOPIC_SYNONYMS"]

_TABLE = """\
cleanup.policy                           list     delete               m   *{compact,delete}
compression.gzip.level                   int      -1                   m   1..9|-1
compression.lz4.level                    int      9                    m   1..17
compression.type                         string
    producer m {uncompressed,zstd,lz4,snappy,gzip,producer}
compression.zstd.level                   int      3                    m   -131072..22
delete.retention.ms                      long     86400000             m   >=0
file.delete.delay.ms                     long     60000                m   >=0
flush.messages                           long     9223372036854775807  m   >=1
flush.ms                                 long     9223372036854775807  m   >=0
follower.replication.throttled.replicas  list     []                   m   replicas
index.interval.bytes                     int      4096                 m   >=0
internal.segment.bytes                   int      -                    mri
leader.replication.throttled.replicas    list     []                   m   replicas
local.retention.bytes                    long     -2                   m   >=-2
local.retention.ms                       long     -2                   m   >=-2
max.compaction.lag.ms                    long     9223372036854775807  m   >=1
max.message.bytes                        int      1048588              m   >=0
message.timestamp.after.max.ms           long     3600000              m   >=0
message.timestamp.before.max.ms          long     9223372036854775807  m   >=0
message.timestamp.type                   string
    CreateTime m {CreateTime,LogAppendTime}
min.cleanable.dirty.ratio                double   0.5                  m   0..1
min.compaction.lag.ms                    long     0                    m   >=0
min.insync.replicas                      int      1                    m   >=1
preallocate                              boolean  false                m
remote.log.copy.disable                  boolean  false                m
remote.log.delete.on.disable             boolean  false                m
remote.storage.enable                    boolean  false                m
retention.bytes                          long     -1                   m
retention.ms                             long     604800000            m   >=-1
segment.bytes                            int      1073741824           m   >=1048576
segment.index.bytes                      int      10485760             m   >=4
segment.jitter.ms                        long     0                    m   >=0
segment.ms                               long     604800000            m   >=1
unclean.leader.election.enable           boolean  false                m
"""

# Keys of Confluent's broker: schema validation. Described only where a topic sets them, so that the
# configuration of a topic is Kafka's.
_STRATEGY = "io.confluent.kafka.serializers.subject.TopicNameStrategy"
_CONFLUENT_TABLE = f"""\
confluent.key.schema.validation          boolean  false                mri
confluent.key.subject.name.strategy      string   {_STRATEGY} mri
confluent.value.schema.validation        boolean  false                mri
confluent.value.subject.name.strategy    string   {_STRATEGY} mri
"""

TOPIC_KEYS = ConfigDef(parse_table(_TABLE + _CONFLUENT_TABLE, RULES))

# Broker keys by topic key, in order of precedence. A topic key that is absent here has no broker
# key behind it: its default is the built-in one.
TOPIC_SYNONYMS: dict[str, tuple[str, ...]] = {
    "cleanup.policy": ("log.cleanup.policy",),
    "compression.gzip.level": ("compression.gzip.level",),
    "compression.lz4.level": ("compression.lz4.level",),
    "compression.type": ("compression.type",),
    "compression.zstd.level": ("compression.zstd.level",),
    "delete.retention.ms": ("log.cleaner.delete.retention.ms",),
    "file.delete.delay.ms": ("log.segment.delete.delay.ms",),
    "flush.messages": ("log.flush.interval.messages",),
    "flush.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    "index.interval.bytes": ("log.index.interval.bytes",),
    "local.retention.bytes": ("log.local.retention.bytes",),
    "local.retention.ms": ("log.local.retention.ms",),
    "max.compaction.lag.ms": ("log.cleaner.max.compaction.lag.ms",),
    "max.message.bytes": ("message.max.bytes",),
    "message.timestamp.after.max.ms": ("log.message.timestamp.after.max.ms",),
    "message.timestamp.before.max.ms": ("log.message.timestamp.before.max.ms",),
    "message.timestamp.type": ("log.message.timestamp.type",),
    "min.cleanable.dirty.ratio": ("log.cleaner.min.cleanable.ratio",),
    "min.compaction.lag.ms": ("log.cleaner.min.compaction.lag.ms",),
    "min.insync.replicas": ("min.insync.replicas",),
    "preallocate": ("log.preallocate",),
    "retention.bytes": ("log.retention.bytes",),
    "retention.ms": ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    "segment.bytes": ("log.segment.bytes",),
    "segment.index.bytes": ("log.index.size.max.bytes",),
    "segment.jitter.ms": ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    "segment.ms": ("log.roll.ms", "log.roll.hours"),
    "unclean.leader.election.enable": ("unclean.leader.election.enable",),
}

SYNONYM_UNITS_MS = {
    "log.retention.minutes": 60_000,
    "log.retention.hours": 3_600_000,
    "log.roll.hours": 3_600_000,
    "log.roll.jitter.hours": 3_600_000,
}
