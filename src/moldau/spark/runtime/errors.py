"""What can go wrong between this machine and a running Spark: one line each, with what to do."""

from __future__ import annotations

import importlib
from types import ModuleType

from moldau.installation import pip_install

__all__ = [
    "ConnectorUnavailable",
    "JavaNotFound",
    "MissingPackage",
    "ServerNotRunning",
    "ServerStartError",
    "SparkRuntimeError",
    "require",
]


class SparkRuntimeError(Exception):
    """Spark cannot be had or does not run; the message is complete for a user."""


class MissingPackage(SparkRuntimeError):
    """A Python package of the extra `spark` is not installed."""


class JavaNotFound(SparkRuntimeError):
    """There is no Java that Spark runs on."""


class ServerStartError(SparkRuntimeError):
    """The Connect server ended at its start, or did not answer in time."""


class ServerNotRunning(SparkRuntimeError):
    """Nobody runs a Connect server from this folder."""


class ConnectorUnavailable(SparkRuntimeError):
    """Spark's own connector for topics cannot be had here."""


def require(name: str) -> ModuleType:
    """Import a package that only `moldau[spark]` brings."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingPackage(
            f"{name.partition('.')[0]} cannot be imported ({error}). "
            f"Run: {pip_install('spark')}"
        ) from None
