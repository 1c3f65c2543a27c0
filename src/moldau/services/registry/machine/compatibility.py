"""Whether a schema may follow the versions of its subject."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from moldau.data.compatibility import CompatibilityLevel, PreviousSchema
from moldau.data.compatibility import incompatibilities as found_by
from moldau.data.schema_language import ParsedSchema
from moldau.services.registry.machine.configs import Config
from moldau.services.registry.machine.parsing import Canonical, SchemaParser
from moldau.services.registry.machine.schemas import AVRO, Schema, StoredSchema
from moldau.services.registry.machine.scopes import Scopes

__all__ = ["incompatibilities"]


@runtime_checkable
class _WithFields(Protocol):
    """A parsed schema that knows its fields; those of Avro and JSON are in their texts."""

    def has_top_level_field(self, name: str) -> bool: ...


def incompatibilities(
    new: Canonical,
    previous: Sequence[StoredSchema],
    *,
    config: Config,
    scopes: Scopes,
    parser: SchemaParser,
) -> list[str]:
    """Why `new` cannot be registered after `previous`, oldest first; empty if it can."""
    level = CompatibilityLevel(config.compatibility_level or scopes.defaults.compatibility_level)
    validates_fields = scopes.validates_fields(config)
    reasons: list[str] = []
    if validates_fields:
        if previous:
            reasons += _removed_reservations(new.schema, previous[-1].schema)
        reasons += _conflicting_fields(new)
    if config.compatibility_group is not None:
        group = _group(new.schema, config.compatibility_group)
        previous = [
            each for each in previous if _group(each.schema, config.compatibility_group) == group
        ]
    if not level.is_transitive:
        previous = previous[-1:]
    reasons += found_by(
        level,
        new.parsed,
        [PreviousSchema(parser.parse(each), each.version) for each in previous],
        lenient=config.compatibility_policy == "LENIENT",
    )
    if reasons:
        shown = "true" if validates_fields else "false"
        reasons.append(f"{{validateFields: '{shown}', compatibility: '{level.value}'}}")
    return reasons


def _removed_reservations(new: Schema, old: Schema) -> list[str]:
    return [
        f"The new schema has reserved field {name} removed from its metadata which is present in "
        "the old schema's metadata."
        for name in old.reserved_fields
        if name not in new.reserved_fields
    ]


def _conflicting_fields(new: Canonical) -> list[str]:
    return [
        f"The new schema has field that conflicts with the reserved field {name}."
        for name in new.schema.reserved_fields
        if _has_field(new.parsed, name)
    ]


def _has_field(parsed: ParsedSchema, name: str) -> bool:
    """Whether the outermost record has a field of this name."""
    if isinstance(parsed, _WithFields):
        return parsed.has_top_level_field(name)
    document = json.loads(parsed.canonical_text)
    if not isinstance(document, dict):
        return False
    if parsed.schema_type == AVRO:
        return any(each["name"] == name for each in document.get("fields", ()))
    properties = document.get("properties")
    return isinstance(properties, dict) and name in properties


def _group(schema: Schema, property: str) -> str | None:
    return None if schema.metadata is None else schema.metadata.get(property)
