"""Checks of configuration changes, for the controller.

Every check sees a resource's configuration as it would be afterwards, so values that are only legal
together are checked together. A rejected change raises ConfigError, or ApiError where Kafka returns
INVALID_REQUEST instead of INVALID_CONFIG.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

from moldau.broker.config.broker_config import BrokerConfig
from moldau.broker.config.broker_keys import BROKER_KEYS
from moldau.broker.config.describe import ConfigEntry, describe_topic
from moldau.broker.config.layers import ConfigLayers, DynamicBrokerConfig
from moldau.broker.config.log_config import topic_values
from moldau.broker.config.resource_keys import (
    CLIENT_METRICS_KEYS,
    CLIENT_METRICS_SELECTORS,
    GROUP_KEYS,
    LOG_LEVELS,
)
from moldau.broker.config.topic_keys import TOPIC_KEYS
from moldau.config.definition import ConfigDef
from moldau.config.errors import ConfigError
from moldau.config.suggestions import did_you_mean
from moldau.config.values import ConfigType
from moldau.wire.errors import ApiError, ErrorCode

__all__ = [
    "ConfigResourceType",
    "ConfigRules",
    "validate_client_metrics_config",
    "validate_group_config",
    "validate_logger_changes",
    "validate_topic_config",
]


class ConfigResourceType(IntEnum):
    """Numbered as on the wire."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigRules:
    """All rules of one node, as the controller calls them."""

    __slots__ = ("_dynamic",)

    def __init__(self, dynamic: DynamicBrokerConfig) -> None:
        self._dynamic = dynamic

    def validate_topic(self, values: Mapping[str, str]) -> None:
        validate_topic_config(values, self._dynamic.current)

    def validate_broker(self, values: Mapping[str, str], *, per_broker: bool) -> None:
        self._dynamic.validate(values, per_broker=per_broker)

    def validate_group(self, values: Mapping[str, str]) -> None:
        validate_group_config(values, self._dynamic.current)

    def validate_client_metrics(self, values: Mapping[str, str]) -> None:
        validate_client_metrics_config(values)

    def is_list(self, resource_type: int, key: str) -> bool:
        """Whether values can be appended and subtracted."""
        keys = _LISTABLE.get(resource_type)
        defined = None if keys is None else keys.get(key)
        return defined is not None and defined.type is ConfigType.LIST

    def default_value(self, resource_type: int, key: str) -> str | None:
        """What APPEND and SUBTRACT start from if nothing is set."""
        if resource_type == ConfigResourceType.TOPIC and key in TOPIC_KEYS:
            return TOPIC_KEYS[key].render(self._dynamic.current.topic_defaults[key])
        keys = _LISTABLE.get(resource_type)
        defined = None if keys is None else keys.get(key)
        return None if defined is None or defined.required else defined.render(defined.default)

    def effective_topic(
        self, topic: Mapping[str, str], cluster: Mapping[str, str], broker: Mapping[str, str]
    ) -> Sequence[ConfigEntry]:
        """A topic's whole configuration under these layers, sorted by name."""
        layers = self._dynamic.layers
        if cluster != layers.cluster or broker != layers.broker:
            layers = ConfigLayers(layers.static, cluster=cluster, broker=broker)
        return describe_topic(layers, topic)


# Client metrics are lists too, but Kafka lets them only be set as a whole.
_LISTABLE: dict[int, ConfigDef] = {
    ConfigResourceType.TOPIC: TOPIC_KEYS,
    ConfigResourceType.BROKER: BROKER_KEYS,
    ConfigResourceType.GROUP: GROUP_KEYS,
}


def validate_topic_config(overrides: Mapping[str, str | None], broker_config: BrokerConfig) -> None:
    """Check all overrides of one topic together."""
    missing = [name for name, text in overrides.items() if text is None]
    if missing:
        raise ConfigError(f"Null value not supported for topic configs: {','.join(missing)}")
    for name in overrides:
        if name not in TOPIC_KEYS:
            raise ConfigError(
                f"Unknown topic config name: {name}{_guess(name, TOPIC_KEYS)}", key=name
            )
    texts = {name: text for name, text in overrides.items() if text is not None}
    values = topic_values(broker_config, texts)
    least, most = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    if least > most:
        raise ConfigError(
            f"conflict topic config setting min.compaction.lag.ms ({least}) > "
            f"max.compaction.lag.ms ({most})",
            key="min.compaction.lag.ms",
        )
    if values["remote.storage.enable"]:
        _check_remote_storage(values, broker_config)


