"""The settings of one listener: `listener.name.<name>.<key>` over `<key>`, as Kafka merges them.

Names that no table defines are kept without their prefix: those of a SASL mechanism
(`scram-sha-256.sasl.jaas.config`), parsed as the key behind them, and those of plug-ins, as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from moldau.broker.config.broker_keys import BROKER_KEYS
from moldau.broker.config.no_effect import LISTENER_KEYS, REASONS
from moldau.config.definition import ConfigKey
from moldau.config.errors import ConfigError
from moldau.config.no_effect import reason_for

__all__ = [
    "ListenerConfigSource",
    "listener_keys_without_effect",
    "listener_prefix",
    "listener_settings",
]

_ANY_LISTENER = "listener.name."


class ListenerConfigSource(Protocol):
    """What is read of a broker's configuration."""

    originals: dict[str, str]

    @property
    def values(self) -> Mapping[str, Any]: ...


def listener_prefix(listener_name: str) -> str:
    """What the keys of a listener begin with; Kafka accepts the name in lower case only."""
    return f"{_ANY_LISTENER}{listener_name.lower()}."


def listener_settings(config: ListenerConfigSource, listener_name: str) -> Mapping[str, Any]:
    """The parsed values that hold for a listener, by the keys without the prefix.

    Raises ConfigError, which names the key with its prefix.
    """
    prefix = listener_prefix(listener_name)
    settings = dict(config.values)
    for name, text in config.originals.items():
        if name.startswith(prefix):
            stripped = name.removeprefix(prefix)
            key = _key_behind(stripped)
            settings[stripped] = text if key is None else _parse(key, name, text)
    return settings


def listener_keys_without_effect(names: Iterable[str]) -> list[str]:
    """Those of the names that are a listener's, and that nothing reads for a single listener."""
    return [
        name
        for name in names
        if name.startswith(_ANY_LISTENER)
        and (key := _key_behind(name.removeprefix(_ANY_LISTENER).partition(".")[2])) is not None
        and (not _is_for_listeners(key.name) or reason_for(key.name, REASONS) is not None)
    ]


def _is_for_listeners(name: str) -> bool:
    return any(
        name.startswith(each) if each.endswith(".") else name == each for each in LISTENER_KEYS
    )


def _key_behind(stripped: str) -> ConfigKey | None:
    """The definition of `<key>` or `<mechanism>.<key>`."""
    return BROKER_KEYS.get(stripped) or BROKER_KEYS.get(stripped.partition(".")[2])


def _parse(key: ConfigKey, name: str, text: str) -> Any:
    try:
        return key.parse(text)
    except ConfigError as error:
        raise ConfigError(str(error).replace(key.name, name, 1), key=name) from None
