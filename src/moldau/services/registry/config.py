"""RegistryConfig: what a properties file says, checked."""

from __future__ import annotations

import logging
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from moldau.config.errors import ConfigError
from moldau.config.suggestions import did_you_mean
from moldau.http.config import HttpConfig
from moldau.http.machine.listeners import Listener
from moldau.services.registry.config_keys import (
    BUILT_IN,
    DEFAULT_PORT,
    KMS_PREFIX,
    NO_EFFECT,
    NOT_SUPPORTED,
    REFUSED,
    REGISTRY_KEYS,
    STORE_PREFIX,
)
from moldau.services.registry.machine.configs import LEVELS
from moldau.services.registry.machine.scopes import ServerDefaults

__all__ = ["RegistryConfig"]

logger = logging.getLogger(__name__)

_TOPIC_CONFIG: Final = "kafkastore.topic.config."
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")

#: What is listed in pages.
_LIMITED: Final = (
    "schema",
    "subject",
    "subject.version",
    "context",
    "kek",
    "dek.subject",
    "dek.version",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryConfig:
    """`clients` has the settings of producer, consumer, admin and group member."""

    http: HttpConfig
    defaults: ServerDefaults
    topic: str
    keys_topic: str
    keys_max: int
    topic_configs: Mapping[str, str]
    replication_factor: int
    skip_topic_validation: bool
    init_timeout_ms: int
    timeout_ms: int
    group_id: str
    session_timeout_ms: int
    heartbeat_interval_ms: int
    rebalance_timeout_ms: int
    eligible: bool
    sticky: bool
    host_name: str
    host_port: int | None
    inter_instance_scheme: str
    inter_instance_listener: str
    leader_connect_timeout_ms: int
    leader_read_timeout_ms: int
    cache_size: int
    rejects_empty_subject: bool
    has_associations: bool
    permissions_file: str | None
    limits: Mapping[str, int]
    clients: Mapping[str, str] = field(repr=False)
    #: Settings of the KMS of shared KEKs.
    kms_params: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> RegistryConfig:
        """From texts by key. Raises ConfigError."""
        _check_known(properties)
        values = REGISTRY_KEYS.parse(properties)
        http = HttpConfig.of(values, default_port=DEFAULT_PORT)
        servers = ",".join(values["kafkastore.bootstrap.servers"])
        if not servers:
            raise ConfigError(
                "kafkastore.bootstrap.servers is missing. Say where the brokers are: "
                "kafkastore.bootstrap.servers=127.0.0.1:9092",
                key="kafkastore.bootstrap.servers",
            )
        own = {name for name in REGISTRY_KEYS if name.startswith(STORE_PREFIX)} | NO_EFFECT
        clients = {
            name.removeprefix(STORE_PREFIX): text
            for name, text in properties.items()
            if name.startswith(STORE_PREFIX)
            and name not in own
            and not name.startswith(_TOPIC_CONFIG)
        }
        eligible = values["leader.eligibility"]
        if values["master.eligibility"] is not None:
            eligible = values["master.eligibility"]
        return cls(
            http=http,
            defaults=ServerDefaults(
                compatibility_level=_level(values),
                validate_fields=values["schema.validate.fields"],
                mode_mutability=values["mode.mutability"],
            ),
            topic=values["kafkastore.topic"],
            keys_topic=values["dek.registry.topic"],
            keys_max=values["dek.registry.max.keys"],
            topic_configs=_below(_TOPIC_CONFIG, properties),
            replication_factor=values["kafkastore.topic.replication.factor"],
            skip_topic_validation=values["kafkastore.topic.skip.validation"],
            init_timeout_ms=values["kafkastore.init.timeout.ms"],
            timeout_ms=values["kafkastore.timeout.ms"],
            group_id=values["schema.registry.group.id"],
            session_timeout_ms=values["kafkagroup.session.timeout.ms"],
            heartbeat_interval_ms=values["kafkagroup.heartbeat.interval.ms"],
            rebalance_timeout_ms=values["kafkagroup.rebalance.timeout.ms"],
            eligible=eligible,
            sticky=values["leader.election.sticky"],
            host_name=values["host.name"],
            host_port=values["host.port"],
            inter_instance_scheme=values["inter.instance.protocol"],
            inter_instance_listener=values["inter.instance.listener.name"],
            leader_connect_timeout_ms=values["leader.connect.timeout.ms"],
            leader_read_timeout_ms=values["leader.read.timeout.ms"],
            cache_size=values["schema.cache.size"],
            rejects_empty_subject=values["schema.reject.empty.subject"],
            has_associations=values["associations.enable"],
            permissions_file=values["subject.permissions.file"],
            limits={
                kind: min(
                    values[f"{kind}.search.max.limit"], values[f"{kind}.search.default.limit"]
                )
                for kind in _LIMITED
            },
            clients={"bootstrap.servers": servers, **clients},
            kms_params=_below(KMS_PREFIX, properties),
        )

    def advertised(self, listeners: list[Listener]) -> tuple[str, str, int]:
        """Scheme, host and port by which other instances reach this one."""
        chosen: Listener | None = None
        for each in listeners:
            if self.inter_instance_listener and each.name == self.inter_instance_listener.lower():
                chosen = each
                break
            if each.secure == (self.inter_instance_scheme == "https"):
                chosen = each
        if chosen is None:
            raise ConfigError(
                f"no listener has the protocol {self.inter_instance_scheme} of "
                "inter.instance.protocol. Add one to listeners, or change the key",
                key="inter.instance.protocol",
            )
        host = self.host_name
        if not host:
            # An instance that only this machine can reach is not advertised to others.
            host = chosen.host if chosen.host in _LOOPBACK else socket.getfqdn()
        scheme = "https" if chosen.secure else "http"
        return scheme, host, chosen.port if self.host_port is None else self.host_port


def _below(prefix: str, properties: Mapping[str, str]) -> dict[str, str]:
    """The settings with a prefix, by their names without it."""
    return {
        name.removeprefix(prefix): text
        for name, text in properties.items()
        if name.startswith(prefix)
    }


def _level(values: Mapping[str, Any]) -> str:
    key = "schema.compatibility.level"
    text: str = values[key]
    if values["avro.compatibility.level"]:
        key = "avro.compatibility.level"
        text = values[key]
    if text.upper() not in LEVELS:
        raise ConfigError.invalid(key, text, f"use one of {', '.join(LEVELS).lower()}")
    return text.upper()


def _check_known(properties: Mapping[str, str]) -> None:
    for name, text in properties.items():
        if name in REFUSED and text.strip() not in ("", BUILT_IN):
            raise ConfigError(f"{name}: {REFUSED[name]}", key=name)
        if name in NOT_SUPPORTED:
            logger.warning("the key %s has no effect: %s", name, NOT_SUPPORTED[name])
            continue
        known = name in REGISTRY_KEYS or name in NO_EFFECT or name in REFUSED
        if not known and not name.startswith((STORE_PREFIX, KMS_PREFIX)):
            logger.warning(
                "the key %s is not known and is ignored%s",
                name,
                did_you_mean(name, REGISTRY_KEYS),
            )
