"""The assignors that `partition.assignment.strategy` names.

An entry is a short name, the name of one of Kafka's Java classes, the dotted path of a Python
class, a class or an object. Whatever it is, the rest of the consumer sees an `Assignor`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any

from moldau.client.consumer.assignors.assignor import BUILT_IN, KEY, Assignor
from moldau.client.errors import ConfigError
from moldau.config.suggestions import did_you_mean

__all__ = ["resolve_assignors"]

_JAVA_PACKAGE = "org.apache.kafka.clients.consumer."


def resolve_assignors(entries: Iterable[Any], config: Mapping[str, Any]) -> list[Assignor]:
    """In the order of preference; raises ConfigError for what is no assignor."""
    found: list[Assignor] = []
    for entry in [entries] if isinstance(entries, str) else entries:
        given = _instance(entry)
        configure = getattr(given, "configure", None)
        if configure is not None:
            configure(config)
        assignor = Assignor(given)
        if any(each.name == assignor.name for each in found):
            raise ConfigError.invalid(KEY, assignor.name, "two assignors have this name")
        found.append(assignor)
    return found


def _instance(entry: Any) -> Any:
    if isinstance(entry, str):
        entry = _named(entry.strip())
    return entry() if isinstance(entry, type) else entry


def _named(name: str) -> Any:
    short = name.removeprefix(_JAVA_PACKAGE)
    for key, built_in in BUILT_IN.items():
        if name == key or (short == built_in.__name__ and "." not in short):
            return built_in
    module_name, dot, attribute = name.rpartition(".")
    if not dot or name.startswith(_JAVA_PACKAGE):
        guess = did_you_mean(short, [*BUILT_IN, *(each.__name__ for each in BUILT_IN.values())])
        raise ConfigError.invalid(KEY, name, f"no such assignor.{guess}")
    try:
        return getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError.invalid(KEY, name, f"cannot be imported: {error}") from error
