"""Config providers: values that are read from files, the environment or own classes (KIP-297).

    config.providers=file,env
    ssl.keystore.password=${file:/run/secrets/broker.properties:keystore}
    sasl.jaas.config=${env:JAAS}

`resolve` reads them once, before a configuration is checked. Kafka's class names select the classes
here; `file`, `env` and `dir` need none. Messages name the variable, never a value.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Collection, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Protocol

from moldau.config.errors import ConfigError
from moldau.config.properties import load_properties
from moldau.config.variables import (
    PROVIDERS_KEY,
    ProviderSpec,
    Variable,
    is_provider_key,
    provider_specs,
    replace_variables,
    variables_in,
)

__all__ = [
    "ConfigData",
    "ConfigProvider",
    "DirectoryConfigProvider",
    "EnvVarConfigProvider",
    "FileConfigProvider",
    "resolve",
    "resolve_for_a_time",
]

logger = logging.getLogger(__name__)


class ConfigData(dict[str, str]):
    """Values that are good for a time only: what is configured with them is looked up again."""

    def __init__(self, values: Mapping[str, str], ttl_ms: int | None = None) -> None:
        super().__init__(values)
        self.ttl_ms = ttl_ms


class ConfigProvider(Protocol):
    """What an own class has; it is created without arguments. `close` is optional."""

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Take the provider's parameters: `config.providers.NAME.param.*`."""
        ...

    def get(self, path: str, keys: Collection[str]) -> Mapping[str, str]:
        """The values of these keys at `path`, as far as there are any; `ConfigData` if they are
        good for a time only."""
        ...


class _AllowedPaths:
    """`allowed.paths`: where files may be read; everywhere if it is not set (KIP-993)."""

    def __init__(self, configs: Mapping[str, Any]) -> None:
        texts = str(configs.get("allowed.paths") or "").split(",")
        self._roots = [_absolute(text.strip()) for text in texts if text.strip()]

    def resolve(self, text: str) -> Path | None:
        path = Path(os.path.normpath(text))
        if self._roots and not any(path.is_relative_to(root) for root in self._roots):
            logger.warning("The path %s is not within allowed.paths: it is not read", path)
            return None
        return path


def _ttl_ms(configs: Mapping[str, Any]) -> int | None:
    """`ttl.ms`, which Kafka's own providers of files do not have."""
    text = str(configs.get("ttl.ms") or "")
    if not text:
        return None
    if not text.isdecimal() or int(text) == 0:
        raise ConfigError.invalid("ttl.ms", text, "must be a positive number of milliseconds")
    return int(text)


def _absolute(text: str) -> Path:
    path = Path(os.path.normpath(text))
    if not path.is_absolute():
        raise ConfigError.invalid("allowed.paths", text, f"Path {text} is not absolute")
    if not path.exists():
        raise ConfigError.invalid("allowed.paths", text, f"Path {text} does not exist")
    return path


class FileConfigProvider:
    """`${file:/path/to/file.properties:key}`."""

    def configure(self, configs: Mapping[str, Any]) -> None:
        self._allowed = _AllowedPaths(configs)
        self._ttl_ms = _ttl_ms(configs)

    def get(self, path: str, keys: Collection[str]) -> Mapping[str, str]:
        file = self._allowed.resolve(path) if path else None
        if file is None:
            return {}
        try:
            values = load_properties(file.read_text())
        except (OSError, UnicodeDecodeError, ConfigError) as error:
            raise ConfigError(
                f"Could not read properties from file {path}: {_reason(error)}"
            ) from None
        return ConfigData({key: values[key] for key in keys if key in values}, self._ttl_ms)


class DirectoryConfigProvider:
    """`${dir:/path/to/directory:file}`: the content of a file (KIP-632)."""

    def configure(self, configs: Mapping[str, Any]) -> None:
        self._allowed = _AllowedPaths(configs)
        self._ttl_ms = _ttl_ms(configs)

    def get(self, path: str, keys: Collection[str]) -> Mapping[str, str]:
        folder = self._allowed.resolve(path) if path else None
        if folder is None:
            return {}
        if not folder.is_dir():
            logger.warning("The path %s is not a directory", path)
            return {}
        found = {}
        for key in keys:
            file = folder / key
            # Only files of the directory itself: a key must not lead elsewhere.
            if os.sep not in key and key not in (os.curdir, os.pardir) and file.is_file():
                try:
                    found[key] = file.read_text()
                except (OSError, UnicodeDecodeError) as error:
                    raise ConfigError(f"Could not read file {file}: {_reason(error)}") from None
        return ConfigData(found, self._ttl_ms)


