"""The registry's levels of compatibility, for schemas of any language."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from moldau.data.schema_language import DIFFERENT_SCHEMA_TYPE, ParsedSchema

#: Confluent's limit on how much of the old schema a message repeats.
_SHOWN_MAX = 10 * 1024


class CompatibilityLevel(Enum):
    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def is_transitive(self) -> bool:
        """Whether all earlier versions count, not only the latest."""
        return self.value.endswith("_TRANSITIVE")

    @property
    def new_reads_old(self) -> bool:
        return self.value.startswith(("BACKWARD", "FULL"))

    @property
    def old_reads_new(self) -> bool:
        return self.value.startswith(("FORWARD", "FULL"))


@dataclass(frozen=True, slots=True)
class PreviousSchema:
    """A version that a subject has."""

    schema: ParsedSchema
    version: int | None = None


def incompatibilities(
    level: CompatibilityLevel,
    new: ParsedSchema,
    previous: Sequence[PreviousSchema],
    *,
    lenient: bool = False,
) -> list[str]:
    """Why `new` may not follow the versions in `previous`, oldest first; empty if it may.

    The newest version is compared first, and the first that does not fit ends it. What was compared
    comes last in the list, as Confluent's registry says it.
    """
    if level is CompatibilityLevel.NONE:
        return []
    compared = previous if level.is_transitive else previous[-1:]
    for each in reversed(compared):
        found = _between(level, new, each, lenient=lenient)
        if found:
            return found
    return []


def _between(
    level: CompatibilityLevel, new: ParsedSchema, previous: PreviousSchema, *, lenient: bool
) -> list[str]:
    old = previous.schema
    if new.schema_type != old.schema_type:
        return [DIFFERENT_SCHEMA_TYPE]
    shown = _shown(previous)
    forward: list[str] = []
    if level.old_reads_new:
        forward = old.incompatibilities(new, reader_name="old", writer_name="new", lenient=lenient)
        if forward and not level.new_reads_old:
            forward += shown
    backward: list[str] = []
    if level.new_reads_old:
        backward = new.incompatibilities(old, reader_name="new", writer_name="old", lenient=lenient)
        if backward:
            backward += shown
    return forward + backward


def _shown(previous: PreviousSchema) -> list[str]:
    text = previous.schema.canonical_text
    shown = f"'{text}'" if len(text) <= _SHOWN_MAX else f"<truncated> '{text[:_SHOWN_MAX]}...'"
    lines = [f"{{oldSchema: {shown}}}"]
    if previous.version is not None:
        lines.insert(0, f"{{oldSchemaVersion: {previous.version}}}")
    return lines
