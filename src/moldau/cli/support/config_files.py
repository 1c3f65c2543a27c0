"""Properties files with settings of clients."""

from __future__ import annotations

from pathlib import Path

from moldau.cli.support.failures import ToolError
from moldau.config.errors import ConfigError
from moldau.config.properties import load_properties

__all__ = ["read_config_file"]


def read_config_file(path: str) -> dict[str, str]:
    """The properties in a file; ToolError if it cannot be read."""
    try:
        return load_properties(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ToolError(f"cannot read {path}: {error.strerror}") from None
    except (ConfigError, UnicodeDecodeError) as error:
        raise ToolError(f"{path} is not a properties file: {error}") from None
