"""What a user gave, as a mapping or as keyword arguments, as checked values by Kafka's names.

Texts are parsed as in a properties file. Numbers, booleans and lists are taken as they are. Keys of
type class, and lists of classes, also take Python objects, which are passed on unchecked.

Invariant: a key means the same in a mapping and as a keyword argument. One that no client knows is
refused, since it is most likely misspelt, unless a plug-in that reads settings is given: then it is
passed on to the plug-in. One that only another client knows is ignored with a warning, so that
clients can share a file.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from moldau.client.config.serializer_keys import DESERIALIZER_KEYS, SERIALIZER_KEYS
from moldau.client.errors import ConfigError
from moldau.config.addresses import HostPort, parse_host_port
from moldau.config.definition import ConfigDef, ConfigKey
from moldau.config.errors import ConfigError as AnyConfigError
from moldau.config.no_effect import Reasons, keys_without_effect
from moldau.config.suggestions import did_you_mean
from moldau.config.values import ConfigType
from moldau.config.variables import is_provider_key

__all__ = ["gather", "keys_of", "known_keys", "parse_addresses", "parse_settings"]

_log = logging.getLogger(__name__)

_PASSED_ON = frozenset((*SERIALIZER_KEYS, *DESERIALIZER_KEYS))
_LISTS_OF_CLASSES = ("interceptor.classes", "metric.reporters", "partition.assignment.strategy")
_HOW_TO_GIVE = {
    "bootstrap.servers": 'Say where the brokers are: bootstrap_servers="127.0.0.1:9092"',
}
_KAFKAS_OWN = "org.apache.kafka."
_WRITE_JAAS = (
    "User and password are in sasl.jaas.config. Write: org.apache.kafka.common.security.scram."
    'ScramLoginModule required username="alice" password="...";'
)
#: Names of other clients, with what to write instead.
_LIBRDKAFKAS = {
    "sasl.mechanisms": "Write sasl.mechanism",
    "sasl.password": _WRITE_JAAS,
    "sasl.username": _WRITE_JAAS,
}


def gather(
    definition: ConfigDef, config: Mapping[str, Any] | None, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Mapping and keyword arguments in one, by Kafka's names; keyword arguments win."""
    given = _resolved(config or {})
    by_field = {key.field: name for name, key in definition.items()}
    for field, value in arguments.items():
        given[by_field.get(field) or _dotted(field)] = value
    if arguments:
        given = _resolved(given)
    unknown = [name for name in given if name not in definition and name not in _PASSED_ON]
    if unknown and not _has_plugin(definition, given):
        for name in unknown:
            _refuse_unless_shared(name, by_field if name in arguments else definition)
    return given


def _resolved(given: Mapping[str, Any]) -> dict[str, Any]:
    """With the values that `config.providers` has; it is gone then."""
    if not given.get("config.providers"):
        return dict(given)
    from moldau.config.providers import resolve  # Few need it.

    try:
        return resolve(given)
    except AnyConfigError as error:
        raise ConfigError.of(error) from None


def _dotted(field: str) -> str:
    """Kafka's name of a keyword argument; its own where no client has such a key."""
    name = field.replace("_", ".")
    return name if name in _PASSED_ON or name in _all_keys() else field


def _all_keys() -> frozenset[str]:
    # Here, since these modules are only needed for keys that the client at hand does not know.
    from moldau.client.config.admin_keys import ADMIN_KEYS
    from moldau.client.config.consumer_keys import CONSUMER_KEYS
    from moldau.client.config.producer_keys import PRODUCER_KEYS

    return frozenset((*PRODUCER_KEYS, *CONSUMER_KEYS, *ADMIN_KEYS))


def known_keys(config: Mapping[str, Any]) -> dict[str, Any]:
    """Settings without the keys that no client has; each of them is logged, as Kafka's tools do."""
    known: dict[str, Any] = {}
    for name, value in _resolved(config).items():
        if name in _PASSED_ON or name in _all_keys():
            known[name] = value
        else:
            _log.warning("The configuration '%s' is not known.", name)
    return known


