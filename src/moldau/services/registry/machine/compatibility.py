"""Whether a schema may follow the versions of its subject."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from moldau.data.schema_language import ParsedSchema
from moldau.services.registry.machine.configs import Config
from moldau.services.registry.machine.parsing import Canonical, SchemaParser
from moldau.services.registry.machine.schemas import Schema, StoredSchema
from moldau.services.registry.machine.scopes import Scopes

__all__ = ["incompatibilities"]

_SCHEMA_LENGTH_SHOWN: Final = 10 * 1024


def incompatibilities(
    new: Canonical,
    previous: Sequence[StoredSchema],
    *,
    config: Config,
    scopes: Scopes,
    parser: SchemaParser,
) -> list[str]:
    """Why `new` cannot be registered after `previous`, oldest first; empty if it can."""
    level = config.compatibility_level or scopes.defaults.compatibility_level
    validates_fields = scopes.validates_fields(config)
    reasons: list[str] = []
    if validates_fields and previous:
        reasons += _removed_reservations(new.schema, previous[-1].schema)
    if config.compatibility_group is not None:
        group = _group(new.schema, config.compatibility_group)
        previous = [
            each for each in previous if _group(each.schema, config.compatibility_group) == group
        ]
    if not level.endswith("_TRANSITIVE"):
        previous = previous[-1:]
    for each in reversed(previous if level != "NONE" else ()):
        found = _against(new.parsed, each, level, config, parser)
        if found:
            reasons += found
            break
    if reasons:
        shown = "true" if validates_fields else "false"
        reasons.append(f"{{validateFields: '{shown}', compatibility: '{level}'}}")
    return reasons


def _against(
    new: ParsedSchema, stored: StoredSchema, level: str, config: Config, parser: SchemaParser
) -> list[str]:
    if new.schema_type != stored.schema.type:
        return ["Incompatible because of different schema type"]
    old = parser.parse(stored)
    lenient = config.compatibility_policy == "LENIENT"
    found: list[str] = []
    if level.startswith(("FORWARD", "FULL")):
        found += old.incompatibilities(
            new, reader_name="old", writer_name="new", lenient=lenient
        )
    if level.startswith(("BACKWARD", "FULL")):
        found += new.incompatibilities(old, lenient=lenient)
    if found:
        found.append(f"{{oldSchemaVersion: {stored.version}}}")
        found.append(_shown(old.canonical_text))
    return found


def _shown(text: str) -> str:
    if len(text) <= _SCHEMA_LENGTH_SHOWN:
        return f"{{oldSchema: '{text}'}}"
    return f"{{oldSchema: <truncated> '{text[:_SCHEMA_LENGTH_SHOWN]}...'}}"


def _removed_reservations(new: Schema, old: Schema) -> list[str]:
    return [
        f"The new schema has reserved field {name} removed from its metadata which is present in "
        "the old schema's metadata."
        for name in old.reserved_fields
        if name not in new.reserved_fields
    ]


def _group(schema: Schema, property: str) -> str | None:
    return None if schema.metadata is None else schema.metadata.get(property)
