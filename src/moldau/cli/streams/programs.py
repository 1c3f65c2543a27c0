"""Finds the topology in a program's file."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moldau.cli.support.failures import ToolError

if TYPE_CHECKING:
    from moldau.streams import Topology

__all__ = ["load_topology"]


def load_topology(file: str) -> Topology:
    """The topology of a program; raises ToolError that says what is missing."""
    from moldau.streams import StreamsBuilder, StreamsError, Topology

    path = Path(file)
    if not path.is_file():
        raise ToolError(f"there is no file {file}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ToolError(f"{file} is not a Python file: its name must end with .py")
    module = importlib.util.module_from_spec(spec)
    # Programs import what is beside them.
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        spec.loader.exec_module(module)
        found: Any = getattr(module, "topology", None) or getattr(module, "builder", None)
        if found is None and callable(getattr(module, "build", None)):
            found = module.build()
        if isinstance(found, StreamsBuilder):
            found = found.build()
    except (StreamsError, SyntaxError, ImportError) as error:
        raise ToolError(f"{file} cannot be loaded: {error}") from error
    if not isinstance(found, Topology):
        raise ToolError(
            f"{file} has no topology: give it the name `topology`, or write a function `build` "
            f"that returns it"
        )
    return found
