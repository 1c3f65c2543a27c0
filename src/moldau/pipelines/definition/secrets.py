"""Which settings of a definition are secret, and how a definition refers to what it does not hold.

Pure. `${env:NAME}`, `${file:PATH:KEY}` and `${dir:PATH:FILE}` are replaced when the pipeline
starts; so are the variables of the providers that `config.providers` names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from moldau.client.config import CONSUMER_KEYS, PRODUCER_KEYS
from moldau.config.values import ConfigType
from moldau.config.variables import PROVIDERS_KEY, variables_in

__all__ = [
    "BUILT_IN",
    "HIDDEN",
    "is_put_in_later",
    "is_secret",
    "kafka_settings",
    "stored_secrets",
    "without_secrets",
]

#: What Kafka shows in place of a password.
HIDDEN: Final = "[hidden]"
#: The providers that a definition need not name.
BUILT_IN: Final = ("env", "file", "dir")
_KAFKA: Final = "kafka"
_PREFIX: Final = "kafka."
_SECRET: Final = frozenset(
    name
    for keys in (CONSUMER_KEYS, PRODUCER_KEYS)
    for name, key in keys.items()
    if key.type is ConfigType.PASSWORD
)
_PASSWORD: Final = "password"


def is_put_in_later(value: object) -> bool:
    """Whether a value, or a part of it, is known only when the pipeline starts."""
    text = str(value)
    return PROVIDERS_KEY in text or any(each.provider in BUILT_IN for each in variables_in(text))


def is_secret(name: str) -> bool:
    """A client's setting, with or without the prefix that it has as an option."""
    return name.lower().removeprefix(_PREFIX) in _SECRET or name.lower() == _PASSWORD


def kafka_settings(fields: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The client's settings in a definition's JSON form: for each part that may have some its name,
    and the part itself."""
    if _KAFKA in fields:
        yield _KAFKA, fields[_KAFKA]
    for name in ("source", "sink"):
        if name in fields:
            yield name, fields[name]
    for several in ("sources", "sinks"):
        for name, part in fields.get(several, {}).items():
            yield f"{several}.{name}", part


def stored_secrets(fields: Mapping[str, Any]) -> list[str]:
    """The secrets that a definition holds itself, so that the registry would hold them too."""
    return [
        f"{part}.{name}".replace("kafka.kafka.", "kafka.")
        for part, settings in kafka_settings(fields)
        for name, value in settings.items()
        if is_secret(name) and not variables_in(str(value))
    ]


def without_secrets(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A definition's JSON form as it may be shown."""
    return {
        name: (
            without_secrets(value)
            if isinstance(value, Mapping)
            else HIDDEN
            if is_secret(name) and not variables_in(str(value))
            else value
        )
        for name, value in fields.items()
    }
