"""The keys of Kafka Streams 4.3, and what becomes of those that this host does not read.

The notation is that of moldau.config.table. Clients have more keys: those that a client knows go to
it, also with the prefixes `consumer.`, `main.consumer.`, `restore.consumer.`, `global.consumer.`,
`producer.`, `admin.`; `topic.` is for internal topics.
"""

from __future__ import annotations

from moldau.config.definition import ConfigDef
from moldau.config.no_effect import Reasons
from moldau.config.table import parse_table

AT_LEAST_ONCE = "at_least_once"
EXACTLY_ONCE = "exactly_once_v2"

_TABLE = """\
acceptable.recovery.lag                       long     10000        m    >=0
allow.os.group.write.access                   boolean  false        l
application.id                                string   !            h    nonempty
application.server                            string   ""           l
bootstrap.servers                             list     !            h
buffered.records.per.partition                int      1000         l
built.in.metrics.version                      string   latest       l    {latest}
cache.max.bytes.buffering                     long     10485760     m    >=0
client.id                                     string   ""           m
commit.interval.ms                            long     30000        l    >=0
default.client.supplier                       class    -            l
default.deserialization.exception.handler     class    -            m
default.dsl.store                             string   rocksDB      l    {rocksDB,in_memory}
default.key.serde                             class    -            m
default.list.key.serde.inner                  class    -            m
default.list.key.serde.type                   class    -            m
default.list.value.serde.inner                class    -            m
default.list.value.serde.type                 class    -            m
default.production.exception.handler          class    -            m
default.timestamp.extractor                   class    -            m
default.value.serde                           class    -            m
deserialization.exception.handler             class    -            m
dsl.store.format                              string   DEFAULT      l    ~{HEADERS,DEFAULT}
dsl.store.suppliers.class                     class    -            l
ensure.explicit.internal.resource.naming      boolean  false        h
errors.dead.letter.queue.topic.name           string   -            m
group.protocol                                string   classic      m    ~{STREAMS,CLASSIC}
log.summary.interval.ms                       long     120000       l
max.task.idle.ms                              long     0            m    >=-1
max.warmup.replicas                           int      2            m    >=1
metrics.recording.level                       string   INFO         l    {INFO,DEBUG,TRACE}
num.standby.replicas                          int      0            h    >=0
num.stream.threads                            int      1            m    >=1
poll.ms                                       long     100          l    >=0
probing.rebalance.interval.ms                 long     600000       l    >=60000
processing.exception.handler                  class    -            m
processing.exception.handler.global.enabled   boolean  false        h
processing.guarantee                          string
    exactly_once_v2 m {at_least_once,exactly_once_v2}
processor.wrapper.class                       class    -            l
production.exception.handler                  class    -            m
rack.aware.assignment.non_overlap_cost        int      -            l
rack.aware.assignment.strategy                string
    none l {none,min_traffic,balance_subtopology}
rack.aware.assignment.tags                    list     []           l
rack.aware.assignment.traffic_cost            int      -            l
repartition.purge.interval.ms                 long     30000        l    >=0
replication.factor                            int      -1           m
rocksdb.config.setter                         class    -            l
state.cleanup.delay.ms                        long     600000       l
state.cleanup.dir.max.age.ms                  long     -1           l
state.dir                                     string   ""           h
statestore.cache.max.bytes                    long     10485760     m    >=0
task.assignor.class                           string   -            m
task.timeout.ms                               long     300000       m    >=0
topology.optimization                         string   none         m
upgrade.from                                  string   -            l
window.size.ms                                long     -            l
windowed.inner.class.serde                    string   -            l
windowstore.changelog.additional.retention.ms long     86400000     l
"""

STREAMS_KEYS = ConfigDef(parse_table(_TABLE))

#: Keys that are accepted and change nothing, by the reason.
NO_EFFECT: Reasons = {
    "racks are not considered when tasks are placed": ("rack.aware.assignment.",),
    "stores are chosen in the program, not by name of a Java class": (
        "dsl.store.suppliers.class",
        "rocksdb.config.setter",
    ),
    "serdes of lists and windows are chosen in the program": (
        "default.list.",
        "window.size.ms",
        "windowed.inner.class.serde",
    ),
    "there is one version of metrics": ("built.in.metrics.version",),
    "clients are Moldau's own": ("default.client.supplier",),
    "members of one application run the same version": ("upgrade.from",),
    "the topology is optimised when it is built: StreamsBuilder.build(optimization=...)": (
        "topology.optimization",
    ),
    "permissions of the state directory are those of the process": ("allow.os.group.write.access",),
    "progress is a metric, not a summary in the log": ("log.summary.interval.ms",),
    "the state of tasks that have left stays until clean_up()": (
        "state.cleanup.delay.ms",
        "state.cleanup.dir.max.age.ms",
    ),
}


#: Keys that are refused unless they have their default, with what to do instead.
REFUSED = {
    "task.assignor.class": "tasks are placed by the built-in assignor",
}
