"""Classes of users, named in the configuration as package.module.Class."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from moldau.config.errors import ConfigError


def load_class(key: str, name: str, *, methods: Sequence[str]) -> Any:
    """The class with this dotted name; ConfigError if there is none with these methods."""
    module_name, _, class_name = name.rpartition(".")
    try:
        found = getattr(import_module(module_name), class_name) if module_name else None
    except (ImportError, AttributeError) as error:
        raise _unusable(key, name, f"it cannot be imported: {error}") from error
    if found is None:
        raise _unusable(key, name, "write it as package.module.Class")
    if missing := [each for each in methods if not callable(getattr(found, each, None))]:
        raise _unusable(key, name, f"it has no method {' and no method '.join(missing)}")
    return found


def _unusable(key: str, name: str, problem: str) -> ConfigError:
    return ConfigError(
        f"Invalid value {name} for configuration {key}: {problem}. Java plug-ins cannot be loaded: "
        "name a Python class that is on the node's PYTHONPATH",
        key=key,
        value=name,
    )
