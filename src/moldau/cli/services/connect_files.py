"""Connectors in files: properties, or JSON as the REST interface takes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from moldau.cli.support.config_files import read_config_file
from moldau.cli.support.failures import Failure

__all__ = ["connector_file"]


def connector_file(path: str) -> dict[str, str]:
    """The configuration, with its name."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}") from None
    if not text.lstrip().startswith("{"):
        return read_config_file(path)
    try:
        node = json.loads(text)
    except ValueError as error:
        raise Failure(f"{path} is not JSON: {error}") from None
    return _config(path, node)


def _config(path: str, node: Any) -> dict[str, str]:
    """`{"name": ..., "config": {...}}` or the configuration itself."""
    config = node.get("config", node)
    if not isinstance(config, dict):
        raise Failure(f"{path}: config must be an object of settings")
    found = {
        key: "true" if each is True else "false" if each is False else str(each)
        for key, each in config.items()
    }
    if "config" in node and isinstance(node.get("name"), str):
        found.setdefault("name", node["name"])
    return found
