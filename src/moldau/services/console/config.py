"""ConsoleConfig: the settings of the Control Center.

Keys without a prefix describe the cluster `default`; `clusters` names further ones, each with the
same keys under `cluster.NAME.`. `client.*` goes to every client of a cluster, `producer.*`,
`consumer.*` and `admin.*` to one kind.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, Final

from moldau.config.errors import ConfigError
from moldau.http.config import HttpConfig
from moldau.http.keys import http_keys
from moldau.services.console.machine.masks import MaskRule, parse_mask_rules

__all__ = ["CONSOLE_KEYS", "ClusterConfig", "ConsoleConfig"]

CONSOLE_KEYS = http_keys("""
bootstrap.servers                      list     []          h  *
schema.registry.url                    string   -           h
connect.url                            string   -           h
sql.url                                string   -           h
cluster.name                           string   default     m
clusters                               list     []          m  *
port                                   int      9021        l  0..65535
login                                  string   AUTO        h  {AUTO,NONE,PASSWORD,OIDC}
login.failures.max                     int      5           m  >=1
login.failures.window.ms               long     60000       m  >=1
session.timeout.ms                     long     28800000    m  >=1000
sessions.max                           int      1000        m  >=1
oidc.issuer.url                        string   -           m
oidc.client.id                         string   -           m
oidc.client.secret                     password -           m
oidc.scopes                            list     openid      l  *
oidc.redirect.url                      string   -           l
platform.data                          string   -           l
mirror.file                            string   -           l
read.only                              boolean  false       m
audit.topic                            string   _console-audit m
clients.max                            int      100         m  >=1
refresh.ms                             long     5000        m  >=500
history.points.max                     int      720         l  >=10
consume.records.max                    int      10000       m  >=1
search.records.max                     long     100000000   m  >=1
table.keys.max                         int      100000      m  >=1
streams.max                            int      50          m  >=1
streams.rates                          boolean  true        l
""")

_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,100}")
_SERVICES: Final = {
    "registry": "schema.registry.url",
    "connect": "connect.url",
    "sql": "sql.url",
}
_CLIENT_DEFAULTS: Final[Mapping[str, Mapping[str, str]]] = {
    "producer": {
        "linger.ms": "1",
        "max.block.ms": "10000",
        "request.timeout.ms": "20000",
        "delivery.timeout.ms": "45000",
    },
    "consumer": {
        "default.api.timeout.ms": "30000",
        "enable.auto.commit": "false",
        "allow.auto.create.topics": "false",
    },
    "admin": {"default.api.timeout.ms": "20000", "request.timeout.ms": "15000"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """One cluster and the services beside it; `texts` are its properties without the prefix."""

    name: str
    bootstrap_servers: tuple[str, ...]
    texts: Mapping[str, str] = field(repr=False)

    def service_url(self, key: str) -> str | None:
        """`schema.registry.url`, `connect.url` or `sql.url`: the first address, without a slash at
        the end; None if the service is not configured."""
        text = self.texts.get(key, "").split(",")[0].strip().rstrip("/")
        return text or None

    @property
    def services(self) -> dict[str, str | None]:
        """For the pages: which services there are."""
        return {name: self.service_url(key) for name, key in _SERVICES.items()}

    def client_settings(self, kind: str) -> dict[str, str]:
        """For a producer, consumer or admin, with the console's own credentials."""
        settings = dict(_CLIENT_DEFAULTS[kind])
        settings["client.id"] = "moldau-console"
        settings["bootstrap.servers"] = ",".join(self.bootstrap_servers)
        for prefix in ("client.", f"{kind}."):
            for name, text in self.texts.items():
                if name.startswith(prefix):
                    settings[name.removeprefix(prefix)] = text
        return settings


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleConfig:
    http: HttpConfig
    clusters: Mapping[str, ClusterConfig]
    login: str
    """NONE, PASSWORD or OIDC."""
    masks: tuple[MaskRule, ...]
    values: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> ConsoleConfig:
        """Raises ConfigError."""
        values = CONSOLE_KEYS.parse(texts)
        http = HttpConfig.of(values, default_port=values["port"])
        clusters = {each.name: each for each in _clusters(values, texts)}
        login = _login(values, http, clusters)
        return cls(
            http=http, clusters=clusters, login=login, masks=parse_mask_rules(texts), values=values
        )

    def __getitem__(self, key: str) -> Any:
        return self.values[key]


def _clusters(values: Mapping[str, Any], texts: Mapping[str, str]) -> list[ClusterConfig]:
    found = []
    if values["bootstrap.servers"]:
        own = {key: text for key, text in texts.items() if not key.startswith("cluster.")}
        found.append(_cluster(values["cluster.name"], own))
    for name in values["clusters"]:
        prefix = f"cluster.{name}."
        own = {
            key.removeprefix(prefix): text for key, text in texts.items() if key.startswith(prefix)
        }
        found.append(_cluster(name, own))
    if not found:
        raise ConfigError(
            "bootstrap.servers is missing: set it to the addresses of the brokers, for example "
            "bootstrap.servers=localhost:9092",
            key="bootstrap.servers",
        )
    names = [each.name for each in found]
    if len(set(names)) < len(names):
        raise ConfigError.invalid("clusters", ",".join(names), "each name may appear once")
    return found


def _cluster(name: str, texts: Mapping[str, str]) -> ClusterConfig:
    if not _NAME.fullmatch(name):
        raise ConfigError.invalid(
            "clusters", name, "a name has letters, digits, dots, dashes and underscores"
        )
    servers = tuple(
        each.strip() for each in texts.get("bootstrap.servers", "").split(",") if each.strip()
    )
    if not servers:
        key = f"cluster.{name}.bootstrap.servers"
        raise ConfigError(f"{key} is missing: set it to the addresses of the brokers", key=key)
    return ClusterConfig(name=name, bootstrap_servers=servers, texts=texts)


def _login(
    values: Mapping[str, Any], http: HttpConfig, clusters: Mapping[str, ClusterConfig]
) -> str:
    """AUTO is no login on loopback. A console that others can reach has to ask who they are."""
    login: str = values["login"]
    open_to = [each.url for each in http.listeners if not _is_loopback(each.host)]
    if login == "AUTO":
        if open_to:
            raise ConfigError(
                f"The console listens on {', '.join(open_to)} and anyone there could use it with "
                "the console's rights. Set login=PASSWORD (users of the broker), login=OIDC, or "
                "login=NONE if a proxy in front of it asks for a login",
                key="login",
            )
        return "NONE"
    if login == "PASSWORD":
        for each in clusters.values():
            settings = each.client_settings("admin")
            protocol = settings.get("security.protocol", "PLAINTEXT").upper()
            if not protocol.startswith("SASL"):
                raise ConfigError(
                    f"login=PASSWORD needs brokers that check passwords, and the cluster "
                    f"{each.name} is used with {protocol}: set client.security.protocol to "
                    "SASL_SSL or SASL_PLAINTEXT, and client.sasl.mechanism",
                    key="login",
                )
    if login == "OIDC" and not (values["oidc.issuer.url"] and values["oidc.client.id"]):
        raise ConfigError(
            "login=OIDC needs oidc.issuer.url and oidc.client.id", key="oidc.issuer.url"
        )
    return login


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
