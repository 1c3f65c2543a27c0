"""Classes of the user's own, by their dotted Python names."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Final

from moldau.config.errors import ConfigError

__all__ = ["KAFKAS_OWN", "make_handler"]

#: Names of Kafka's own classes, which have their counterparts built in.
KAFKAS_OWN: Final = "org.apache.kafka."


def make_handler(key: str, name: Any, settings: Mapping[str, Any], needed: str) -> Any:
    """An object of the class, configured; raises ConfigError.

    `needed` is the method that is called later. A class with `configure(settings)` gets the
    settings.
    """
    found = name
    if isinstance(name, str):
        module, _, attribute = name.rpartition(".")
        try:
            found = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError, ValueError) as error:
            raise ConfigError.invalid(
                key, name, f"Class {name} could not be found: {error}. Give the dotted name of a "
                "Python class that can be imported",
            ) from None  # fmt: skip
    made = found() if isinstance(found, type) else found
    if not callable(getattr(made, needed, None)):
        raise ConfigError.invalid(key, name, f"the class must have a method {needed}")
    configure = getattr(made, "configure", None)
    if callable(configure):
        configure(settings)
    return made
