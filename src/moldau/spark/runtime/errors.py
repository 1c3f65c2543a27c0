"""What can go wrong between this machine and a running Spark: one line each, with what to do."""

from __future__ import annotations

import importlib
from types import ModuleType

from moldau.installation import pip_install
from moldau.spark.runtime.machine.errors import (
    ConnectorUnavailable,
    JavaNotFound,
    MissingPackage,
    ServerNotRunning,
    ServerStartError,
    SparkRuntimeError,
)

__all__ = [
    "ConnectorUnavailable",
    "JavaNotFound",
    "MissingPackage",
    "ServerNotRunning",
    "ServerStartError",
    "SparkRuntimeError",
    "require",
]


def require(name: str) -> ModuleType:
    """Import a package that only `moldau[spark]` brings."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingPackage(
            f"{name.partition('.')[0]} cannot be imported ({error}). Run: {pip_install('spark')}"
        ) from None
