"""The settings of a worker, standalone and distributed, with Kafka's names and defaults."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from moldau.config import ConfigDef, ConfigError
from moldau.config.providers import resolve, resolve_for_a_time
from moldau.config.table import parse_table
from moldau.connect.machine.dialects import translated
from moldau.connect.runtime.clients import check_policy

logger = logging.getLogger(__name__)

_NO_EFFECT = {
    "rest.extension.classes": "there are no REST extensions",
}
_BOTH = """
bootstrap.servers                        list     !          h  +
key.converter                            class    !          h
value.converter                          class    !          h
header.converter                         class    SimpleHeaderConverter l
offset.flush.interval.ms                 long     60000      l  >=0
offset.flush.timeout.ms                  long     5000       l  >=0
task.shutdown.graceful.timeout.ms        long     5000       l  >=0
connector.client.config.override.policy  string   All        m
connector.client.config.override.allowlist list   []         m  *
topic.creation.enable                    boolean  true       l
topic.tracking.enable                    boolean  true       l
topic.tracking.allow.reset               boolean  true       l
listeners                                list     http://127.0.0.1:8083 l *
admin.listeners                          list     -          l  *
rest.advertised.host.name                string   -          l
rest.advertised.port                     int      -          l
rest.advertised.listener                 string   -          l
access.control.allow.origin              string   ""         l
access.control.allow.methods             string   ""         l
plugin.path                              list     []         l  *
plugin.discovery                         string   hybrid_warn l
  ~{ONLY_SCAN,SERVICE_LOAD,HYBRID_WARN,HYBRID_FAIL}
config.providers                         list     []         l  *
"""
_STANDALONE = """
offset.storage.file.filename             string   !          h
"""
_DISTRIBUTED = """
group.id                                 string   !          h
config.storage.topic                     string   !          h
config.storage.replication.factor        short    3          l
offset.storage.topic                     string   !          h
offset.storage.replication.factor        short    3          l
offset.storage.partitions                int      25         l
status.storage.topic                     string   !          h
status.storage.replication.factor        short    3          l
status.storage.partitions                int      5          l
session.timeout.ms                       int      10000      h  >=1
heartbeat.interval.ms                    int      3000       h  >=1
rebalance.timeout.ms                     int      60000      h  >=1
worker.sync.timeout.ms                   int      3000       m
worker.unsync.backoff.ms                 int      300000     m
connect.protocol                         string   sessioned  l  ~{eager,compatible,sessioned}
scheduled.rebalance.max.delay.ms         int      300000     l  >=0
exactly.once.source.support              string   disabled   h  ~{disabled,preparing,enabled}
inter.worker.key.generation.algorithm    string   HmacSHA256 l
inter.worker.key.size                    int      -          l
inter.worker.key.ttl.ms                  int      3600000    l  >=0
inter.worker.signature.algorithm         string   HmacSHA256 l
inter.worker.verification.algorithms     list     HmacSHA256 l  +
client.id                                string   ""         l
"""


@cache
def standalone_keys() -> ConfigDef:
    return ConfigDef(parse_table(_BOTH + _STANDALONE))


@cache
def distributed_keys() -> ConfigDef:
    return ConfigDef(parse_table(_BOTH + _DISTRIBUTED))


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """`values` are the worker's own keys, `settings` everything that was given, as texts."""

    values: Mapping[str, Any]
    settings: Mapping[str, str]
    providers: Mapping[str, str]

    @classmethod
    def of(cls, given: Mapping[str, str], *, distributed: bool) -> WorkerConfig:
        """Raises ConfigError."""
        settings = resolve(given)
        keys = distributed_keys() if distributed else standalone_keys()
        values = keys.parse({key: each for key, each in settings.items() if key in keys})
        check_policy(values["connector.client.config.override.policy"])
        if distributed:
            _check_distributed(values)
        for key in _NO_EFFECT:
            if settings.get(key):
                logger.warning("%s has no effect: %s", key, _NO_EFFECT[key])
        providers = {
            key: each
            for key, each in given.items()
            if key == "config.providers" or key.startswith("config.providers.")
        }
        return cls(values, settings, providers)

    @property
    def exactly_once(self) -> bool:
        return str(self.values.get("exactly.once.source.support", "disabled")).lower() == "enabled"

    def resolved(self, connector: Mapping[str, str | None]) -> dict[str, str]:
        """A connector's configuration with its variables replaced by the worker's providers."""
        return self.resolved_for_a_time(connector)[0]

    def resolved_for_a_time(
        self, connector: Mapping[str, str | None]
    ) -> tuple[dict[str, str], int | None]:
        """With the milliseconds after which a value may have changed; None if never."""
        given = {key: each for key, each in connector.items() if each is not None}
        found, ttl_ms = resolve_for_a_time({**self.providers, **given})
        # A connector may not bring providers of its own; settings of Java's get our names.
        return translated({key: str(each) for key, each in found.items()}), ttl_ms


def _check_distributed(values: Mapping[str, Any]) -> None:
    topics = [values[f"{each}.storage.topic"] for each in ("config", "offset", "status")]
    if len(set(topics)) < len(topics):
        raise ConfigError(
            "config.storage.topic, offset.storage.topic and status.storage.topic must be three "
            f"different topics, not {', '.join(topics)}"
        )
    if values["heartbeat.interval.ms"] >= values["session.timeout.ms"]:
        raise ConfigError.invalid(
            "heartbeat.interval.ms",
            values["heartbeat.interval.ms"],
            "it must be less than session.timeout.ms",
        )
    protocol = values["connect.protocol"].lower()
    if values["exactly.once.source.support"].lower() == "enabled" and protocol != "sessioned":
        raise ConfigError.invalid(
            "connect.protocol", protocol, "exactly.once.source.support=enabled needs sessioned"
        )
