"""Data contracts: metadata and rules that belong to a schema, and how defaults merge with them.

Everything is sorted where Confluent sorts it, so that equal contracts have equal hashes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from moldau.services.registry.machine.errors import InvalidRequest, invalid_rule_set
from moldau.services.registry.machine.json_fields import (
    JsonObject,
    boolean_field,
    list_field,
    object_field,
    text_field,
    text_list,
    text_map,
)

__all__ = ["Metadata", "Rule", "RuleSet", "merge_metadata", "merge_rule_sets"]

_VERSION_PROPERTY: Final = "confluent:version"
_RESERVED_PROPERTY: Final = "confluent:reserved"
_KINDS: Final = ("TRANSFORM", "CONDITION")
_MIGRATION_MODES: Final = ("UPGRADE", "DOWNGRADE", "UPDOWN")
_RECORD_MODES: Final = ("WRITE", "READ", "WRITEREAD")
_BOTH_WAYS: Final = ("WRITEREAD", "UPDOWN")
_ENVIRONMENTS: Final = ("ALL", "CLIENT", "GATEWAY", "SERVER", "NONE")
_NAME_LENGTH_MAX: Final = 256
_KEK_NAME: Final = "encrypt.kek.name"
_KMS_KEY_ID: Final = "encrypt.kms.key.id"
_KMS_TYPE: Final = "encrypt.kms.type"
_ARN: Final = "arn:"


@dataclass(frozen=True, slots=True)
class Metadata:
    """Tags of paths, properties, and which properties are sensitive."""

    tags: tuple[tuple[str, tuple[str, ...]], ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    sensitive: tuple[str, ...] = ()

    @classmethod
    def make(
        cls,
        tags: Iterable[tuple[str, Iterable[str]]] = (),
        properties: Iterable[tuple[str, str]] = (),
        sensitive: Iterable[str] = (),
    ) -> Metadata:
        return cls(
            tuple((key, tuple(sorted(set(each)))) for key, each in sorted(dict(tags).items())),
            tuple(sorted(dict(properties).items())),
            tuple(sorted(set(sensitive))),
        )

    @classmethod
    def from_json(cls, source: JsonObject | None) -> Metadata | None:
        if source is None:
            return None
        tags = object_field(source, "tags") or {}
        return cls.make(
            [(key, text_list(each, "tags")) for key, each in tags.items() if each is not None],
            text_map(source, "properties").items(),
            text_list(source.get("sensitive") or [], "sensitive"),
        )

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.tags:
            found["tags"] = {key: list(each) for key, each in self.tags}
        if self.properties:
            found["properties"] = dict(self.properties)
        if self.sensitive:
            found["sensitive"] = list(self.sensitive)
        return found

    def hashed(self) -> Iterator[str]:
        """The texts that make up the hash, in order."""
        for key, values in self.tags:
            yield key
            yield from values
        for key, value in self.properties:
            yield key
            yield value
        yield from self.sensitive

    def get(self, name: str) -> str | None:
        return dict(self.properties).get(name)

    @property
    def version(self) -> str | None:
        """`confluent:version`, which makes a version of its own of an equal schema."""
        return self.get(_VERSION_PROPERTY)

    @property
    def reserved_fields(self) -> tuple[str, ...]:
        """Names that no field may have: `confluent:reserved`."""
        text = self.get(_RESERVED_PROPERTY) or ""
        return tuple(each.strip() for each in text.split(",") if each.strip())

    def with_version(self, version: int) -> Metadata:
        properties = {**dict(self.properties), _VERSION_PROPERTY: str(version)}
        return replace(self, properties=tuple(sorted(properties.items())))

    def without_version(self) -> Metadata:
        kept = tuple(each for each in self.properties if each[0] != _VERSION_PROPERTY)
        return replace(self, properties=kept)


def merge_metadata(old: Metadata | None, new: Metadata | None) -> Metadata | None:
    """Both, the newer one wins."""
    if old is None or new is None:
        return new if old is None else old
    return Metadata.make(
        [*old.tags, *new.tags],
        [*old.properties, *new.properties],
        [*old.sensitive, *new.sensitive],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    name: str | None
    doc: str | None
    kind: str
    mode: str
    type: str | None
    tags: tuple[str, ...]
    params: tuple[tuple[str, str], ...]
    expr: str | None
    on_success: str | None
    on_failure: str | None
    disabled: bool

    @classmethod
    def from_json(cls, source: object) -> Rule:
        if not isinstance(source, dict):
            raise InvalidRequest("a rule must be an object")
        kind = text_field(source, "kind") or "TRANSFORM"
        mode = text_field(source, "mode") or "WRITEREAD"
        _check_word("kind", kind, _KINDS)
        _check_word("mode", mode, _MIGRATION_MODES + _RECORD_MODES)
        return cls(
            name=text_field(source, "name"),
            doc=text_field(source, "doc"),
            kind=kind,
            mode=mode,
            type=text_field(source, "type"),
            tags=tuple(sorted(set(text_list(source.get("tags") or [], "tags")))),
            params=tuple(sorted(text_map(source, "params").items())),
            expr=text_field(source, "expr"),
            on_success=text_field(source, "onSuccess"),
            on_failure=text_field(source, "onFailure"),
            disabled=boolean_field(source, "disabled") or False,
        )

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "name": self.name,
            "doc": self.doc,
            "kind": self.kind,
            "mode": self.mode,
            "type": self.type,
            "tags": list(self.tags),
            "params": dict(self.params),
            "expr": self.expr,
            "onSuccess": self.on_success,
            "onFailure": self.on_failure,
        }
        found = {key: value for key, value in found.items() if value}
        found["disabled"] = self.disabled
        return found

    def hashed(self) -> Iterator[str]:
        yield from (self.name or "", self.doc or "", self.kind, self.mode, self.type or "")
        yield from self.tags
        for key, value in self.params:
            yield key
            yield value
        yield from (self.expr or "", self.on_success or "", self.on_failure or "")
        if self.disabled:
            yield "\x01"

    def with_kek(self) -> Rule:
        """A rule that names a key of a KMS, and no KEK: its KEK is named after the key."""
        params = dict(self.params)
        key_id = params.get(_KMS_KEY_ID)
        if key_id is None:
            return self
        name = "".join(
            each if each.isalnum() or each in "_-" else "-" for each in key_id.removeprefix(_ARN)
        )
        params.setdefault(_KEK_NAME, name)
        if key_id.startswith(_ARN):
            params.setdefault(_KMS_TYPE, "aws-kms")
        return replace(self, params=tuple(sorted(params.items())))

    def check(self) -> None:
        if self.name is None:
            raise invalid_rule_set("Missing rule name")
        if not self.name:
            raise invalid_rule_set("Empty rule name")
        if len(self.name) > _NAME_LENGTH_MAX:
            raise invalid_rule_set("Rule name too long")
        if not (self.name[0].isalpha() or self.name[0] == "_"):
            raise invalid_rule_set(f"Illegal initial character in rule name: {self.name}")
        if not all(each.isalnum() or each in "_-" for each in self.name[1:]):
            raise invalid_rule_set(f"Illegal character in rule name: {self.name}")
        if self.type is None:
            raise invalid_rule_set("Missing rule type")
        for action in (self.on_success, self.on_failure):
            if self.mode not in _BOTH_WAYS and action is not None and "," in action:
                raise invalid_rule_set("Multiple actions only valid with WRITEREAD and UPDOWN")


@dataclass(frozen=True, slots=True)
class RuleSet:
    migration_rules: tuple[Rule, ...] = ()
    domain_rules: tuple[Rule, ...] = ()
    encoding_rules: tuple[Rule, ...] = ()
    enable_at: str | None = None

    @classmethod
    def from_json(cls, source: JsonObject | None) -> RuleSet | None:
        if source is None:
            return None
        enable_at = text_field(source, "enableAt")
        if enable_at is not None:
            _check_word("enableAt", enable_at, _ENVIRONMENTS)
        return cls(
            tuple(map(Rule.from_json, list_field(source, "migrationRules"))),
            tuple(map(Rule.from_json, list_field(source, "domainRules"))),
            tuple(map(Rule.from_json, list_field(source, "encodingRules"))),
            enable_at,
        )

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "migrationRules": [each.to_json() for each in self.migration_rules],
            "domainRules": [each.to_json() for each in self.domain_rules],
            "encodingRules": [each.to_json() for each in self.encoding_rules],
            "enableAt": self.enable_at,
        }
        return {key: value for key, value in found.items() if value}

    @property
    def rules(self) -> tuple[Rule, ...]:
        return self.migration_rules + self.domain_rules + self.encoding_rules

    def hashed(self) -> Iterator[str]:
        for rule in self.rules:
            yield from rule.hashed()
        yield self.enable_at or ""

    def has_type(self, type: str) -> bool:
        return any(rule.type == type for rule in self.rules)

    def check(self) -> None:
        """Raise if a rule is not one, or not where it may be."""
        names: set[str | None] = set()
        for title, rules, modes in (
            ("Migration", self.migration_rules, _MIGRATION_MODES),
            ("Domain", self.domain_rules, _RECORD_MODES),
            ("Encoding", self.encoding_rules, _RECORD_MODES),
        ):
            for rule in rules:
                if rule.name in names:
                    raise invalid_rule_set(f"Found rule with duplicate name '{rule.name}'")
                names.add(rule.name)
                rule.check()
                if rule.mode not in modes:
                    raise invalid_rule_set(f"{title} rules can only be {', '.join(modes)}")

    def with_keks(self) -> RuleSet:
        return replace(self, domain_rules=tuple(each.with_kek() for each in self.domain_rules))

    def without(self, names: Iterable[str]) -> RuleSet:
        gone = set(names)
        return RuleSet(
            tuple(rule for rule in self.migration_rules if rule.name not in gone),
            tuple(rule for rule in self.domain_rules if rule.name not in gone),
            tuple(rule for rule in self.encoding_rules if rule.name not in gone),
            self.enable_at,
        )


def merge_rule_sets(old: RuleSet | None, new: RuleSet | None) -> RuleSet | None:
    """Both; a new rule replaces the old one of its name."""
    if old is None or new is None:
        return new if old is None else old
    return RuleSet(
        _merge_rules(old.migration_rules, new.migration_rules),
        _merge_rules(old.domain_rules, new.domain_rules),
        _merge_rules(old.encoding_rules, new.encoding_rules),
        new.enable_at or old.enable_at,
    )


def _merge_rules(old: tuple[Rule, ...], new: tuple[Rule, ...]) -> tuple[Rule, ...]:
    names = {rule.name for rule in new}
    return tuple(rule for rule in old if rule.name not in names) + new


def _check_word(field: str, word: str, allowed: tuple[str, ...]) -> None:
    if word not in allowed:
        raise InvalidRequest(f"field {field!r} must be one of {', '.join(allowed)}, not {word!r}")
