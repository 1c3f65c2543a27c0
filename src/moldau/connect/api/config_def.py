"""ConfigDef: the settings of a plug-in, with everything that a user interface shows of them.

    CONFIG = (
        ConfigDef()
        .define("file", Kind.STRING, default=None, importance=Importance.HIGH, doc="Source file.")
        .define("batch.size", Kind.INT, default=2000, validator=Range(1), doc="Records per poll.")
    )

`parse` returns a checked value for every key and raises `ConfigError` for the first that is wrong;
`validate` returns all values with all errors, as Connect's REST shows them. Keys that are not
defined are left alone by both; `unknown` names them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Protocol, TypeAlias

from moldau.config import (
    REQUIRED,
    ConfigError,
    ConfigType,
    Importance,
    ListOf,
    NonEmpty,
    OneOf,
    Password,
    Range,
    Validator,
    parse_value,
    render_value,
)

__all__ = [
    "REQUIRED",
    "CheckedBy",
    "ConfigDef",
    "ConfigKey",
    "ConfigValue",
    "Importance",
    "Kind",
    "ListOf",
    "NonEmpty",
    "OneOf",
    "Password",
    "Range",
    "Recommender",
    "ValidRegex",
    "Validator",
    "Width",
]

#: The types of settings.
Kind: TypeAlias = ConfigType


class Width(Enum):
    """How wide a field for the value should be in a form."""

    NONE = "NONE"
    SHORT = "SHORT"
    MEDIUM = "MEDIUM"
    LONG = "LONG"


class Recommender(Protocol):
    """Knows which values are possible, and whether a key matters, given the other settings."""

    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> list[Any]: ...

    def visible(self, name: str, parsed: Mapping[str, Any]) -> bool: ...


@dataclass(frozen=True, slots=True)
class CheckedBy:
    """A validator made of a function that raises ConfigError, or ValueError with a reason."""

    function: Callable[[str, Any], None]
    allowed: str

    def check(self, key: str, value: Any) -> None:
        try:
            self.function(key, value)
        except ConfigError:
            raise
        except ValueError as error:
            raise ConfigError.invalid(key, value, str(error)) from None


class ValidRegex:
    """A regular expression."""

    __slots__ = ()
    allowed = "valid regex"

    def check(self, key: str, value: Any) -> None:
        try:
            re.compile(value or "")
        except re.error as error:
            raise ConfigError.invalid(key, value, f"Invalid regex: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey:
    """One setting. `default` is REQUIRED for a setting that must be given."""

    name: str
    type: ConfigType
    default: Any = REQUIRED
    validator: Validator | None = None
    importance: Importance = Importance.MEDIUM
    doc: str = ""
    group: str | None = None
    order: int = -1
    width: Width = Width.NONE
    display_name: str = ""
    dependents: tuple[str, ...] = ()
    recommender: Recommender | None = None
    internal: bool = False

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    def parse(self, given: Any) -> Any:
        """The checked value of a text, or of a value that is typed already."""
        value = self.read(given)
        self.check(value)
        return value

    def read(self, given: Any) -> Any:
        """Its value, of the right type, which the validator may still refuse."""
        if isinstance(given, str):
            return parse_value(self.name, self.type, given)
        if given is not None and not isinstance(given, Password):
            return parse_value(self.name, self.type, _as_text(given))
        return given

    def check(self, value: Any) -> None:
        if self.validator is None:
            return
        try:
            self.validator.check(self.name, value)
        except ConfigError as error:
            if self.type is ConfigType.PASSWORD:
                raise ConfigError.invalid(self.name, Password.HIDDEN, "not accepted") from error
            raise

    def null_errors(self, given: Any) -> list[str]:
        """What Connect says in addition of a text that is no number at all, or of null."""
        if not isinstance(self.validator, Range):
            return []
        try:
            if given is not None:
                parse_value(self.name, self.type, _as_text(given))
                return []
        except ConfigError:
            pass
        return [str(ConfigError.invalid(self.name, None, "Value must be non-null"))]

    def render(self, value: Any) -> str | None:
        """The value as a text; a password stays hidden."""
        return render_value(self.type, value)


def _as_text(given: Any) -> str:
    if isinstance(given, bool):
        return "true" if given else "false"
    return ",".join(map(str, given)) if isinstance(given, (list, tuple)) else str(given)


@dataclass(slots=True)
class ConfigValue:
    """A setting with its value, what is wrong with it, and what it could be."""

    name: str
    value: Any = None
    recommended_values: list[Any] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    visible: bool = True


class ConfigDef(Mapping[str, ConfigKey]):
    """An ordered set of settings; `define` adds one and returns the definition itself."""

    def __init__(self, keys: Iterable[ConfigKey] = ()) -> None:
        self._keys: dict[str, ConfigKey] = {key.name: key for key in keys}
        self._orders: dict[str, int] = {}

    def define(
        self, name: str, type: ConfigType, default: Any = REQUIRED, **attributes: Any
    ) -> ConfigDef:
        """Add a setting; `attributes` are those of ConfigKey. The default is a typed value."""
        if name in self._keys:
            raise ConfigError(f"Configuration {name} is defined twice.", key=name)
        if type is ConfigType.LIST and isinstance(default, list):
            default = tuple(default)
        group = attributes.get("group")
        if group is not None:
            attributes.setdefault("order", self._orders.get(group, 0) + 1)
            self._orders[group] = attributes["order"]
        attributes.setdefault("display_name", name)
        if default is not REQUIRED and default is not None:
            ConfigKey(
                name=name, type=type, default=default, validator=attributes.get("validator")
            ).check(default)
        self._keys[name] = ConfigKey(name=name, type=type, default=default, **attributes)
        return self

    def including(self, *others: ConfigDef) -> ConfigDef:
        """A new definition with these settings and those of others; the first of a name counts."""
        keys = dict(self._keys)
        for other in others:
            for name, key in other.items():
                keys.setdefault(name, key)
        return ConfigDef(keys.values())

    def add(self, key: ConfigKey) -> None:
        """Add a setting as it is, in place of one of its name."""
        self._keys[key.name] = key

    def change(self, name: str, **attributes: Any) -> None:
        """Give a setting that is defined other attributes, such as a default."""
        self._keys[name] = replace(self._keys[name], **attributes)

    def __getitem__(self, name: str) -> ConfigKey:
        return self._keys[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def groups(self) -> list[str]:
        """The groups in the order of their first setting."""
        return list(dict.fromkeys(key.group for key in self._keys.values() if key.group))

    def unknown(self, given: Mapping[str, Any]) -> list[str]:
        """The given keys that are not defined."""
        return [name for name in given if name not in self._keys]

    def parse(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """A value for every setting: the given one, checked, or the default."""
        values: dict[str, Any] = {}
        for name, key in self._keys.items():
            if name in given:
                values[name] = key.parse(given[name])
            elif key.required:
                raise ConfigError(
                    f'Missing required configuration "{name}" which has no default value.', key=name
                )
            else:
                values[name] = key.default
        return values

    def validate(self, given: Mapping[str, Any]) -> list[ConfigValue]:
        """Every setting with its value and all that is wrong."""
        found = {name: ConfigValue(name) for name in self._keys}
        for name, key in self._keys.items():
            self._validate_one(key, given, found[name])
        # Recommenders see a default in place of a value that is wrong.
        parsed = {
            name: self._keys[name].default
            if each.errors and not self._keys[name].required
            else each.value
            for name, each in found.items()
        }
        for name, key in self._keys.items():
            if key.recommender is not None:
                self._recommend(key, parsed, found[name])
        return list(found.values())

    def _validate_one(self, key: ConfigKey, given: Mapping[str, Any], into: ConfigValue) -> None:
        if key.name in given:
            try:
                into.value = key.read(given[key.name])
                # A value that is refused is still shown.
                key.check(into.value)
            except ConfigError as error:
                into.errors.append(str(error))
                into.errors += key.null_errors(given[key.name])
        elif key.required:
            into.errors.append(
                f'Missing required configuration "{key.name}" which has no default value.'
            )
        else:
            into.value = key.default

    @staticmethod
    def _recommend(key: ConfigKey, parsed: Mapping[str, Any], into: ConfigValue) -> None:
        if key.recommender is None:
            return
        try:
            into.recommended_values = list(key.recommender.valid_values(key.name, parsed))
            into.visible = key.recommender.visible(key.name, parsed)
        except ConfigError as error:
            into.errors.append(str(error))
