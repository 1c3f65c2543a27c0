"""Topics as DataFrames, and the Spark that hosts pipelines.

Nothing here is imported by the broker or the client: the extra `spark` installs what it
needs. Importing this costs nothing until one of its names is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moldau.spark.runtime.errors import SparkRuntimeError
    from moldau.spark.runtime.server import ConnectServer
    from moldau.spark.sessions import session, topic_format
    from moldau.spark.source.machine.lag import lag

__all__ = ["ConnectServer", "SparkRuntimeError", "lag", "session", "topic_format"]

_MODULES = {
    "ConnectServer": "runtime.server",
    "SparkRuntimeError": "runtime.errors",
    "lag": "source.machine.lag",
    "session": "sessions",
    "topic_format": "sessions",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
