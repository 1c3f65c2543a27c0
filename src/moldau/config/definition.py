"""ConfigKey and ConfigDef: what keys exist, and how given texts become checked values.

A ConfigDef never changes after it is built. `parse` returns a value for every defined key; keys it
does not know are left to the caller (a broker only warns about them, a tool may reject them).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum, IntEnum
from typing import Any, Final

from moldau.config.errors import ConfigError
from moldau.config.validators import Validator
from moldau.config.values import ConfigType, parse_value, render_value

__all__ = ["REQUIRED", "ConfigDef", "ConfigKey", "Dynamic", "Importance"]


class Importance(IntEnum):
    HIGH = 0
    MEDIUM = 1
    LOW = 2


class Dynamic(Enum):
    """Whether a broker key can change while the broker runs, and for whom."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class _Required:
    """Marks a key without a default."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = _Required()


class ConfigKey:
    """One key. Equal keys are the same object, so identity comparison is enough."""

    __slots__ = ("default", "dynamic", "importance", "internal", "name", "type", "validator")

    def __init__(
        self,
        name: str,
        type: ConfigType,
        default: Any = REQUIRED,
        validator: Validator | None = None,
        importance: Importance = Importance.MEDIUM,
        *,
        dynamic: Dynamic = Dynamic.READ_ONLY,
        internal: bool = False,
    ) -> None:
        self.name = name
        self.type = type
        self.default = default
        self.validator = validator
        self.importance = importance
        self.dynamic = dynamic
        self.internal = internal

    def __repr__(self) -> str:
        return f"ConfigKey({self.name!r}, {self.type.name}, default={self.default!r})"

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    @property
    def field(self) -> str:
        """The Python attribute name of this key: dots become underscores."""
        return self.name.replace(".", "_")

    def parse(self, text: str) -> Any:
        """The checked value of `text`."""
        value = parse_value(self.name, self.type, text)
        if self.type is ConfigType.LIST:
            value = tuple(dict.fromkeys(value))
        if self.validator is not None:
            self._check(value)
        return value

    def _check(self, value: Any) -> None:
        try:
            self.validator.check(self.name, value)  # type: ignore[union-attr]
        except ConfigError as error:
            if self.type is ConfigType.PASSWORD:
                raise ConfigError.invalid(self.name, "[hidden]", "not accepted") from error
            raise

    def render(self, value: Any) -> str | None:
        return render_value(self.type, value)


class ConfigDef(Mapping[str, ConfigKey]):
    """An ordered set of keys."""

    __slots__ = ("_defaults", "_keys")

    def __init__(self, keys: Iterable[ConfigKey]) -> None:
        self._keys: dict[str, ConfigKey] = {key.name: key for key in keys}
        self._defaults = {k.name: k.default for k in self._keys.values() if not k.required}

    def __getitem__(self, name: str) -> ConfigKey:
        return self._keys[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, name: object) -> bool:
        return name in self._keys

    def parse(self, texts: Mapping[str, str]) -> dict[str, Any]:
        """A value for every defined key: the given one, checked, or the default."""
        values = dict(self._defaults)
        for name, text in texts.items():
            key = self._keys.get(name)
            if key is not None:
                values[name] = key.parse(text)
        if len(values) < len(self._keys):
            missing = next(name for name in self._keys if name not in values)
            raise ConfigError(
                f'Missing required configuration "{missing}" which has no default value. '
                f"Add a line {missing}=... to the configuration",
                key=missing,
            )
        return values

    def parse_given(self, texts: Mapping[str, str]) -> dict[str, Any]:
        """Checked values of the given keys only; a key that is not defined is rejected."""
        values: dict[str, Any] = {}
        for name, text in texts.items():
            key = self._keys.get(name)
            if key is None:
                raise ConfigError(f"Unknown configuration {name}", key=name)
            values[name] = key.parse(text)
        return values
