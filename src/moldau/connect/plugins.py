"""Finds plug-ins: those in the box, those of installed packages, and any class by its path.

A name in a configuration is looked for in this order: Java class names and short names of the box
(`org.apache.kafka.connect.file.FileStreamSourceConnector`, `FileStreamSource`,
`FileStreamSourceConnector`), entry points of the group `moldau.connect`, and a Python path
(`my_package.connectors.MySource` or `my_package.connectors:MySource`). Directories of `plugin.path`
are import roots with modules of their own (`isolation.py`); where a name is there in several
versions, the latest that `...plugin.version` allows is taken. Nothing is imported before its use,
except by `list`, which must look at classes of entry points to know their kind.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

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
from moldau.connect.machine.versions import Version, VersionError, parse_range
from moldau.installation import pip_install

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from moldau.connect.isolation import PluginRoot

logger = logging.getLogger(__name__)

__all__ = ["ENTRY_POINT_GROUP", "PLUGIN_VERSION", "NoSuchPlugin", "PluginInfo", "Plugins"]

ENTRY_POINT_GROUP = "moldau.connect"
#: After `connector.`, `key.converter.`, `transforms.NAME.` and so on.
PLUGIN_VERSION = "plugin.version"

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


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A plug-in that answers to a name; `load` imports it."""

    class_name: str
    name: str
    load: Callable[[], type[Any]]
    given_version: str | None

    @property
    def version(self) -> str:
        return self.given_version or _version(self.load())


class NoSuchPlugin(ConnectError):
    """No plug-in has the name that a configuration has."""


class Plugins:
    """All plug-ins of this process, and those of the roots in `paths` (`plugin.path`)."""

    def __init__(
        self,
        built_in: Iterable[BuiltIn] = ALL,
        installed: Iterable[EntryPoint] | None = None,
        paths: Sequence[str] = (),
        *,
        scan: bool = True,
    ) -> None:
        self._built_in = tuple(built_in)
        self._installed = _installed() if installed is None else tuple(installed)
        self._roots = _roots(paths)
        self._scan = scan
        self._by_name: dict[str, BuiltIn] = {}
        for row in self._built_in:
            suffix = "Connector" if row.kind in CONNECTOR_KINDS else ""
            for name in (row.name, row.name + suffix, row.target, row.target.replace(":", ".")):
                self._by_name.setdefault(name, row)
            for name in row.java_names:
                self._by_name.setdefault(name, row)
                self._by_name.setdefault(name.rpartition(".")[2], row)

    def connector(self, class_name: str, version: str | None = None) -> type[Any]:
        """The connector that `connector.class` names; ConnectError if there is none."""
        return self.find(class_name, CONNECTOR_KINDS, version)

    def find(
        self, class_name: str, kinds: Iterable[PluginKind], version: str | None = None
    ) -> type[Any]:
        """The class of one of these kinds that a configuration names: of several versions the
        latest that is wanted."""
        kinds = tuple(kinds)
        found = self._chosen(class_name.strip(), kinds, version).load()
        if not any(issubclass(found, _BASES[kind]) for kind in kinds):
            wanted = " or ".join(_BASES[kind].__name__ for kind in kinds)
            raise ConnectError(f"Class {class_name} does not implement the {wanted} interface")
        return found

    def _chosen(self, name: str, kinds: tuple[PluginKind, ...], version: str | None) -> _Candidate:
        found = self._candidates(name)
        if not found:
            raise NoSuchPlugin(self._not_found(name, kinds))
        try:
            wanted = parse_range(version)
        except VersionError as error:
            raise ConnectError(f"The version {version} of {name} is not valid: {error}") from None
        if wanted is None and len(found) == 1:
            # Nothing is loaded to know a version that nobody asks for.
            return found[0]
        versions = [(Version(each.version), each) for each in found]
        fitting = [pair for pair in versions if wanted is None or wanted.holds(pair[0])]
        if not fitting:
            shown = ", ".join(sorted({str(each) for each, _ in versions}))
            raise ConnectError(
                f"Plugin {found[0].class_name} not found that matches the version range {wanted}, "
                f"available versions: [{shown}]"
            )
        best = max(fitting, key=lambda pair: pair[0])[0]
        return next(each for known, each in fitting if known == best)

    def _candidates(self, name: str) -> list[_Candidate]:
        found = [
            _Candidate(row.class_name, row.name, partial(_load_row, row), __version__)
            for row in (self._by_name.get(name),)
            if row is not None
        ]
        found += [each for each in self._others() if name in (each.name, each.class_name)]
        if found or not ("." in name or ":" in name):
            return found or [each for each in self._loaded() if name in _aliases(each)]
        return self._by_path(name) or [each for each in self._loaded() if name in _aliases(each)]

    def _others(self) -> Iterator[_Candidate]:
        """Of installed packages and of the roots, by their entry points."""
        for point in self._installed:
            version = point.dist.version if point.dist is not None else None
            load = partial(_load_entry_point, point)
            yield _Candidate(point.value.replace(":", "."), point.name, load, version)
        for root in self._roots:
            points = root.entry_points(ENTRY_POINT_GROUP)
            for point, version in points:
                load = partial(_load_from, root, point.value)
                yield _Candidate(point.value.replace(":", "."), point.name, load, version)
            if self._scan and not points:
                yield from _scanned(root)

    def _loaded(self) -> Iterator[_Candidate]:
        """Those that can be loaded, for names that only their classes know."""
        for each in self._others():
            with suppress(ConnectError):
                each.load()
                yield each

    def _by_path(self, name: str) -> list[_Candidate]:
        found = []
        for root in self._roots:
            with suppress(ConnectError):
                load = partial(_load_from, root, name)
                load()
                found.append(_Candidate(name.replace(":", "."), name, load, None))
        loaded = _load_path(name)
        if loaded is not None:
            found.append(_Candidate(name.replace(":", "."), name, partial(_same, loaded), None))
        return found

    def _not_found(self, name: str, kinds: tuple[PluginKind, ...]) -> str:
        what = "connector" if kinds == CONNECTOR_KINDS else kinds[0].value.replace("_", " ")
        known = [key for key, row in self._by_name.items() if row.kind in kinds]
        known += [each.name for each in self._others()]
        guess = closest_name(name, known)
        hint = f" Did you mean {guess}?" if guess else ""
        available = ", ".join(sorted({row.name for row in self._built_in if row.kind in kinds}))
        return (
            f"Failed to find any class that implements {what.capitalize()} and which name matches "
            f"{name}, available {what}s are: {available or 'none'}.{hint}"
        )

    def kind_of(self, class_name: str, version: str | None = None) -> PluginKind | None:
        """The kind of a plug-in; None if it cannot be loaded."""
        row = self._by_name.get(class_name)
        if row is not None:
            return row.kind
        try:
            return _kind(self._chosen(class_name, tuple(PluginKind), version).load())
        except ConnectError:
            return None

    def version_of(self, class_name: str, version: str | None = None) -> str | None:
        """The version of a plug-in; None if it cannot be loaded."""
        try:
            return self._chosen(class_name, tuple(PluginKind), version).version
        except ConnectError:
            return None

    def list(self) -> list[PluginInfo]:
        """All of the box, of installed packages and of the roots, by class name."""
        found = {
            (row.class_name, row.kind, __version__): PluginInfo(
                row.class_name, row.kind, __version__, row.name
            )
            for row in self._built_in
        }
        for each in self._loaded():
            kind = _kind(each.load())
            if kind is not None:
                info = PluginInfo(each.class_name, kind, each.version, each.name)
                found.setdefault((each.class_name, kind, each.version), info)
        return sorted(
            found.values(), key=lambda each: (each.kind.value, each.class_name, each.version)
        )


