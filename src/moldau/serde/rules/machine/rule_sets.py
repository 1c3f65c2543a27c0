"""Rule sets: what the registry stores as JSON, and which rules run when."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, Literal

__all__ = [
    "Mode",
    "Phase",
    "Rule",
    "RuleOverride",
    "RuleSet",
    "matches",
    "overrides_of",
    "rules_to_run",
]

Mode = Literal["WRITE", "READ", "UPGRADE", "DOWNGRADE"]
Phase = Literal["domain", "encoding"]
_BOTH: Final = {
    "WRITE": "WRITEREAD",
    "READ": "WRITEREAD",
    "UPGRADE": "UPDOWN",
    "DOWNGRADE": "UPDOWN",
}
_HERE: Final = (None, "ALL", "CLIENT")


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    kind: str
    mode: str
    type: str
    tags: frozenset[str] = frozenset()
    params: Mapping[str, str] = field(default_factory=dict)
    expr: str | None = None
    on_success: str | None = None
    on_failure: str | None = None
    disabled: bool = False
    doc: str | None = None

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Rule:
        return cls(
            str(body.get("name") or ""),
            str(body.get("kind") or "TRANSFORM").upper(),
            str(body.get("mode") or "WRITEREAD").upper(),
            str(body.get("type") or "").upper(),
            frozenset(body.get("tags") or ()),
            dict(body.get("params") or {}),
            body.get("expr"),
            body.get("onSuccess"),
            body.get("onFailure"),
            bool(body.get("disabled")),
            body.get("doc"),
        )

    @property
    def is_condition(self) -> bool:
        return self.kind == "CONDITION"

    def action(self, mode: Mode, *, failed: bool) -> str:
        """The name of what follows. For both directions it may be `first,second`."""
        named = (self.on_failure if failed else self.on_success) or ""
        if "," in named and self.mode in ("WRITEREAD", "UPDOWN"):
            first, second = named.split(",")[:2]
            named = first if mode in ("WRITE", "UPGRADE") else second
        return named.strip().upper() or ("ERROR" if failed else "NONE")

    def repeats(self, other: Rule) -> bool:
        """Whether both transform the same fields in the same way: only one of them runs."""
        return (
            bool(self.tags)
            and self.kind == other.kind == "TRANSFORM"
            and (self.mode, self.type, self.tags) == (other.mode, other.type, other.tags)
        )


@dataclass(frozen=True, slots=True)
class RuleSet:
    domain: tuple[Rule, ...] = ()
    migration: tuple[Rule, ...] = ()
    encoding: tuple[Rule, ...] = ()
    enable_at: str | None = None

    @classmethod
    def from_json(cls, body: Mapping[str, Any] | None) -> RuleSet:
        if not body:
            return cls()

        def rules(name: str) -> tuple[Rule, ...]:
            return tuple(Rule.from_json(each) for each in body.get(name) or ())

        return cls(
            rules("domainRules"),
            rules("migrationRules"),
            rules("encodingRules"),
            body.get("enableAt"),
        )

    def migrates(self, mode: Mode) -> bool:
        return any(_runs(each, mode) for each in self.migration)


@dataclass(frozen=True, slots=True)
class RuleOverride:
    """What a client decides about rules of one type, whatever the schema says; None: nothing."""

    on_success: str | None = None
    on_failure: str | None = None
    disabled: bool | None = None

    def applied(self, rule: Rule) -> Rule:
        return replace(
            rule,
            on_success=rule.on_success if self.on_success is None else self.on_success,
            on_failure=rule.on_failure if self.on_failure is None else self.on_failure,
            disabled=rule.disabled if self.disabled is None else self.disabled,
        )


_NO_OVERRIDE: Final = RuleOverride()
_OVERRIDES: Final = {"onsuccess": "on_success", "onfailure": "on_failure", "disabled": "disabled"}


def overrides_of(config: Mapping[str, Any]) -> dict[str, RuleOverride]:
    """By type of rule: `rule.executors.TYPE.onSuccess`, `.onFailure` and `.disabled`."""
    given: dict[str, dict[str, Any]] = {}
    for key, value in config.items():
        parts = str(key).split(".")
        if len(parts) != 4 or parts[:2] != ["rule", "executors"] or value is None:
            continue
        name = _OVERRIDES.get(parts[3].lower())
        if name is not None:
            text = str(value).strip()
            given.setdefault(parts[2].upper(), {})[name] = (
                text.lower() == "true" if name == "disabled" else text
            )
    return {type: RuleOverride(**values) for type, values in given.items()}


def rules_to_run(
    rule_set: RuleSet,
    mode: Mode,
    phase: Phase = "domain",
    overrides: Mapping[str, RuleOverride] | None = None,
) -> tuple[Rule, ...]:
    """In order. What was written last is read first, so reading and downgrading go backwards."""
    if rule_set.enable_at not in _HERE:
        return ()
    rules: Sequence[Rule]
    if mode in ("UPGRADE", "DOWNGRADE"):
        rules = rule_set.migration
    else:
        rules = rule_set.encoding if phase == "encoding" else rule_set.domain
    if mode in ("READ", "DOWNGRADE"):
        rules = rules[::-1]
    decided = [(overrides or {}).get(each.type, _NO_OVERRIDE).applied(each) for each in rules]
    return tuple(each for each in decided if not each.disabled and _runs(each, mode))


def _runs(rule: Rule, mode: Mode) -> bool:
    return rule.mode in (mode, _BOTH[mode])


@lru_cache(maxsize=1024)
def _pattern(pattern: str) -> re.Pattern[str]:
    """`?` is a character and `*` any within a name, `**` any across names."""
    parts = []
    for piece in re.findall(r"\*\*|\*|\?|\\.|[^*?\\]+|\\", pattern.replace("**.*", "**")):
        match piece:
            case "**":
                parts.append(".*")
            case "*":
                parts.append(r"[^.]*")
            case "?":
                parts.append(r"[^.]")
            case _:
                parts.append(re.escape(piece[1:] if piece[0] == "\\" and piece[1:] else piece))
    return re.compile("".join(parts))


def matches(name: str, pattern: str) -> bool:
    """Whether a pattern of the metadata's tags means the field."""
    return _pattern(pattern).fullmatch(name) is not None