def keys_of(definition: Iterable[str], config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that one kind of client has, and the providers of their values."""
    known = frozenset(definition)
    return {name: value for name, value in config.items() if name in known or is_provider_key(name)}


def _refuse_unless_shared(name: str, candidates: Iterable[str]) -> None:
    if name not in _all_keys():
        if advice := _LIBRDKAFKAS.get(name.replace("_", ".")):
            raise ConfigError(f"Unknown configuration {name}. {advice}", key=name)
        guess = did_you_mean(name, candidates)
        raise ConfigError(f"Unknown configuration {name}.{guess}", key=name)


def _has_plugin(definition: ConfigDef, given: Mapping[str, Any]) -> bool:
    """Whether a class of the user's may read settings that no client knows."""
    for name, value in given.items():
        key = definition.get(name)
        if key is None or value is None:
            continue
        if key.type is ConfigType.CLASS and _reads_settings(value):
            return True
        if name in _LISTS_OF_CLASSES:
            values = value.split(",") if isinstance(value, str) else value
            several = values if isinstance(values, Iterable) else [values]
            if any(map(_reads_settings, several)):
                return True
    return False


def _reads_settings(plugin: Any) -> bool:
    if isinstance(plugin, str):
        return "." in plugin and not plugin.strip().startswith(_KAFKAS_OWN)
    return hasattr(plugin, "configure")


def parse_settings(
    definition: ConfigDef, given: Mapping[str, Any], *, no_effect: Reasons | None = None
) -> dict[str, Any]:
    """A value for every defined key; raises ConfigError naming the key and what is allowed.

    What of `no_effect` is set is named in one warning.
    """
    texts: dict[str, str] = {}
    objects: dict[str, Any] = {}
    given = _resolved(given)
    for name, value in given.items():
        key = definition.get(name)
        if key is None:
            if name not in _PASSED_ON:
                _log.warning("The configuration '%s' is not known here.", name)
        elif value is None:
            # As if it was not given, unless null is not its default.
            if key.required:
                raise ConfigError.invalid(name, None, "must be set")
            if key.default is not None:
                objects[name] = None
        elif _is_object(key, value):
            is_single = key.type is ConfigType.LIST and not isinstance(value, Iterable)
            objects[name] = [value] if is_single else value
        else:
            texts[name] = _text(value)
    for name, key in definition.items():
        if key.required and name not in texts and name not in objects:
            raise ConfigError(
                f'Missing required configuration "{name}" which has no default value. '
                f"{_HOW_TO_GIVE.get(name, f'Pass {key.field}=...')}",
                key=name,
            )
    try:
        values = {**definition.parse(texts), **objects}
    except AnyConfigError as error:
        raise ConfigError.of(error) from None
    if names := keys_without_effect(given, values, definition, no_effect or {}):
        _log.warning("These settings have no effect: %s", ", ".join(names))
    return values


def _is_object(key: ConfigKey, value: Any) -> bool:
    if key.type is ConfigType.CLASS:
        return not isinstance(value, str)
    if key.type is ConfigType.LIST:
        if isinstance(value, str | int | float):
            return False
        # One object that is no list stands for a list of it.
        return not isinstance(value, Iterable) or not all(isinstance(each, str) for each in value)
    return False


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple | set | frozenset):
        return ",".join(map(str, value))
    return str(value)


def parse_addresses(key: str, entries: Iterable[str]) -> tuple[HostPort, ...]:
    """The addresses of `bootstrap.servers`; raises ConfigError for what is none."""
    addresses = []
    for entry in entries:
        address = parse_host_port(entry.rpartition("://")[2])
        if address is None:
            raise ConfigError.invalid(key, entry, "each entry has the form host:port")
        addresses.append(address)
    if not addresses:
        how = _HOW_TO_GIVE.get(key)
        raise ConfigError(
            f"No resolvable bootstrap urls given in {key}" + (f". {how}" if how else ""), key=key
        )
    return tuple(addresses)
