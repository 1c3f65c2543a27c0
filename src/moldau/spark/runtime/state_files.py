"""The files that name a deployment folder's server and keep its settings."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from moldau.spark.runtime.errors import SparkRuntimeError
from moldau.spark.runtime.machine.command import TOKEN_KEY
from moldau.spark.runtime.machine.settings import ServerSettings, ServerState
from moldau.spark.runtime.places import Places

__all__ = [
    "TOKEN_VARIABLE",
    "read_settings",
    "read_state",
    "read_token",
    "token_for_start",
    "write",
]

#: Where Spark's server, its Python workers and PySpark's client look for the token.
TOKEN_VARIABLE: Final = "SPARK_CONNECT_AUTHENTICATE_TOKEN"


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


def read_token(places: Places) -> str | None:
    """What sessions of this folder's server prove themselves with; None before its first start."""
    try:
        return places.token.read_text().strip() or None
    except FileNotFoundError:
        return None
    except PermissionError:
        raise SparkRuntimeError(
            f"{places.token} cannot be read: only the user that runs this Spark server may use it"
        ) from None


def token_for_start(
    places: Places, settings: ServerSettings, environ: Mapping[str, str]
) -> tuple[str, ServerSettings]:
    """The token of a server that is about to start: one that the user gave, else that of the last
    start, else a new one. It is in its own file only, not among the settings."""
    conf = dict(settings.conf)
    given = conf.pop(TOKEN_KEY, None) or environ.get(TOKEN_VARIABLE)
    known = read_token(places)
    token = given or known or secrets.token_urlsafe(32)
    if token != known:
        write(places.token, token + "\n")
    return token, replace(settings, conf=conf)


def write(path: Path, text: str) -> None:
    """As a whole or not at all. Only the owner may read it: Spark's settings may hold passwords."""
    partial = path.with_name(f"{path.name}.tmp")
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    partial.replace(path)
