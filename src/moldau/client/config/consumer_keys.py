"""Every consumer key of Kafka 4.3 beside the common ones.

The notation is that of moldau.config.table. Assignors have short names here, Kafka's Java classes
are understood too.
"""

from __future__ import annotations

from moldau.client.config.common_keys import COMMON_TABLE
from moldau.client.config.rules import RULES
from moldau.config.definition import ConfigDef
from moldau.config.table import parse_table

__all__ = ["CONSUMER_KEYS"]

_TABLE = """\
allow.auto.create.topics                          boolean  true         m
auto.commit.interval.ms                           int      5000         l    >=0
auto.offset.reset                                 string   latest       m    offset_reset
bootstrap.servers                                 list     !            h
check.crcs                                        boolean  true         l
client.id                                         string   ""           l
client.rack                                       string   ""           l
connections.max.idle.ms                           long     540000       m
default.api.timeout.ms                            int      60000        m    >=0
enable.auto.commit                                boolean  true         m
enable.metrics.push                               boolean  true         l
exclude.internal.topics                           boolean  true         m
fetch.max.bytes                                   int      52428800     m    >=0
fetch.max.wait.ms                                 int      500          l    >=0
fetch.min.bytes                                   int      1            h    >=0
group.id                                          string   -            h
group.instance.id                                 string   -            m    nonempty
group.protocol                                    string   classic      h    ~{CONSUMER,CLASSIC}
group.remote.assignor                             string   -            m
heartbeat.interval.ms                             int      3000         h
interceptor.classes                               list     []           l
internal.throw.on.fetch.stable.offset.unsupported boolean  false        lri
isolation.level                                   string
    read_uncommitted m {read_committed,read_uncommitted}
key.deserializer                                  class    -            h
max.partition.fetch.bytes                         int      1048576      h    >=0
max.poll.interval.ms                              int      300000       m    >=1
max.poll.records                                  int      500          m    >=1
partition.assignment.strategy                     list     range,cooperative-sticky m
receive.buffer.bytes                              int      65536        m    >=-1
session.timeout.ms                                int      45000        h
share.acknowledgement.mode                        string   implicit     m    {implicit,explicit}
share.acquire.mode                                string
    BATCH_OPTIMIZED m ~{batch_optimized,record_limit}
value.deserializer                                class    -            h
"""

CONSUMER_KEYS = ConfigDef(parse_table(COMMON_TABLE + _TABLE, RULES))
