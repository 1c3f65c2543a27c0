"""DescribeConfigs: every value with its source.

An entry's source is that of its first synonym; synonyms are listed from the layer that wins down to
the built-in default, as Kafka lists them. Secrets and values of unknown keys are never returned.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from moldau.broker.config.broker_keys import BROKER_KEYS
from moldau.broker.config.layers import ConfigLayers, broker_key, broker_synonyms
from moldau.broker.config.log_config import topic_values
from moldau.broker.config.no_effect import GROUP_REASONS, REASONS, TOPIC_REASONS
from moldau.broker.config.resource_keys import (
    CLIENT_METRICS_KEYS,
    DYNAMIC_ONLY_KEYS,
    GROUP_KEYS,
    group_key_synonym,
)
from moldau.broker.config.topic_keys import TOPIC_KEYS, TOPIC_SYNONYMS
from moldau.config.definition import ConfigKey, Dynamic
from moldau.config.no_effect import reason_for
from moldau.config.values import ConfigType

__all__ = [
    "ConfigEntry",
    "ConfigSource",
    "ConfigSynonym",
    "describe_broker",
    "describe_broker_defaults",
    "describe_client_metrics",
    "describe_group",
    "describe_loggers",
    "describe_topic",
    "documentation",
]


class ConfigSource(IntEnum):
    """Numbered as on the wire."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class ConfigSynonym(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """One config of a response. Its documentation comes from `documentation(name)`."""

    name: str
    value: str | None
    source: ConfigSource
    type: ConfigType
    read_only: bool
    is_sensitive: bool
    synonyms: tuple[ConfigSynonym, ...]


def documentation(name: str) -> str | None:
    """What a key is for, and the reason if it has no effect; None for keys without a text."""
    # Loaded on demand: it is rarely requested, and would cost time at every start.
    from moldau.broker.config.key_texts import DOCUMENTATION

    text = DOCUMENTATION.get(name)
    if text is None and (key := broker_key(name)) is not None:
        name = key.name
        text = DOCUMENTATION.get(name)
    for reasons in (REASONS, TOPIC_REASONS, GROUP_REASONS):
        if reason := reason_for(name, reasons):
            return f"{text or ''} No effect here: {reason}.".strip()
    return text


def describe_topic(layers: ConfigLayers, overrides: Mapping[str, str]) -> list[ConfigEntry]:
    """Every topic key, sorted; internal ones only when the topic sets them."""
    values = topic_values(layers.effective, overrides)
    entries: list[ConfigEntry] = []
    for name, key in TOPIC_KEYS.items():
        if key.internal and name not in overrides:
            continue
        value = key.render(values[name])
        first = TOPIC_SYNONYMS.get(name, ("",))[0]
        synonyms = _layer_synonyms(layers, first) if first else ()
        if name in overrides:
            own = ConfigSynonym(name, value, ConfigSource.DYNAMIC_TOPIC_CONFIG)
            synonyms = (own, *synonyms)
        entries.append(_entry(name, value, key.type, synonyms))
    return entries


def describe_broker(layers: ConfigLayers) -> list[ConfigEntry]:
    """Everything this broker runs with; internal keys only when set."""
    config = layers.effective
    names = [name for name in config.originals if name not in BROKER_KEYS]
    names += [
        name for name, key in BROKER_KEYS.items() if not key.internal or name in config.originals
    ]
    entries: list[ConfigEntry] = []
    for name in names:
        key = broker_key(name)
        sensitive = _is_sensitive(key)
        if sensitive or key is None:
            value = None
        elif name in BROKER_KEYS:
            value = key.render(config[name])
        else:
            value = config.originals[name]
        entries.append(_broker_entry(name, key, value, _layer_synonyms(layers, name)))
    return entries


def describe_broker_defaults(layers: ConfigLayers) -> list[ConfigEntry]:
    """The dynamic defaults of the whole cluster, nothing else."""
    entries: list[ConfigEntry] = []
    for name, text in layers.cluster.items():
        key = broker_key(name)
        value = None if _is_sensitive(key) else text
        synonyms = tuple(
            synonym
            for synonym in _layer_synonyms(layers, name)
            if synonym.source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
        )
        entries.append(_broker_entry(name, key, value, synonyms))
    return entries


def describe_group(layers: ConfigLayers, overrides: Mapping[str, str]) -> list[ConfigEntry]:
    """Every group key; the broker's group.* keys supply what the group does not set."""
    entries: list[ConfigEntry] = []
    for name, key in GROUP_KEYS.items():
        broker_name = group_key_synonym(name)
        if broker_name is None:
            default = key.default
            synonyms: tuple[ConfigSynonym, ...] = (
                ConfigSynonym(name, key.render(default), ConfigSource.DEFAULT_CONFIG),
            )
        else:
            default = layers.effective[broker_name]
            synonyms = _layer_synonyms(layers, broker_name)
        value = key.render(default)
        if name in overrides:
            value = key.render(key.parse(overrides[name]))
            synonyms = (ConfigSynonym(name, value, ConfigSource.GROUP_CONFIG), *synonyms)
        entries.append(_entry(name, value, key.type, synonyms))
    return entries