def _installed() -> tuple[EntryPoint, ...]:
    # Imported here: it takes 30 ms, and tools that only talk to a worker need no plug-ins.
    from importlib.metadata import entry_points

    return tuple(entry_points(group=ENTRY_POINT_GROUP))


def _roots(paths: Sequence[str]) -> list[PluginRoot]:
    if not paths:
        return []
    # Imported here: most workers have no plugin.path.
    from moldau.connect.isolation import roots_of

    try:
        return roots_of(paths)
    except (OSError, BadZipFile) as error:
        raise ConfigError.invalid("plugin.path", ",".join(paths), str(error)) from error


def _load_from(root: PluginRoot, target: str) -> type[Any]:
    """A class of a root, by `module:Class` or `module.Class`."""
    module, colon, name = target.partition(":")
    if not colon:
        module, _, name = target.rpartition(".")
    try:
        loaded = getattr(root.load(module), name)
    except Exception as error:
        raise ConnectError(f"{target} of {root.path} cannot be loaded: {error}") from error
    if not isinstance(loaded, type):
        raise ConnectError(f"{target} of {root.path} is no class")
    return loaded


def _scanned(root: PluginRoot) -> Iterator[_Candidate]:
    """The plug-ins that the modules of a root without entry points show."""
    for module in sorted(root.names):
        try:
            loaded = root.load(module)
        except Exception as error:
            logger.warning("plugin.path: %s of %s cannot be loaded: %s", module, root.path, error)
            continue
        for name, each in vars(loaded).items():
            own = isinstance(each, type) and each.__module__.startswith(f"{root.prefix}.")
            if own and _kind(each) is not None and not getattr(each, "__abstractmethods__", None):
                yield _Candidate(f"{module}.{name}", name, partial(_same, each), None)


def _same(loaded: type[Any]) -> type[Any]:
    return loaded


def _aliases(candidate: _Candidate) -> tuple[str, ...]:
    return tuple(getattr(candidate.load(), "ALIASES", ()))


def _version(loaded: type[Any]) -> str:
    """What the class says; a default of the interface counts for nothing."""
    for each in loaded.__mro__:
        if not each.__module__.startswith("moldau.connect.api") and "VERSION" in vars(each):
            return str(vars(each)["VERSION"])
    return str(getattr(loaded, "VERSION", "undefined"))


def _kind(loaded: type[Any]) -> PluginKind | None:
    return next((kind for kind, base in _BASES.items() if issubclass(loaded, base)), None)


@cache
def _load_row(row: BuiltIn) -> type[Any]:
    module, _, name = row.target.partition(":")
    try:
        found: type[Any] = getattr(import_module(module), name)
    except ImportError as error:
        extra = pip_install(row.extra) if row.extra else "check the installation"
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
    if not all(module.split(".")):
        # An import of `..` would be a relative one.
        return None
    try:
        loaded = getattr(import_module(module), name, None)
    except ModuleNotFoundError as error:
        if error.name is not None and module.startswith(error.name):
            return None
        raise ConnectError(f"{path} cannot be loaded: {error}") from error
    except (ImportError, ValueError) as error:
        raise ConnectError(f"{path} cannot be loaded: {error}") from error
    return loaded if isinstance(loaded, type) else None


def named_plugin(config: Mapping[str, str | None]) -> tuple[str, str | None]:
    """The connector's class and version in a configuration."""
    return config.get("connector.class") or "", config.get(f"connector.{PLUGIN_VERSION}")


def checked_class(
    plugins: Plugins, key: str, name: str, *kinds: PluginKind, version: str | None = None
) -> type[Any]:
    """As `find`, with the setting named if the class is not there."""
    try:
        return plugins.find(name, kinds, version)
    except ConnectError as error:
        raise ConfigError.invalid(key, name, str(error)) from None
