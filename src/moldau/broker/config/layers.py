"""Dynamic broker configuration: what the cluster and one broker have set on top of the file.

Precedence, highest first: this broker's dynamic values, the cluster's dynamic defaults, the static
file, built-in defaults. A value set at a higher layer hides every synonym of it below, so a dynamic
log.retention.ms wins over a static log.retention.hours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from moldau.broker.config.broker_config import BrokerConfig
from moldau.broker.config.broker_keys import BROKER_KEYS
from moldau.broker.config.resource_keys import DYNAMIC_ONLY_KEYS
from moldau.config.definition import ConfigKey, Dynamic
from moldau.config.errors import ConfigError

__all__ = [
    "ConfigLayers",
    "DynamicBrokerConfig",
    "broker_key",
    "broker_synonyms",
    "check_dynamic_values",
]

_SYNONYMS: dict[str, tuple[str, ...]] = {
    name: group
    for group in (
        ("log.roll.ms", "log.roll.hours"),
        ("log.roll.jitter.ms", "log.roll.jitter.hours"),
        ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    )
    for name in group
}
_SYNONYMS["log.flush.interval.ms"] = ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")

_LISTENER_KEY = re.compile(r"listener\.name\.[^.]*\.(.*)")
# Given as listener.name.<listener>.<mechanism>.<key>.
_MECHANISM_KEYS = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)
_CLUSTER_LISTENER_KEYS = frozenset(
    {"max.connections", "max.connection.creation.rate", "num.network.threads"}
)
_CREATION_RATE = "max.connection.creation.rate"
# Key and trust stores: those of all listeners at once cannot be changed.
_STORE_KEYS = frozenset(
    {
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
# A pool may at most double or halve in one step.
_THREAD_KEYS = (
    "background.threads",
    "log.cleaner.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
    "remote.log.reader.threads",
)


def broker_synonyms(name: str, *, listeners: bool = True) -> tuple[str, ...]:
    """Names that stand for the same setting, in order of precedence."""
    if listeners and (base := _listener_base(name)) is not None:
        return (name, base)
    return _SYNONYMS.get(name, (name,))


def _listener_base(name: str) -> str | None:
    """The plain key behind `listener.name.<listener>.[<mechanism>.]<key>`."""
    match = _LISTENER_KEY.fullmatch(name)
    if match is None:
        return None
    return next((key for key in _MECHANISM_KEYS if match[1].endswith(key)), match[1])


def broker_key(name: str) -> ConfigKey | None:
    """The definition behind a broker name, listener prefixes and dynamic-only names included."""
    base = _listener_base(name)
    return BROKER_KEYS.get(base or name) or DYNAMIC_ONLY_KEYS.get(name)


class ConfigLayers:
    """One combination of layers. Immutable."""

    __slots__ = ("broker", "cluster", "effective", "static")

    def __init__(
        self,
        static: BrokerConfig,
        *,
        cluster: Mapping[str, str] | None = None,
        broker: Mapping[str, str] | None = None,
    ) -> None:
        self.static = static
        self.cluster: dict[str, str] = dict(cluster or ())
        self.broker: dict[str, str] = dict(broker or ())
        if self.cluster or self.broker:
            texts = dict(static.originals)
            for layer in (self.cluster, self.broker):
                for name, text in layer.items():
                    for synonym in broker_synonyms(name, listeners=False):
                        texts.pop(synonym, None)
                    texts[name] = text
            self.effective = BrokerConfig.from_properties(texts)
        else:
            self.effective = static


class DynamicBrokerConfig:
    """The current layers and the rules for changing them.

    `current` is always a complete, checked configuration: invalid values are left out.
    """

    __slots__ = ("layers",)

    def __init__(self, static: BrokerConfig) -> None:
        self.layers = ConfigLayers(static)

    @property
    def static(self) -> BrokerConfig:
        return self.layers.static

    @property
    def current(self) -> BrokerConfig:
        return self.layers.effective

    def apply(
        self, *, cluster: Mapping[str, str], broker: Mapping[str, str]
    ) -> tuple[frozenset[str], tuple[str, ...]]:
        """Apply new layers: returns names whose value changed, and one line per value left out."""
        problems: list[str] = []
        usable_cluster = _usable(cluster, per_broker=False, problems=problems)
        usable_broker = _usable(broker, per_broker=True, problems=problems)
        before = self.layers.effective
        try:
            self.layers = ConfigLayers(self.static, cluster=usable_cluster, broker=usable_broker)
        except ConfigError as error:
            problems.append(f"Dynamic configuration not applied: {error}")
        return _changed(before, self.layers.effective), tuple(problems)

    def validate(self, values: Mapping[str, str], *, per_broker: bool) -> None:
        """Check all dynamic values of this broker (or of the cluster) as they are to become."""
        check_dynamic_values(values, per_broker=per_broker)
        layers = ConfigLayers(
            self.static,
            cluster=self.layers.cluster if per_broker else values,
            broker=values if per_broker else self.layers.broker,
        )
        _check_thread_steps(self.current, layers.effective)
        _check_local_retention(layers.effective)


def check_dynamic_values(values: Mapping[str, str], *, per_broker: bool) -> None:
    """Whether these names may be set dynamically at this level, and each value on its own."""
    _refuse("Cannot update these configs dynamically", filter(_is_read_only, values))
    _refuse(
        "These security configs can be dynamically updated only per-listener using the listener "
        "prefix",
        filter(_STORE_KEYS.__contains__, values),
    )
    for name, text in values.items():
        key = broker_key(name)
        if key is not None:
            key.parse(text)
            _check_creation_rate(name, text)
    if not per_broker:
        _refuse(
            "Cannot update these configs at default cluster level, broker id must be specified",
            filter(_is_per_broker, values),
        )


def _refuse(reason: str, names: Any) -> None:
    listed = ", ".join(names)
    if listed:
        raise ConfigError(f"{reason}: [{listed}]", key=listed)


def _is_read_only(name: str) -> bool:
    key = BROKER_KEYS.get(name)
    return key is not None and key.dynamic is Dynamic.READ_ONLY


def _check_creation_rate(name: str, text: str) -> None:
    """Static properties may say 0."""
    if (_listener_base(name) or name) == _CREATION_RATE and int(text) <= 0:
        raise ConfigError(f"Invalid {_CREATION_RATE} {text.strip()}", key=name)


def _is_per_broker(name: str) -> bool:
    base = _listener_base(name)
    if base is not None:
        return base not in _CLUSTER_LISTENER_KEYS
    key = BROKER_KEYS.get(name)
    return key is not None and key.dynamic is Dynamic.PER_BROKER


def _usable(values: Mapping[str, str], *, per_broker: bool, problems: list[str]) -> dict[str, str]:
    """Values that can be applied; stored ones may predate a rule or a removed key."""
    usable: dict[str, str] = {}
    for name, text in values.items():
        try:
            check_dynamic_values({name: text}, per_broker=per_broker)
        except ConfigError as error:
            problems.append(f"Dynamic value ignored: {error}")
        else:
            usable[name] = text
    return usable


def _changed(before: BrokerConfig, after: BrokerConfig) -> frozenset[str]:
    if before is after:
        return frozenset()
    names = {name for name, value in after.values.items() if value != before.values[name]}
    texts = before.originals.keys() | after.originals.keys()
    names.update(
        name
        for name in texts
        if name not in BROKER_KEYS and before.originals.get(name) != after.originals.get(name)
    )
    return frozenset(names)


def _check_thread_steps(before: BrokerConfig, after: BrokerConfig) -> None:
    for name in _THREAD_KEYS:
        old, new = before[name], after[name]
        if new > old * 2 or new < old // 2:
            bound = f"at most double ({old * 2})" if new > old else f"at least half ({old // 2})"
            raise ConfigError.invalid(
                name, new, f"in one step it may become {bound} the current value {old}"
            )


def _check_local_retention(config: BrokerConfig) -> None:
    for unit in ("ms", "bytes"):
        key, total_key = f"log.local.retention.{unit}", f"log.retention.{unit}"
        local, total = config[key], config.topic_defaults[f"retention.{unit}"]
        if local == -2 or total == -1:
            continue
        if local == -1:
            raise ConfigError.invalid(key, local, f"must not be -1 while {total_key} is {total}")
        if local > total:
            raise ConfigError.invalid(
                key, local, f"Value must not be more than {total_key} property value: {total}"
            )
