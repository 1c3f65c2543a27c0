"""Finds plug-ins: those in the box, those of installed packages, and any class by its path.

A name in a configuration is looked for in this order: Java class names and short names of the box
(`org.apache.kafka.connect.file.FileStreamSourceConnector`, `FileStreamSource`,
`FileStreamSourceConnector`), entry points of the group `moldau.connect`, and a Python path
(`my_package.connectors.MySource` or `my_package.connectors:MySource`). Nothing is imported before
it is used, except by `list`, which must look at classes of entry points to know their kind.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from moldau import __version__
from moldau.config import closest_name
from moldau.connect.api import (
    ConfigError,
    ConnectError,
    Converter,
    HeaderConverter,
    Predicate,
    SinkConnector,
    SourceConnector,
    Transformation,
)
from moldau.connect.built_in import ALL, BuiltIn, PluginKind

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["ENTRY_POINT_GROUP", "PluginInfo", "Plugins"]

ENTRY_POINT_GROUP = "moldau.connect"

_BASES: dict[PluginKind, type[Any]] = {
    PluginKind.SOURCE: SourceConnector,
    PluginKind.SINK: SinkConnector,
    PluginKind.CONVERTER: Converter,
    PluginKind.HEADER_CONVERTER: HeaderConverter,
    PluginKind.TRANSFORMATION: Transformation,
    PluginKind.PREDICATE: Predicate,
}
CONNECTOR_KINDS = (PluginKind.SOURCE, PluginKind.SINK)


@dataclass(frozen=True, slots=True)
class PluginInfo:
    """A row of GET /connector-plugins."""

    class_name: str
    kind: PluginKind
    version: str
    name: str


class Plugins:
    """All plug-ins of this process."""

    def __init__(
        self,
        built_in: Iterable[BuiltIn] = ALL,
        installed: Iterable[EntryPoint] | None = None,
    ) -> None:
        self._built_in = tuple(built_in)
        self._installed = _installed() if installed is None else tuple(installed)
        self._by_name: dict[str, BuiltIn] = {}
        for row in self._built_in:
            suffix = "Connector" if row.kind in CONNECTOR_KINDS else ""
            for name in (row.name, row.name + suffix, row.target, row.target.replace(":", ".")):
                self._by_name.setdefault(name, row)
            for name in row.java_names:
                self._by_name.setdefault(name, row)
                self._by_name.setdefault(name.rpartition(".")[2], row)

    def connector(self, class_name: str) -> type[Any]:
        """The connector that `connector.class` names; ConnectError if there is none."""
        return self.find(class_name, CONNECTOR_KINDS)

    def find(self, class_name: str, kinds: Iterable[PluginKind]) -> type[Any]:
        """The class of one of these kinds that a configuration names."""
        kinds = tuple(kinds)
        found = self._load(class_name.strip(), kinds)
        if not any(issubclass(found, _BASES[kind]) for kind in kinds):
            wanted = " or ".join(_BASES[kind].__name__ for kind in kinds)
            raise ConnectError(f"{class_name} is no {wanted}, so it cannot be used as one")
        return found

    def _load(self, name: str, kinds: tuple[PluginKind, ...]) -> type[Any]:
        row = self._by_name.get(name)
        if row is not None:
            return _load_row(row)
        for point in self._installed:
            if name in (point.name, point.value, point.value.replace(":", ".")):
                return _load_entry_point(point)
        if "." in name or ":" in name:
            loaded = _load_path(name)
            if loaded is not None:
                return loaded
        raise ConnectError(self._not_found(name, kinds))

    def _not_found(self, name: str, kinds: tuple[PluginKind, ...]) -> str:
        what = "connector" if kinds == CONNECTOR_KINDS else kinds[0].value.replace("_", " ")
        known = [key for key, row in self._by_name.items() if row.kind in kinds]
        known += [point.name for point in self._installed]
        guess = closest_name(name, known)
        hint = f" Did you mean {guess}?" if guess else ""
        available = ", ".join(sorted({row.name for row in self._built_in if row.kind in kinds}))
        return (
            f"Failed to find any class that implements {what.capitalize()} and which name matches "
            f"{name}, available {what}s are: {available or 'none'}.{hint}"
        )

    def kind_of(self, class_name: str) -> PluginKind | None:
        """The kind of a plug-in; None if it cannot be loaded."""
        row = self._by_name.get(class_name)
        if row is not None:
            return row.kind
        try:
            return _kind(self._load(class_name, tuple(PluginKind)))
        except ConnectError:
            return None

    def version_of(self, class_name: str) -> str | None:
        """The version of a plug-in; None if it cannot be loaded."""
        if class_name in self._by_name:
            return __version__
        try:
            loaded = self._load(class_name, tuple(PluginKind))
        except ConnectError:
            return None
        return str(getattr(loaded, "VERSION", "undefined"))

    def list(self) -> list[PluginInfo]:
        """All of the box and of installed packages, by class name."""
        found = {
            (row.class_name, row.kind): PluginInfo(row.class_name, row.kind, __version__, row.name)
            for row in self._built_in
        }
        for point in self._installed:
            try:
                loaded = _load_entry_point(point)
            except ConnectError:
                continue
            kind = _kind(loaded)
            if kind is not None:
                name = point.value.replace(":", ".")
                shown = str(getattr(loaded, "VERSION", "undefined"))
                found.setdefault((name, kind), PluginInfo(name, kind, shown, point.name))
        return sorted(found.values(), key=lambda each: (each.kind.value, each.class_name))


def _installed() -> tuple[EntryPoint, ...]:
    # Imported here: it takes 30 ms, and tools that only talk to a worker need no plug-ins.
    from importlib.metadata import entry_points

    return tuple(entry_points(group=ENTRY_POINT_GROUP))


def _kind(loaded: type[Any]) -> PluginKind | None:
    return next((kind for kind, base in _BASES.items() if issubclass(loaded, base)), None)


@cache
def _load_row(row: BuiltIn) -> type[Any]:
    module, _, name = row.target.partition(":")
    try:
        found: type[Any] = getattr(import_module(module), name)
    except ImportError as error:
        extra = f"pip install 'moldau[{row.extra}]'" if row.extra else "check the installation"
        raise ConnectError(
            f"{row.name} needs a package that is not installed ({error}): {extra}"
        ) from error
    return found


def _load_entry_point(point: EntryPoint) -> type[Any]:
    try:
        loaded = point.load()
    except (ImportError, AttributeError) as error:
        raise ConnectError(
            f"The plug-in {point.name} ({point.value}) cannot be loaded: {error}"
        ) from error
    if not isinstance(loaded, type):
        raise ConnectError(f"The plug-in {point.name} ({point.value}) is no class")
    return loaded


def _load_path(path: str) -> type[Any] | None:
    module, colon, name = path.partition(":")
    if not colon:
        module, _, name = path.rpartition(".")
    try:
        loaded = getattr(import_module(module), name, None)
    except ModuleNotFoundError as error:
        if error.name is not None and module.startswith(error.name):
            return None
        raise ConnectError(f"{path} cannot be loaded: {error}") from error
    except (ImportError, ValueError) as error:
        raise ConnectError(f"{path} cannot be loaded: {error}") from error
    return loaded if isinstance(loaded, type) else None


def checked_class(plugins: Plugins, key: str, name: str, *kinds: PluginKind) -> type[Any]:
    """As `find`, with the setting named if the class is not there."""
    try:
        return plugins.find(name, kinds)
    except ConnectError as error:
        raise ConfigError.invalid(key, name, str(error)) from None
