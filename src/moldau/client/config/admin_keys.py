"""Every admin key of Kafka 4.3 beside the common ones.

The notation is that of moldau.config.table.
"""

from __future__ import annotations

from moldau.client.config.common_keys import COMMON_TABLE
from moldau.client.config.rules import RULES
from moldau.config.definition import ConfigDef
from moldau.config.table import parse_table

__all__ = ["ADMIN_KEYS"]

_TABLE = """\
bootstrap.controllers                             list     []           h
bootstrap.servers                                 list     []           h
client.id                                         string   ""           m
connections.max.idle.ms                           long     300000       m
default.api.timeout.ms                            int      60000        m    >=0
enable.metrics.push                               boolean  false        l
receive.buffer.bytes                              int      65536        m    >=-1
retries                                           int      2147483647   l    0..2147483647
"""

ADMIN_KEYS = ConfigDef(parse_table(COMMON_TABLE + _TABLE, RULES))
