"""RestConfig: the settings of the proxy, by Confluent's keys.

`client.*` goes to every client of the proxy, `producer.*`, `consumer.*` and `admin.*` to one kind.
Keys that are not Confluent's: `producer.pool.size`, `produce.records.max`, `clients.max`,
`consumer.instances.max` and `consume.*`, each a bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from moldau.config.errors import ConfigError
from moldau.http.config import HttpConfig
from moldau.http.keys import http_keys

__all__ = ["REST_KEYS", "RestConfig"]

DEFAULT_PORT: Final = 8082

REST_KEYS = http_keys("""
bootstrap.servers                      list     []          h  *
schema.registry.url                    string   -           h
id                                     string   ""          h
host.name                              string   ""          m
port                                   int      8082        l  0..65535
advertised.listeners                   list     []          m  *
api.v2.enable                          boolean  true        l
api.v3.enable                          boolean  true        l
confluent.resource.name.authority      string   ""          l
confluent.rest.auth.propagate.method   string   NONE        m  {NONE,JETTY_AUTH}
consumer.request.timeout.ms            int      1000        m  >=0
consumer.request.max.bytes             long     67108864    m  >=1
consumer.instance.timeout.ms           int      300000      l  >=1
consumer.instances.max                 int      1000        m  >=1
consumer.threads                       int      50          l
fetch.min.bytes                        int      -1          l  -1..10000000
simpleconsumer.pool.size.max           int      25          m  >=1
simpleconsumer.pool.timeout.ms         int      1000        l  >=0
consume.records.max                    int      10000       m  >=1
consume.timeout.ms.max                 int      60000       m  >=0
producer.threads                       int      5           l
producer.pool.size                     int      1           l  1..64
produce.batch.maximum.entries          int      1000        m  >=1
produce.records.max                    int      100000      m  >=1
streaming.connection.max.duration.ms   long     86400000    m  >=1
clients.max                            int      100         m  >=1
""")

#: Timeouts are shorter than a client's own: an answer comes within request.timeout.ms.
_CLIENT_DEFAULTS: Final[Mapping[str, Mapping[str, str]]] = {
    "producer": {
        # A request's records are one batch: with no linger at all the first would go alone.
        "linger.ms": "1",
        "batch.size": "262144",
        "max.block.ms": "10000",
        "request.timeout.ms": "20000",
        "delivery.timeout.ms": "45000",
    },
    "consumer": {"default.api.timeout.ms": "30000"},
    "admin": {"default.api.timeout.ms": "30000"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RestConfig:
    """`texts` are all properties as they were given, for the settings of clients."""

    http: HttpConfig
    values: Mapping[str, Any] = field(repr=False)
    texts: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> RestConfig:
        """Raises ConfigError."""
        values = REST_KEYS.parse(texts)
        if not values["bootstrap.servers"]:
            raise ConfigError(
                "bootstrap.servers is missing: set it to the addresses of the brokers, for example "
                "bootstrap.servers=localhost:9092",
                key="bootstrap.servers",
            )
        http = HttpConfig.of(values, default_port=values["port"])
        return cls(http=http, values=values, texts=dict(texts))

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    @property
    def passes_on(self) -> bool:
        """Whether the credentials of a request are those of its client at the broker."""
        return bool(self.values["confluent.rest.auth.propagate.method"] == "JETTY_AUTH")

    def client_settings(self, kind: str) -> dict[str, str]:
        """For a producer, consumer or admin."""
        settings = dict(_CLIENT_DEFAULTS[kind])
        settings["bootstrap.servers"] = ",".join(self.values["bootstrap.servers"])
        for prefix in ("client.", f"{kind}."):
            for name, text in self.texts.items():
                if name.startswith(prefix) and name not in REST_KEYS:
                    settings[name.removeprefix(prefix)] = text
        return settings
