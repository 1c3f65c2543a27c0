"""The plain form of modules that are compiled where a C compiler was found."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


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
