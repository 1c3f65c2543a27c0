"""Every producer key of Kafka 4.3 beside the common ones.

The notation is that of moldau.config.table.
"""

from __future__ import annotations

from moldau.client.config.common_keys import COMMON_TABLE
from moldau.client.config.rules import RULES
from moldau.config.definition import ConfigDef
from moldau.config.table import parse_table

__all__ = ["PRODUCER_KEYS"]

_TABLE = """\
acks                                              string   all          l    {all,-1,0,1}
batch.size                                        int      16384        m    >=0
bootstrap.servers                                 list     !            h
buffer.memory                                     long     33554432     h    >=0
client.id                                         string   ""           m
compression.gzip.level                            int      -1           m    1..9|-1
compression.lz4.level                             int      9            m    1..17
compression.type                                  string
    none h {none,gzip,snappy,lz4,zstd}
compression.zstd.level                            int      3            m    -131072..22
connections.max.idle.ms                           long     540000       m
delivery.timeout.ms                               int      120000       m    >=0
enable.idempotence                                boolean  true         l
enable.metrics.push                               boolean  true         l
interceptor.classes                               list     []           l
key.serializer                                    class    -            h
linger.ms                                         long     5            m    >=0
max.block.ms                                      long     60000        m    >=0
max.in.flight.requests.per.connection             int      5            l    >=1
max.request.size                                  int      1048576      m    >=0
metadata.max.idle.ms                              long     300000       l    >=5000
partitioner.adaptive.partitioning.enable          boolean  true         l
partitioner.availability.timeout.ms               long     0            l    >=0
partitioner.class                                 class    -            m
partitioner.ignore.keys                           boolean  false        m
receive.buffer.bytes                              int      32768        m    >=-1
retries                                           int      2147483647   h    0..2147483647
transaction.timeout.ms                            int      60000        l
transaction.two.phase.commit.enable               boolean  false        l
transactional.id                                  string   -            l    nonempty
value.serializer                                  class    -            h
"""

PRODUCER_KEYS = ConfigDef(parse_table(COMMON_TABLE + _TABLE, RULES))
