"""Configuration keys, their types, defaults and checks, shared by broker, tools and clients."""

from __future__ import annotations

from moldau.config.definition import REQUIRED, ConfigDef, ConfigKey, Dynamic, Importance
from moldau.config.errors import ConfigError
from moldau.config.properties import dump_properties, load_properties
from moldau.config.suggestions import closest_name, did_you_mean
from moldau.config.validators import AnyOf, ListOf, NonEmpty, NonNull, OneOf, Range, Validator
from moldau.config.values import ConfigType, Password, parse_value, render_value

__all__ = [
    "REQUIRED",
    "AnyOf",
    "ConfigDef",
    "ConfigError",
    "ConfigKey",
    "ConfigType",
    "Dynamic",
    "Importance",
    "ListOf",
    "NonEmpty",
    "NonNull",
    "OneOf",
    "Password",
    "Range",
    "Validator",
    "closest_name",
    "did_you_mean",
    "dump_properties",
    "load_properties",
    "parse_value",
    "render_value",
]