def describe_client_metrics(overrides: Mapping[str, str]) -> list[ConfigEntry]:
    """A subscription's three keys."""
    entries: list[ConfigEntry] = []
    for name, key in CLIENT_METRICS_KEYS.items():
        value, synonyms = key.render(key.default), ()
        if name in overrides:
            value = key.render(key.parse(overrides[name]))
            own = ConfigSynonym(name, value, ConfigSource.CLIENT_METRICS_CONFIG)
            entries.append(_entry(name, value, key.type, (own,)))
            continue
        entries.append(_entry(name, value, key.type, synonyms))
    return entries


def describe_loggers(levels: Mapping[str, str]) -> list[ConfigEntry]:
    """Loggers and their levels."""
    source = ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG
    return [
        ConfigEntry(name, level, source, ConfigType.UNKNOWN, False, False, ())
        for name, level in levels.items()
    ]


def _entry(
    name: str, value: str | None, kind: ConfigType, synonyms: tuple[ConfigSynonym, ...]
) -> ConfigEntry:
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
    return ConfigEntry(name, value, source, kind, False, False, synonyms)


def _broker_entry(
    name: str, key: ConfigKey | None, value: str | None, synonyms: tuple[ConfigSynonym, ...]
) -> ConfigEntry:
    defined = BROKER_KEYS.get(name) or DYNAMIC_ONLY_KEYS.get(name)
    return ConfigEntry(
        name,
        value,
        synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
        ConfigType.UNKNOWN if key is None else key.type,
        defined is None or defined.dynamic is Dynamic.READ_ONLY,
        _is_sensitive(key),
        synonyms,
    )


def _is_sensitive(key: ConfigKey | None) -> bool:
    """An unknown key may be a secret of a plug-in, so its value is hidden too."""
    return key is None or key.type is ConfigType.PASSWORD


def _layer_synonyms(layers: ConfigLayers, name: str) -> tuple[ConfigSynonym, ...]:
    names = broker_synonyms(name)
    hidden = _is_sensitive(broker_key(name))
    found: list[ConfigSynonym] = []
    for texts, source in (
        (layers.broker, ConfigSource.DYNAMIC_BROKER_CONFIG),
        (layers.cluster, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        (layers.static.originals, ConfigSource.STATIC_BROKER_CONFIG),
    ):
        for synonym in names:
            text = texts.get(synonym)
            if text is not None:
                found.append(ConfigSynonym(synonym, None if hidden else text, source))
    for synonym in names:
        default = _default_text(synonym)
        if default is not None:
            shown = None if hidden else default
            found.append(ConfigSynonym(synonym, shown, ConfigSource.DEFAULT_CONFIG))
    # Kafka drops what stands before the described name itself, e.g. a static hours value when
    # only the milliseconds key is asked for and unset.
    start = next((i for i, synonym in enumerate(found) if synonym.name == name), len(found))
    return tuple(found[start:])


def _default_text(name: str) -> str | None:
    key: ConfigKey | None = BROKER_KEYS.get(name)
    if key is None or key.required:
        return None
    default: Any = key.default
    return key.render(default)
