"""Reads key tables: one line per key.

    name  type  default  flags  [allowed]

default: `!` required, `-` not set, `""` empty text, `[]` empty list, otherwise the value.
flags:   importance `h`/`m`/`l`, then for broker keys `r` read-only, `b` changeable per broker or
         `c` changeable cluster-wide, then `i` for internal keys.
allowed: `>=1`, `1..9`, `1..9|-1`, `{a,b}` words, `~{a,b}` words in any case, `nonempty`,
         `nonnull`; for lists `*` any, `+` at least one entry, then `?` if it may be unset, then
         `{a,b}` if only these words; or the name of a rule the caller brings along. An indented
         line continues the one above.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.config.definition import REQUIRED, ConfigKey, Dynamic, Importance
from moldau.config.validators import AnyOf, ListOf, NonEmpty, NonNull, OneOf, Range, Validator
from moldau.config.values import ConfigType, parse_value
from moldau.invariant import invariant

__all__ = ["parse_table"]

_IMPORTANCE = {"h": Importance.HIGH, "m": Importance.MEDIUM, "l": Importance.LOW}
_DYNAMIC = {"r": Dynamic.READ_ONLY, "b": Dynamic.PER_BROKER, "c": Dynamic.CLUSTER_WIDE}
_TYPES = {kind.name.lower(): kind for kind in ConfigType}


def parse_table(text: str, rules: Mapping[str, Validator] | None = None) -> list[ConfigKey]:
    """The keys of a table, in its order. `rules` are the named ones of the caller."""
    validators = dict(rules or ())
    keys: list[ConfigKey] = []
    for line in text.replace("\n  ", " ").splitlines():
        if line and not line.startswith("#"):
            keys.append(_parse_line(line, validators))
    return keys


def _parse_line(line: str, validators: dict[str, Validator]) -> ConfigKey:
    name, type_name, default_text, flags, *rest = line.split()
    invariant(len(rest) <= 1, f"key table line has too many columns: {line}")
    validator: Validator | None = None
    if rest:
        # Equal rules share one object: 360 keys have some forty different rules.
        validator = validators.get(rest[0])
        if validator is None:
            validator = validators[rest[0]] = _parse_rule(rest[0])
    kind = _TYPES[type_name]
    return ConfigKey(
        name,
        kind,
        _parse_default(name, kind, default_text),
        validator,
        _IMPORTANCE[flags[0]],
        dynamic=_DYNAMIC["r" if len(flags) < 2 else flags[1]],
        internal=flags.endswith("i"),
    )


def _parse_default(name: str, kind: ConfigType, text: str) -> Any:
    if text == "!":
        return REQUIRED
    if text == "-":
        return None
    if text == '""':
        return ""
    return () if text == "[]" else parse_value(name, kind, text)


def _parse_rule(text: str) -> Validator:
    if text == "nonempty":
        return NonEmpty()
    if text == "nonnull":
        return NonNull()
    if text[0] in "*+":
        marks, _, words = text.rstrip("}").partition("{")
        return ListOf(
            tuple(words.split(",")) if words else (),
            empty_allowed=marks[0] == "*",
            null_allowed="?" in marks,
        )
    if text.startswith("~{"):
        return OneOf(tuple(text[2:-1].split(",")), ignore_case=True)
    if text.startswith("{"):
        return OneOf(tuple(text[1:-1].split(",")))
    if text.startswith(">="):
        return Range(_number(text[2:]))
    bounds, _, extra = text.partition("|")
    least, _, most = bounds.partition("..")
    range_ = Range(_number(least), _number(most))
    return AnyOf(range_, int(extra)) if extra else range_


def _number(text: str) -> float:
    return float(text) if "." in text else int(text)
