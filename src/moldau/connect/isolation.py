"""Import roots of `plugin.path`: each has its own copies of the modules in it.

A root's modules are in `sys.modules` under a prefix of the root, so two versions of a module can be
there at once. Their absolute imports go through an `__import__` of the root: a name that the root
has is taken from the root, any other from the worker. `moldau` itself is always the worker's. What
asks for a module by a computed absolute name (`importlib.import_module("x")`) gets the worker's.
"""

from __future__ import annotations

import builtins
import sys
import threading
import zipfile
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["PREFIX", "PluginRoot", "plain_name", "roots_of"]

PREFIX = "moldau_plugins"
_NEVER = frozenset({"moldau", "bin", "__pycache__"})
_NO_MODULES = (".dist-info", ".egg-info", ".data", ".libs")
_roots: dict[str, PluginRoot] = {}
_by_path: dict[Path, PluginRoot] = {}
_lock = threading.Lock()


class PluginRoot:
    """One directory or wheel, found by `roots_of`."""

    def __init__(self, path: Path, id: str) -> None:
        self.path = path
        self.prefix = f"{PREFIX}.{id}"
        self.names = frozenset(_top_level_names(path))
        self.builtins: dict[str, Any] = {**vars(builtins), "__import__": self._import}

    def load(self, module: str) -> ModuleType:
        """A module of the root by its own name; raises ImportError."""
        if module.partition(".")[0] not in self.names:
            raise ModuleNotFoundError(f"No module named {module!r} in {self.path}", name=module)
        return import_module(f"{self.prefix}.{module}")

    def entry_points(self, group: str) -> list[tuple[EntryPoint, str]]:
        """Those of the distributions in the root, with their versions."""
        from importlib.metadata import distributions

        return [
            (point, found.version)
            for found in distributions(path=[str(self.path)])
            for point in found.entry_points
            if point.group == group
        ]

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        top = name.partition(".")[0]
        if level or top not in self.names:
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        full = f"{self.prefix}.{name}"
        if fromlist:
            return builtins.__import__(full, globals, locals, fromlist, 0)
        import_module(full)
        return sys.modules[f"{self.prefix}.{top}"]


class _RootLoader(Loader):
    """Loads a module as its own loader does, with the root's `__import__`."""

    def __init__(self, inner: Any, root: PluginRoot) -> None:
        self._inner = inner
        self._root = root

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        created: ModuleType | None = self._inner.create_module(spec)
        return created

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__builtins__"] = self._root.builtins
        self._inner.exec_module(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _RootFinder(MetaPathFinder):
    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if not fullname.startswith(PREFIX):
            return None
        parts = fullname.split(".")
        if len(parts) <= 2:
            return self._package(fullname, _roots.get(fullname))
        root = _roots.get(".".join(parts[:2]))
        if root is None:
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and spec.loader is not None:
            spec.loader = _RootLoader(spec.loader, root)
        return spec

    @staticmethod
    def _package(fullname: str, root: PluginRoot | None) -> ModuleSpec | None:
        if fullname != PREFIX and root is None:
            return None
        spec = ModuleSpec(fullname, None, is_package=True)
        spec.submodule_search_locations = [] if root is None else [str(root.path)]
        return spec


_FINDER = _RootFinder()


def roots_of(paths: Sequence[str]) -> list[PluginRoot]:
    """The roots in the directories of `plugin.path`: every directory and wheel in them, and a
    directory itself if it has modules. One path is one root, however often it is asked for."""
    found: list[PluginRoot] = []
    for each in paths:
        folder = Path(each).expanduser().resolve()
        if folder.suffix == ".whl" and folder.is_file():
            found.append(_root(folder))
            continue
        if not folder.is_dir():
            raise FileNotFoundError(f"plugin.path: {each} is no directory")
        children = sorted(folder.iterdir())
        if any(_is_module(child) or child.name.endswith(".dist-info") for child in children):
            found.append(_root(folder))
            continue
        found += [
            _root(child)
            for child in children
            if child.suffix == ".whl" or (child.is_dir() and not child.name.startswith("."))
        ]
    return found


def plain_name(module: str) -> str:
    """A module's name without the prefix of its root."""
    if not module.startswith(f"{PREFIX}."):
        return module
    return module.split(".", 2)[2]


def _root(path: Path) -> PluginRoot:
    with _lock:
        if _FINDER not in sys.meta_path:
            sys.meta_path.insert(0, _FINDER)
        root = _by_path.get(path)
        if root is None:
            root = _by_path[path] = PluginRoot(path, f"root{len(_by_path)}")
            _roots[root.prefix] = root
        return root


def _is_module(path: Path) -> bool:
    return path.suffix in (".py", ".so") or (path / "__init__.py").is_file()


def _top_level_names(path: Path) -> set[str]:
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            names = {each.partition("/")[0] for each in archive.namelist()}
    else:
        names = {each.name for each in path.iterdir()}
    stems = {
        each.partition(".")[0] if each.endswith((".py", ".so")) else each
        for each in names
        if not each.endswith(_NO_MODULES) and not each.startswith(".")
    }
    return {each for each in stems if each.isidentifier()} - _NEVER
