"""MqttConfig: the settings of the proxy.

`client.*` goes to every client of the proxy, `producer.*`, `consumer.*` and `admin.*` to one kind.
Rules are `rules=a,b` and `rule.a.*` (`machine/mapping.py`). Every other key is in the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Final

from moldau.config.definition import ConfigDef
from moldau.config.errors import ConfigError
from moldau.config.suggestions import did_you_mean
from moldau.config.table import parse_table
from moldau.http.keys import HTTP_KEYS
from moldau.http.machine.listeners import LOOPBACK, Listener, parse_listeners
from moldau.installation import pip_install
from moldau.services.mqtt.machine.mapping import Mapper, is_kafka_topic, parse_rules

__all__ = ["DEFAULT_PORT", "MQTT_KEYS", "MqttConfig", "is_websocket", "listener_url"]

DEFAULT_PORT: Final = 1883
_WEBSOCKETS: Final = ("ws", "wss")
_PREFIXES: Final = ("client.", "producer.", "consumer.", "admin.", "rule.")
_PROTOCOLS: Final = ("mqtt:http", "mqtts:https", "ws:http", "wss:https")

_TABLE = parse_table("""
bootstrap.servers                list     []        h  *
listeners                        list     []        h  *
rules                            list     []        h  *
default.mapping                  boolean  true      m
fallback.topic                   string   mqtt      m
authentication.method            string   AUTO      h  {AUTO,NONE,BROKER}
allow.anonymous                  boolean  false     h
ssl.client.authentication        string   NONE      m  {NONE,REQUESTED,REQUIRED}
websocket.origins                list     []        m  *
connections.max                  int      100000    m  >=1
connect.timeout.ms               int      10000     m  >=1
keep.alive.max.s                 int      0         m  0..65535
packet.size.max                  int      1000000   m  128..268435460
receive.maximum                  int      1000      m  1..65535
topic.alias.maximum              int      100       l  0..65535
client.id.length.max             int      1000      l  23..65535
subscriptions.max                int      1000      m  >=1
session.expiry.max.s             long     2592000   m  >=0
session.commit.interval.ms       int      1000      m  >=10
queue.messages.max               int      1000      m  >=1
queue.bytes.max                  int      4000000   m  >=1
write.buffer.bytes.max           int      262144    m  >=1024
retained.messages.max            int      1000000   m  >=0
sessions.topic                   string   __moldau_mqtt_sessions m  nonempty
retained.topic                   string   __moldau_mqtt_retained m  nonempty
state.replication.factor         int      3         m  1..32767
proxy.heartbeat.interval.ms      int      5000      l  >=100
proxy.timeout.ms                 int      30000     l  >=1000
topics.refresh.ms                int      3000      m  >=100
catch.up.readers.max             int      20        m  >=1
clients.max                      int      100       m  >=1
moldau.metrics.port              int      -         l  0..65535
moldau.metrics.host              string   127.0.0.1 l  nonempty
""")
_SSL = tuple(key for name, key in HTTP_KEYS.items() if name.startswith("ssl."))
MQTT_KEYS = ConfigDef((*_SSL, *_TABLE))

_CLIENT_DEFAULTS: Final[Mapping[str, Mapping[str, str]]] = {
    "producer": {
        # Acknowledgements wait for a batch: short, and large when much is published.
        "linger.ms": "1",
        "batch.size": "262144",
        "max.block.ms": "15000",
        "request.timeout.ms": "20000",
        "delivery.timeout.ms": "60000",
        "acks": "all",
        "enable.idempotence": "true",
    },
    "consumer": {
        "default.api.timeout.ms": "30000",
        "isolation.level": "read_committed",
        "enable.auto.commit": "false",
        "auto.offset.reset": "earliest",
        "allow.auto.create.topics": "false",
        "fetch.max.wait.ms": "500",
    },
    "share": {"default.api.timeout.ms": "30000", "share.acknowledgement.mode": "explicit"},
    "admin": {"default.api.timeout.ms": "30000"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MqttConfig:
    """`authenticates` says that user names and passwords are those of the broker."""

    listeners: tuple[Listener, ...]
    values: Mapping[str, Any] = field(repr=False)
    texts: Mapping[str, str] = field(repr=False)
    mapper: Mapper
    authenticates: bool

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> MqttConfig:
        """Raises ConfigError."""
        for key in texts:
            if key not in MQTT_KEYS and not key.startswith(_PREFIXES):
                raise ConfigError(
                    f"{key} is not a setting of the MQTT proxy{did_you_mean(key, MQTT_KEYS)}",
                    key=key,
                )
        values = MQTT_KEYS.parse(texts)
        if not values["bootstrap.servers"]:
            raise ConfigError(
                "bootstrap.servers is missing: set it to the addresses of the brokers, for example "
                "bootstrap.servers=127.0.0.1:9092",
                key="bootstrap.servers",
            )
        fallback = values["fallback.topic"]
        if fallback and not is_kafka_topic(fallback):
            raise ConfigError.invalid("fallback.topic", fallback, "use the name of a Kafka topic")
        mapper = Mapper(
            parse_rules(texts, values["rules"]),
            default=values["default.mapping"],
            fallback=fallback,
        )
        return cls(
            listeners=_listeners(values["listeners"]),
            values=values,
            texts=dict(texts),
            mapper=mapper,
            authenticates=_authenticates(values["authentication.method"], texts),
        )

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    @property
    def mechanism(self) -> str:
        return self.client_settings("admin").get("sasl.mechanism", "GSSAPI").upper()

    def client_settings(self, kind: str) -> dict[str, str]:
        """For a producer, consumer, share consumer ("share") or admin."""
        settings = dict(_CLIENT_DEFAULTS[kind])
        settings["bootstrap.servers"] = ",".join(self.values["bootstrap.servers"])
        for prefix in ("client.", "consumer." if kind == "share" else f"{kind}."):
            for name, text in self.texts.items():
                if name.startswith(prefix) and name not in MQTT_KEYS:
                    settings[name.removeprefix(prefix)] = text
        return settings


def _authenticates(method: str, texts: Mapping[str, str]) -> bool:
    protocol = texts.get("client.security.protocol", "PLAINTEXT").upper()
    mechanism = texts.get("client.sasl.mechanism", "GSSAPI").upper()
    takes_passwords = protocol.startswith("SASL") and mechanism in (
        "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512",
    )  # fmt: skip
    if method == "BROKER" and not takes_passwords:
        raise ConfigError(
            "authentication.method=BROKER needs a broker that checks passwords: set "
            "client.security.protocol to SASL_PLAINTEXT or SASL_SSL, and client.sasl.mechanism to "
            "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512",
            key="authentication.method",
        )
    return method == "BROKER" or (method == "AUTO" and takes_passwords)


def _listeners(texts: list[str]) -> tuple[Listener, ...]:
    if not texts:
        return (Listener("mqtt", False, LOOPBACK, DEFAULT_PORT),)
    found = parse_listeners(texts, default_port=DEFAULT_PORT, protocols=_PROTOCOLS)
    for each in found:
        if each.name not in ("mqtt", "mqtts", *_WEBSOCKETS):
            raise ConfigError.invalid(
                "listeners",
                ",".join(texts),
                "use mqtt://host:port, mqtts://host:port, ws://host:port or wss://host:port",
            )
        if each.name in _WEBSOCKETS and find_spec("wsproto") is None:
            raise ConfigError.invalid(
                "listeners", ",".join(texts), f"websockets need wsproto: {pip_install('mqtt')}"
            )
    return found


def listener_url(listener: Listener) -> str:
    host = f"[{listener.host}]" if ":" in listener.host else listener.host
    path = "/mqtt" if is_websocket(listener) else ""
    return f"{listener.name}://{host}:{listener.port}{path}"


def is_websocket(listener: Listener) -> bool:
    return listener.name in _WEBSOCKETS
