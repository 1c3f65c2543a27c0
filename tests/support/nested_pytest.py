"""pytest inside of a test: the environment of a run that has nothing to do with the outer one."""

from __future__ import annotations

import os


def plain_environment() -> dict[str, str]:
    """Outside of CI, without the outer run's options, and quick: with no plugin but xdist."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    kept.pop("CI", None)
    return kept | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "-p xdist"}
