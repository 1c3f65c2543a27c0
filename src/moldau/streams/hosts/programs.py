"""Finds the topology in a program's file."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from moldau.streams.errors import StreamsError
from moldau.streams.topology.streams_builder import StreamsBuilder
from moldau.streams.topology.topology import Topology

__all__ = ["load_topology", "without_traces"]


def load_topology(file: str) -> Topology:
    """The topology of a program; raises StreamsError that says what is missing."""
    path = Path(file)
    if not path.is_file():
        raise StreamsError(f"there is no file {file}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise StreamsError(f"{file} is not a Python file: its name must end with .py")
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
        raise StreamsError(f"{file} cannot be loaded: {error}") from error
    if not isinstance(found, Topology):
        raise StreamsError(
            f"{file} has no topology: give it the name `topology`, or write a function `build` "
            f"that returns it"
        )
    return found


@contextmanager
def without_traces(file: str) -> Iterator[None]:
    """Forget the modules beside a program that were imported for it.

    In a process that is used again a changed module would not be read again, and one of another
    program might have the same name.
    """
    folder = Path(file).parent.resolve()
    before, path = set(sys.modules), list(sys.path)
    try:
        yield
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - before:
            origin = getattr(sys.modules[name], "__file__", None)
            if origin is not None and Path(origin).resolve().is_relative_to(folder):
                del sys.modules[name]