class EnvVarConfigProvider:
    """`${env:NAME}`; `allowlist.pattern` limits the names (KIP-887)."""

    def configure(self, configs: Mapping[str, Any]) -> None:
        self._pattern = re.compile(str(configs.get("allowlist.pattern") or ".*"))

    def get(self, path: str, keys: Collection[str]) -> Mapping[str, str]:
        if path:
            raise ConfigError(
                f"Path is not supported for EnvVarConfigProvider, invalid value '{path}'"
            )
        return {
            key: os.environ[key]
            for key in keys
            if key in os.environ and self._pattern.fullmatch(key)
        }


_OURS: Final[Mapping[str, type[ConfigProvider]]] = {
    "file": FileConfigProvider,
    "env": EnvVarConfigProvider,
    "dir": DirectoryConfigProvider,
    "directory": DirectoryConfigProvider,
}
_KAFKAS_PACKAGE: Final = "org.apache.kafka.common.config.provider."
_KAFKAS: Final = {
    f"{_KAFKAS_PACKAGE}{each.__name__}": each
    for each in (FileConfigProvider, EnvVarConfigProvider, DirectoryConfigProvider)
}


def resolve(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with their variables replaced, and without the providers themselves.

    Raises ConfigError for a provider that cannot be loaded or that fails.
    """
    return resolve_for_a_time(settings)[0]


def resolve_for_a_time(settings: Mapping[str, Any]) -> tuple[dict[str, Any], int | None]:
    """As `resolve`, with the milliseconds after which a value may have changed; None if never."""
    specs = provider_specs(settings)
    if not specs:
        return dict(settings), None
    providers = {spec.name: _load(spec) for spec in specs}
    own = {name: value for name, value in settings.items() if not is_provider_key(name)}
    try:
        found, ttl_ms = _look_up(providers, own)
    finally:
        for provider in providers.values():
            getattr(provider, "close", lambda: None)()
    resolved = {
        name: replace_variables(value, found.get) if isinstance(value, str) else value
        for name, value in own.items()
    }
    return resolved, ttl_ms


def _look_up(
    providers: Mapping[str, ConfigProvider], settings: Mapping[str, Any]
) -> tuple[dict[Variable, str], int | None]:
    """All values, each file read once, and how long they are good."""
    wanted: dict[tuple[str, str], set[str]] = {}
    for value in settings.values():
        if isinstance(value, str):
            for each in variables_in(value):
                if each.provider in providers:
                    wanted.setdefault((each.provider, each.path), set()).add(each.key)
    found: dict[Variable, str] = {}
    times: list[int] = []
    for (name, path), keys in wanted.items():
        given = providers[name].get(path, frozenset(keys))
        ttl_ms = getattr(given, "ttl_ms", None)
        if ttl_ms is not None:
            times.append(ttl_ms)
        found |= {Variable(name, path, key): str(value) for key, value in given.items()}
    return found, min(times, default=None)


def _load(spec: ProviderSpec) -> ConfigProvider:
    key = f"{PROVIDERS_KEY}.{spec.name}.class"
    if spec.class_name is None:
        if spec.name not in _OURS:
            raise ConfigError(f"config provider {spec.name} has no class: set {key}", key=key)
        made: ConfigProvider = _OURS[spec.name]()
    elif isinstance(spec.class_name, str):
        made = (_KAFKAS.get(spec.class_name) or _imported(key, spec.class_name))()
    else:
        made = spec.class_name()
    made.configure(spec.params)
    return made


def _imported(key: str, dotted: str) -> Any:
    module, _, name = dotted.rpartition(".")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError.invalid(
            key,
            dotted,
            f"the class cannot be loaded ({error}): give a Python class as module.Class, or one "
            f"of Kafka's: {', '.join(_KAFKAS)}",
        ) from None


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)
