"""The plain form of modules that are compiled where a C compiler was found."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType
from typing import Any


def load_plain(package: ModuleType, name: str) -> ModuleType:
    """The module `name` of a package from its Python file, beside the one that is installed."""
    assert package.__file__ is not None
    alias = f"plain_{name.strip('_')}"
    path = Path(package.__file__).parent / f"{name}.py"
    spec = importlib.util.spec_from_file_location(alias, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[alias] = module
    spec.loader.exec_module(module)
    return module


class PlainForms(MetaPathFinder):
    """Finds the Python files of all modules below a prefix that are also there compiled.

    sys.meta_path.insert(0, PlainForms("moldau.streams.")) comes before their first import.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> Any:
        last = name.rpartition(".")[2]
        if path is None or not name.startswith(self._prefix) or not last.startswith("_"):
            return None
        file = Path(next(iter(path))) / f"{last}.py"
        return importlib.util.spec_from_file_location(name, file)
