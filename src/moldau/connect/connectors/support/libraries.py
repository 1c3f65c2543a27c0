"""Packages that only a connector needs: imported when it starts, with a hint if one is missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from moldau.connect.api import ConnectError
from moldau.installation import pip_install

__all__ = ["library"]


def library(module: str, package: str = "", *, extra: str = "connect") -> Any:
    """The module; `package` is what brings it if its name is another one."""
    try:
        return import_module(module)
    except ImportError:
        package = package or module.partition(".")[0]
        hint = f"{pip_install(extra)} adds it"
        raise ConnectError(f"{package} is not installed: {hint}") from None
