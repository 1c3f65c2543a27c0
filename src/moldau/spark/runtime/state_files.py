"""The files that name a deployment folder's server and keep its settings."""

from __future__ import annotations

import os
from pathlib import Path

from moldau.spark.runtime.errors import SparkRuntimeError
from moldau.spark.runtime.machine.settings import ServerSettings, ServerState
from moldau.spark.runtime.places import Places

__all__ = ["read_settings", "read_state", "write"]


def read_settings(places: Places) -> ServerSettings:
    try:
        return ServerSettings.from_json(places.settings.read_text())
    except FileNotFoundError:
        return ServerSettings()
    except ValueError as error:
        raise SparkRuntimeError(
            f"{places.settings} is damaged: {error}. Delete it to start with the defaults"
        ) from None


def read_state(places: Places) -> ServerState | None:
    """The state in the file; None if there is no file or it cannot be read."""
    try:
        return ServerState.from_json(places.state.read_text())
    except (FileNotFoundError, ValueError):
        return None


def write(path: Path, text: str) -> None:
    """As a whole or not at all. Only the owner may read it: Spark's settings may hold passwords."""
    partial = path.with_name(f"{path.name}.tmp")
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    partial.replace(path)
