"""Keys of group and client-metrics resources, quota names and broker-logger levels.

These exist only as dynamic configuration; for groups the broker's own keys supply the defaults.
Notation: moldau.config.table.
"""

from __future__ import annotations

from moldau.broker.config.rules import RULES
from moldau.config.definition import ConfigDef
from moldau.config.table import parse_table

__all__ = [
    "CLIENT_METRICS_KEYS",
    "CLIENT_METRICS_SELECTORS",
    "CONNECTION_QUOTA_NAMES",
    "DYNAMIC_ONLY_KEYS",
    "GROUP_KEYS",
    "LOG_LEVELS",
    "USER_QUOTA_NAMES",
    "group_key_synonym",
]

GROUP_KEYS = ConfigDef(
    parse_table(
        """\
consumer.assignment.interval.ms      int      1000               m   >=0
consumer.heartbeat.interval.ms       int      5000               m   >=1
consumer.session.timeout.ms          int      45000              m   >=1
share.assignment.interval.ms         int      1000               m   >=0
share.auto.offset.reset              string   latest             m   offset_reset
share.delivery.count.limit           int      5                  m   >=2
share.heartbeat.interval.ms          int      5000               m   >=1
share.isolation.level                string
    read_uncommitted m {read_committed,read_uncommitted}
share.partition.max.record.locks     int      2000               m   >=100
share.record.lock.duration.ms        int      30000              m   >=1000
share.renew.acknowledge.enable       boolean  true               m
share.session.timeout.ms             int      45000              m   >=1
streams.assignment.interval.ms       int      1000               m   >=0
streams.heartbeat.interval.ms        int      5000               m   >=1
streams.initial.rebalance.delay.ms   int      3000               m   >=0
streams.num.standby.replicas         int      0                  m   >=0
streams.session.timeout.ms           int      45000              m   >=1
""",
        RULES,
    )
)

CLIENT_METRICS_KEYS = ConfigDef(
    parse_table(
        """\
metrics      list  []      m  *
interval.ms  int   300000  m
match        list  []      m  *
"""
    )
)

CLIENT_METRICS_SELECTORS = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)

USER_QUOTA_NAMES = {
    "producer_byte_rate": float(2**63 - 1),
    "consumer_byte_rate": float(2**63 - 1),
    "request_percentage": float(2**31 - 1),
    "controller_mutation_rate": float(2**31 - 1),
}
CONNECTION_QUOTA_NAMES = {"connection_creation_rate": 2**31 - 1}

# Names a broker accepts dynamically although no static key defines them.
DYNAMIC_ONLY_KEYS = ConfigDef(
    parse_table(
        """\
follower.replication.throttled.rate             long  9223372036854775807  mc  >=0
leader.replication.throttled.rate               long  9223372036854775807  mc  >=0
replica.alter.log.dirs.io.max.bytes.per.second  long  9223372036854775807  mc  >=0
"""
    )
)

LOG_LEVELS = ("DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN")


def group_key_synonym(name: str) -> str | None:
    """The broker key behind a group key, if any: `consumer.x` defaults to `group.consumer.x`."""
    return None if name in _GROUP_ONLY else f"group.{name}"


_GROUP_ONLY = frozenset(
    {"share.auto.offset.reset", "share.isolation.level", "share.renew.acknowledge.enable"}
)
