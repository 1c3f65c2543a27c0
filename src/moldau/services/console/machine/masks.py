"""MaskRule: which fields of which topics are hidden, and how.

Rules are properties: `mask.NAME.topics` is a regular expression for whole topic names,
`mask.NAME.fields` a list of field paths (`card`, `customer.email`, `*.phone`), `mask.NAME.with` is
`replace` (asterisks), `hash` (the same value has the same hash), `last4` or `remove`, and
`mask.NAME.except` lists the users that see the values. A path without a dot is a field at any
depth. The special fields `@key` and `@value` are the whole key and the whole value.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from moldau.config.errors import ConfigError

__all__ = ["MASKED", "MaskRule", "hides_less", "masked", "parse_mask_rules", "rules_for"]

MASKED: Final = "****"
_KINDS: Final = ("replace", "hash", "last4", "remove")


@dataclass(frozen=True, slots=True)
class MaskRule:
    name: str
    topics: re.Pattern[str]
    fields: tuple[tuple[str, ...], ...]
    kind: str
    exempt: frozenset[str] = frozenset()


def parse_mask_rules(texts: Mapping[str, str]) -> tuple[MaskRule, ...]:
    """Raises ConfigError."""
    names = sorted({key.split(".")[1] for key in texts if re.match(r"mask\.[^.]+\.", key)})
    return tuple(_rule(name, texts) for name in names)


def _rule(name: str, texts: Mapping[str, str]) -> MaskRule:
    def text(key: str, default: str = "") -> str:
        return texts.get(f"mask.{name}.{key}", default).strip()

    try:
        topics = re.compile(text("topics", ".*"))
    except re.error as error:
        raise ConfigError.invalid(f"mask.{name}.topics", text("topics"), str(error)) from None
    kind = text("with", "replace")
    if kind not in _KINDS:
        raise ConfigError.invalid(f"mask.{name}.with", kind, f"one of {', '.join(_KINDS)}")
    fields = tuple(tuple(each.strip().split(".")) for each in _listed(text("fields")))
    if not fields:
        raise ConfigError(
            f"mask.{name}.fields is missing: list the fields to hide", key=f"mask.{name}.fields"
        )
    return MaskRule(name, topics, fields, kind, frozenset(_listed(text("except"))))


def _listed(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def rules_for(rules: Iterable[MaskRule], topic: str, user: str) -> tuple[MaskRule, ...]:
    return tuple(each for each in rules if each.topics.fullmatch(topic) and user not in each.exempt)


def hides_less(rules: Iterable[MaskRule], source: str, target: str, user: str) -> bool:
    """Whether the user would see in `target` what is hidden in `source`."""
    kept = tuple(rules)
    return not set(rules_for(kept, source, user)) <= set(rules_for(kept, target, user))


def masked(rules: Iterable[MaskRule], part: str, value: Any) -> Any:
    """`part` is key or value. What cannot be looked into (bytes, text) is hidden whole, because
    the field might be in it."""
    for rule in rules:
        for path in rule.fields:
            if path == (f"@{part}",):
                value = _hidden(rule.kind, value)
            elif path[0].startswith("@"):
                continue
            elif isinstance(value, dict | list):
                value = _within(value, path, rule.kind, any_depth=len(path) == 1)
            elif part == "value" and isinstance(value, str):
                value = _hidden(rule.kind, value)
    return value


def _within(value: Any, path: tuple[str, ...], kind: str, *, any_depth: bool) -> Any:
    if isinstance(value, list):
        return [_within(each, path, kind, any_depth=any_depth) for each in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for name, each in value.items():
        if path[0] in ("*", name):
            if len(path) > 1:
                each = _within(each, path[1:], kind, any_depth=False)
            elif kind == "remove":
                continue
            else:
                each = _hidden(kind, each)
        elif any_depth:
            each = _within(each, path, kind, any_depth=True)
        found[name] = each
    return found


def _hidden(kind: str, value: Any) -> Any:
    if value is None:
        return None
    text = value if isinstance(value, str) else repr(value)
    if kind == "hash":
        return hashlib.sha256(text.encode()).hexdigest()[:16]
    if kind == "last4" and len(text) > 4:
        return MASKED + text[-4:]
    return MASKED
