"""How this Moldau was installed: hints that work when they are copied, from where the user is.

Whoever ran `make run` has neither `moldau` nor the environment's `pip` in the path, and no index
has a package of that name to install by.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

__all__ = ["command", "pip_install", "python", "reinstall"]

_ROOT = Path(__file__).resolve().parents[2]


def command() -> str:
    """What runs this Moldau in the user's shell: `moldau`, or the wrapper of a checkout."""
    if shutil.which("moldau") is not None:
        return "moldau"
    wrapper = _ROOT / "moldau"
    if (_ROOT / "pyproject.toml").exists() and os.access(wrapper, os.X_OK) and wrapper.is_file():
        return _shortest(wrapper)
    return f"{python()} -m moldau.cli"


def python() -> str:
    """The Python that has this Moldau."""
    return "python" if _is_ours("python") else _shortest(Path(sys.executable))


def pip_install(extra: str) -> str:
    """The line that adds an extra to this environment.

    By name where Moldau is installed: pip then only adds what the extra needs. The name alone would
    be looked for in an index where it is not, so code that runs from a checkout names its folder.
    """
    # Imported here: it takes 30 ms, and starts of brokers import this module.
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        distribution("moldau")
    except PackageNotFoundError:
        return f"{_pip()} install -e '{_shortest(_ROOT)}[{extra}]'"
    return f"{_pip()} install 'moldau[{extra}]'"


def reinstall() -> str:
    """The line that compiles Moldau again."""
    what = f"-e {_shortest(_ROOT)}" if (_ROOT / "pyproject.toml").exists() else "moldau"
    return f"{_pip()} install --force-reinstall --no-deps {what}"


def _pip() -> str:
    return "pip" if _is_ours("pip") else f"{python()} -m pip"


def _is_ours(name: str) -> bool:
    found = shutil.which(name)
    return found is not None and os.path.dirname(found) == os.path.dirname(sys.executable)


def _shortest(path: Path) -> str:
    """The path as one would type it here."""
    here = Path.cwd()
    if path == here:
        return "."
    if not path.is_relative_to(here):
        return shlex.quote(str(path))
    below = str(path.relative_to(here))
    return shlex.quote(below if "/" in below else f"./{below}")