def _check_remote_storage(values: Mapping[str, Any], broker_config: BrokerConfig) -> None:
    if not broker_config["remote.log.storage.system.enable"]:
        raise ConfigError(
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured "
            "with remote log storage (remote.log.storage.system.enable=false)",
            key="remote.storage.enable",
        )
    if "compact" in values["cleanup.policy"]:
        raise ConfigError.invalid(
            "remote.storage.enable", "true", "not allowed while cleanup.policy contains compact"
        )
    for unit in ("ms", "bytes"):
        total, local = values[f"retention.{unit}"], values[f"local.retention.{unit}"]
        if local != -2 and total != -1 and (local == -1 or local > total):
            raise ConfigError.invalid(
                f"local.retention.{unit}", local, f"must be at most retention.{unit}={total}"
            )


def validate_group_config(overrides: Mapping[str, str], broker_config: BrokerConfig) -> None:
    """Check all values of one group against each other and the broker's bounds."""
    for name in overrides:
        if name not in GROUP_KEYS:
            raise ConfigError(
                f"Unknown group config name: {name}{_guess(name, GROUP_KEYS)}", key=name
            )
    values: dict[str, Any] = {
        name: broker_config.get(f"group.{name}", key.default) for name, key in GROUP_KEYS.items()
    }
    values.update(GROUP_KEYS.parse_given(overrides))
    for name in overrides:
        _check_group_bounds(name, values[name], broker_config)
    for kind in ("consumer", "share", "streams"):
        heartbeat = values[f"{kind}.heartbeat.interval.ms"]
        session = values[f"{kind}.session.timeout.ms"]
        if heartbeat >= session:
            raise ConfigError(
                f"{kind}.session.timeout.ms={session} must be greater than "
                f"{kind}.heartbeat.interval.ms={heartbeat}",
                key=f"{kind}.session.timeout.ms",
            )


def _check_group_bounds(name: str, value: Any, broker_config: BrokerConfig) -> None:
    kind, _, stem = name.partition(".")
    # num.standby.replicas is the one key whose bound drops a word: max.standby.replicas.
    bound = stem.removeprefix("num.")
    least = broker_config.get(f"group.{kind}.min.{bound}")
    most = broker_config.get(f"group.{kind}.max.{bound}")
    if least is not None and value < least:
        raise ConfigError(
            f"{name}={value} must be greater than or equal to group.{kind}.min.{bound}={least}",
            key=name,
        )
    if most is not None and value > most:
        raise ConfigError(
            f"{name}={value} must be less than or equal to group.{kind}.max.{bound}={most}",
            key=name,
        )


def validate_client_metrics_config(overrides: Mapping[str, str]) -> None:
    """Check one client metrics subscription."""
    for name in overrides:
        if name not in CLIENT_METRICS_KEYS:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"Unknown client metrics configuration: {name}{_guess(name, CLIENT_METRICS_KEYS)}",
            )
    values = CLIENT_METRICS_KEYS.parse_given(overrides)
    interval = values.get("interval.ms", 300_000)
    if not 100 <= interval <= 3_600_000:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Invalid value {interval} for interval.ms, interval must be between 100 and 3600000 "
            "(1 hour)",
        )
    for pattern in values.get("match", ()):
        selector, separator, expression = (part.strip() for part in pattern.partition("="))
        if selector not in CLIENT_METRICS_SELECTORS or not separator or "=" in expression:
            raise _illegal_pattern(pattern)
        try:
            re.compile(expression)
        except re.error:
            raise _illegal_pattern(pattern) from None


def _illegal_pattern(pattern: str) -> ConfigError:
    return ConfigError(
        f"Illegal client matching pattern: {pattern}. Use selector=regex with one of "
        f"{', '.join(sorted(CLIENT_METRICS_SELECTORS))}",
        key="match",
        value=pattern,
    )


def validate_logger_changes(
    operations: Sequence[tuple[str, int, str | None]], loggers: Mapping[str, str]
) -> None:
    """Check (logger, operation, level) changes; operations: 0 set, 1 delete, 2/3 not allowed."""
    for name, operation, level in operations:
        if operation not in (0, 1):
            verb = {2: "APPEND", 3: "SUBTRACT"}.get(operation)
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"{verb} operation is not allowed for the BROKER_LOGGER resource"
                if verb
                else f"Unknown operation type {operation} is not allowed for the BROKER_LOGGER "
                "resource",
            )
        if name not in loggers:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
        if operation == 1 and name == "root":
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "Removing the log level of the root logger is not allowed",
            )
        if operation == 0 and level not in LOG_LEVELS:
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                f"Cannot set the log level of {name} to {level} as it is not a supported log "
                f"level. Valid log levels are {', '.join(LOG_LEVELS)}",
            )


def _guess(name: str, keys: Mapping[str, Any]) -> str:
    guess = did_you_mean(name, keys)
    return f".{guess}" if guess else ""
