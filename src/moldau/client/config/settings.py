"""What a user gave, as a mapping or as keyword arguments, as checked values by Kafka's names.

Texts are parsed as in a properties file. Numbers, booleans and lists are taken as they are. Keys of
type class, and lists of classes, also take Python objects, which are passed on unchecked. A key
that nobody knows is warned about, as in Kafka, unless it was a keyword argument: that is a
misspelling, and refused.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from moldau.client.errors import ConfigError
from moldau.config.addresses import HostPort, parse_host_port
from moldau.config.definition import ConfigDef, ConfigKey
from moldau.config.errors import ConfigError as AnyConfigError
from moldau.config.no_effect import Reasons, keys_without_effect
from moldau.config.suggestions import did_you_mean
from moldau.config.values import ConfigType

__all__ = ["gather", "parse_addresses", "parse_settings"]

_log = logging.getLogger(__name__)


def gather(
    definition: ConfigDef, config: Mapping[str, Any] | None, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Mapping and keyword arguments in one, by Kafka's names; keyword arguments win."""
    given = dict(config or {})
    by_field = {key.field: name for name, key in definition.items()}
    for field, value in arguments.items():
        name = by_field.get(field)
        if name is None:
            guess = did_you_mean(field, by_field)
            raise ConfigError(f"Unknown configuration {field}.{guess}", key=field)
        given[name] = value
    return given


def parse_settings(
    definition: ConfigDef, given: Mapping[str, Any], *, no_effect: Reasons | None = None
) -> dict[str, Any]:
    """A value for every defined key; raises ConfigError naming the key and what is allowed.

    What of `no_effect` is set is named in one warning.
    """
    texts: dict[str, str] = {}
    objects: dict[str, Any] = {}
    for name, value in given.items():
        key = definition.get(name)
        if key is None:
            _log.warning(
                "The configuration '%s' is not known.%s", name, did_you_mean(name, definition)
            )
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
    try:
        values = {**definition.parse(texts), **objects}
    except AnyConfigError as error:
        raise ConfigError.of(error) from None
    if values.get("config.providers"):
        raise ConfigError.invalid(
            "config.providers",
            ",".join(values["config.providers"]),
            "values cannot be read from elsewhere: pass them as they are, remove the key",
        )
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
        raise ConfigError(f"No resolvable bootstrap urls given in {key}", key=key)
    return tuple(addresses)
