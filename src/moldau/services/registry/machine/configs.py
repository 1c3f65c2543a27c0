"""The configuration of a subject, a context or the whole registry."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Final

from moldau.data.compatibility import CompatibilityLevel
from moldau.services.registry.machine.contracts import Metadata, RuleSet
from moldau.services.registry.machine.errors import InvalidRequest, invalid_compatibility
from moldau.services.registry.machine.json_fields import (
    JsonObject,
    boolean_field,
    object_field,
    text_field,
)

__all__ = ["LEVELS", "Config", "ConfigChange"]

LEVELS: Final = tuple(each.value for each in CompatibilityLevel)
_POLICIES: Final = ("STRICT", "LENIENT", "LOGICAL")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Each field is None where it is not set."""

    alias: str | None = None
    alias_for_deks: str | None = None
    normalize: bool | None = None
    validate_fields: bool | None = None
    validate_new_schemas: bool | None = None
    validate_rules: bool | None = None
    compatibility_level: str | None = None
    compatibility_policy: str | None = None
    compatibility_group: str | None = None
    default_metadata: Metadata | None = None
    override_metadata: Metadata | None = None
    default_rule_set: RuleSet | None = None
    override_rule_set: RuleSet | None = None

    @classmethod
    def from_json(cls, source: JsonObject, *, level: str = "compatibilityLevel") -> Config:
        """`level` is the name of the field with the compatibility level."""
        names = {**_JSON_NAMES, "compatibility_level": level}
        return cls(**{name: _READERS[name](source, names[name]) for name in names})

    def to_json(self, *, level: str = "compatibilityLevel") -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, json_name in _JSON_NAMES.items():
            value = getattr(self, name)
            if name == "compatibility_level":
                json_name = level
            if isinstance(value, (Metadata, RuleSet)):
                found[json_name] = value.to_json()
            elif value not in (None, ""):
                found[json_name] = value
        return found

    @property
    def has_defaults_or_overrides(self) -> bool:
        return any(
            each is not None
            for each in (
                self.default_metadata,
                self.override_metadata,
                self.default_rule_set,
                self.override_rule_set,
            )
        )

    def with_default_level(self, level: str) -> Config:
        if self.compatibility_level is not None:
            return self
        return replace(self, compatibility_level=level)

    def over(self, top: Config) -> Config:
        """What holds for a subject with this config, where `top` is that of the registry."""
        inherited = {
            name: getattr(top, name)
            for name in _INHERITED
            if getattr(self, name) is None and getattr(top, name) is not None
        }
        return replace(self, **inherited) if inherited else self


_INHERITED: Final = (
    "normalize",
    "validate_fields",
    "validate_new_schemas",
    "validate_rules",
    "compatibility_policy",
    "compatibility_group",
)
_JSON_NAMES: Final = {
    "alias": "alias",
    "alias_for_deks": "aliasForDeks",
    "normalize": "normalize",
    "validate_fields": "validateFields",
    "validate_new_schemas": "validateNewSchemas",
    "validate_rules": "validateRules",
    "compatibility_level": "compatibilityLevel",
    "compatibility_policy": "compatibilityPolicy",
    "compatibility_group": "compatibilityGroup",
    "default_metadata": "defaultMetadata",
    "override_metadata": "overrideMetadata",
    "default_rule_set": "defaultRuleSet",
    "override_rule_set": "overrideRuleSet",
}


def _level(source: JsonObject, name: str) -> str | None:
    text = text_field(source, name)
    if text is None:
        return None
    if text.upper() not in LEVELS:
        raise invalid_compatibility()
    return text.upper()


def _policy(source: JsonObject, name: str) -> str | None:
    text = text_field(source, name)
    if text is None:
        return None
    if text.upper() not in _POLICIES:
        raise InvalidRequest(f"field {name!r} must be one of {', '.join(_POLICIES)}, not {text!r}")
    return text.upper()


def _metadata(source: JsonObject, name: str) -> Metadata | None:
    return Metadata.from_json(object_field(source, name))


def _rule_set(source: JsonObject, name: str) -> RuleSet | None:
    return RuleSet.from_json(object_field(source, name))


_READERS: Final[dict[str, Any]] = {
    "alias": text_field,
    "alias_for_deks": text_field,
    "normalize": boolean_field,
    "validate_fields": boolean_field,
    "validate_new_schemas": boolean_field,
    "validate_rules": boolean_field,
    "compatibility_level": _level,
    "compatibility_policy": _policy,
    "compatibility_group": text_field,
    "default_metadata": _metadata,
    "override_metadata": _metadata,
    "default_rule_set": _rule_set,
    "override_rule_set": _rule_set,
}


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """What a request changes: the fields it has, those that are null to be unset."""

    given: frozenset[str]
    values: Config

    @classmethod
    def from_json(cls, source: JsonObject) -> ConfigChange:
        names = {**_JSON_NAMES, "compatibility_level": "compatibility"}
        values = Config.from_json(source, level="compatibility")
        for rule_set in (values.default_rule_set, values.override_rule_set):
            if rule_set is not None:
                rule_set.check()
        return cls(frozenset(name for name in names if names[name] in source), values)

    def apply(self, old: Config | None) -> Config:
        if old is None:
            return self.values
        return Config(
            **{
                field.name: getattr(self.values if field.name in self.given else old, field.name)
                for field in fields(Config)
            }
        )
