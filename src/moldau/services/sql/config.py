"""SqlConfig: the settings of the server, by ksqlDB's keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from moldau.config.errors import ConfigError
from moldau.http.config import HttpConfig
from moldau.http.keys import http_keys

__all__ = ["INSERTS_DISABLED", "INSERTS_ENABLED", "SQL_KEYS", "SqlConfig"]

DEFAULT_PORT: Final = 8088
INSERTS_ENABLED: Final = "ksql.insert.into.values.enabled"
INSERTS_DISABLED: Final = (
    "The server has disabled INSERT INTO ... VALUES functionality. To enable it, restart your "
    f"ksqlDB server with '{INSERTS_ENABLED}'=true"
)
_STREAMS: Final = "ksql.streams."

SQL_KEYS = http_keys("""
bootstrap.servers                         list     []          h  *
ksql.service.id                           string   default_    h
ksql.schema.registry.url                  string   ""          h
ksql.connect.url                          string   ""          h
ksql.queries.file                         string   -           h
ksql.advertised.listener                  string   -           m
ksql.access.validator.enable              string   auto        l  {on,off,auto}
ksql.heartbeat.enable                     boolean  false       m
ksql.heartbeat.send.interval.ms           long     100         m  >=1
ksql.heartbeat.check.interval.ms          long     200         m  >=1
ksql.heartbeat.window.ms                  long     2000        m  >=1
ksql.heartbeat.missed.threshold.ms        long     3           m  >=1
ksql.lag.reporting.enable                 boolean  false       m
ksql.lag.reporting.send.interval.ms       long     5000        m  >=1
ksql.query.pull.enable.standby.reads      boolean  false       m
ksql.query.pull.forwarding.timeout.ms     long     20000       m  >=1
ksql.query.retry.backoff.initial.ms       long     15000       l  >=1
ksql.query.retry.backoff.max.ms           long     900000      l  >=1
ksql.query.error.max.queue.size           int      10          l  >=1
ksql.properties.overrides.denylist        list     []          l
ksql.query.persistent.active.limit        int      2147483647  m  >=1
ksql.assert.topic.default.timeout.ms      int      1000        l  >=0
ksql.assert.schema.default.timeout.ms     int      1000        l  >=0
ksql.query.push.rows.queued.max           int      10000       m  >=1
ksql.query.push.queries.max               int      100         m  >=1
ksql.pull.queries.enable                  boolean  true        l
ksql.query.pull.stream.enabled            boolean  true        l
ksql.query.pull.table.scan.enabled        boolean  true        l
ksql.query.pull.range.scan.enabled        boolean  true        l
ksql.query.pull.limit.clause.enabled      boolean  true        l
ksql.insert.into.values.enabled           boolean  true        l
ksql.variable.substitution.enable         boolean  true        l
ksql.source.table.materialization.enabled boolean  true        l
ksql.suppress.enabled                     boolean  true        l
ksql.timestamp.throw.on.invalid           boolean  false       l
ksql.query.push.v2.enabled                boolean  false       l
ksql.headers.columns.enabled              boolean  true        l
ksql.hidden.topics                        string   -           l
ksql.readonly.topics                      string   -           l
ksql.fail.on.deserialization.error        boolean  false       m
ksql.new.query.planner.enabled            boolean  false       l
ksql.internal.topic.replicas              int      1           l  >=1
ksql.persistence.default.format.key       string   KAFKA       l
ksql.persistence.default.format.value     string   -           l
ksql.output.topic.name.prefix             string   ""          l
ksql.server.start.timeout.ms              int      60000       l  >=1
ksql.spark.remote                         string   ""          l
ksql.spark.tables                         list     []          l
ksql.spark.checkpoint.dir                 string   moldau-sql-checkpoints l
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlConfig:
    """`texts` are all properties as they were given, for the settings of clients and queries."""

    http: HttpConfig
    values: Mapping[str, Any] = field(repr=False)
    texts: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> SqlConfig:
        """Raises ConfigError."""
        values = SQL_KEYS.parse(texts)
        if not values["bootstrap.servers"]:
            raise ConfigError(
                "bootstrap.servers is missing: set it to the addresses of the brokers, for example "
                "bootstrap.servers=localhost:9092",
                key="bootstrap.servers",
            )
        http = HttpConfig.of(values, default_port=DEFAULT_PORT)
        return cls(http=http, values=values, texts=dict(texts))

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    @property
    def service_id(self) -> str:
        return str(self.values["ksql.service.id"])

    @property
    def command_topic(self) -> str:
        return f"_confluent-ksql-{self.service_id}_command_topic"

    def client_settings(self) -> dict[str, str]:
        """For clients of the server itself."""
        settings = {"bootstrap.servers": ",".join(self.values["bootstrap.servers"])}
        for name, text in self.texts.items():
            if name.startswith(("sasl.", "security.")):
                settings[name] = text
        return settings

    def engine_settings(self) -> dict[str, Any]:
        """What statements see."""
        known = {name: value for name, value in self.values.items() if name.startswith("ksql.")}
        more = {name: text for name, text in self.texts.items() if name.startswith("ksql.")}
        return {**known, **more, "ksql.service.id": self.service_id}

    def streams_settings(self, overrides: Mapping[str, Any]) -> dict[str, Any]:
        """For the application that a query is: the server's settings, then the statement's."""
        settings: dict[str, Any] = dict(self.client_settings())
        for values in (self.texts, overrides):
            for name, value in values.items():
                if name.startswith(_STREAMS):
                    settings[name.removeprefix(_STREAMS)] = value
                elif values is overrides and not name.startswith("ksql."):
                    settings[name] = value
        return settings
