"""What all comparisons of one run share: the policy, the limits, and what is computed once."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable

import jsonschema_rs

from moldau.data.json_schema.diff.difference import Difference, DifferenceType
from moldau.data.json_schema.equality import schema_key
from moldau.data.json_schema.model import CombinedSchema, SchemaNode
from moldau.data.schema_language import SchemaError

#: Comparisons of inner schemas in one run.
STEPS_MAX = 300_000
#: Differences, each counted once more per 64 characters of its path.
DIFFERENCES_MAX = 100_000
_CHARACTERS_PER_UNIT = 64

_REGEX_LIMITS = jsonschema_rs.FancyRegexOptions(backtrack_limit=10_000, size_limit=1_000_000)


class Shared:
    """Raises SchemaError once a comparison takes more than the limits allow."""

    def __init__(self, compatible: Collection[DifferenceType]) -> None:
        self._compatible = compatible
        self._steps_left = STEPS_MAX
        self._differences_left = DIFFERENCES_MAX
        self._distinct: dict[int, list[SchemaNode]] = {}
        self._patterns: dict[str, jsonschema_rs.Draft7Validator | None] = {}

    def are_compatible(self, differences: Iterable[Difference]) -> bool:
        return all(each.type in self._compatible for each in differences)

    def count_step(self, count: int = 1) -> None:
        self._steps_left -= count
        if self._steps_left < 0:
            raise SchemaError(
                f"The schemas are too large to compare: more than {STEPS_MAX} pairs of schemas. "
                "Use fewer alternatives in oneOf, anyOf and allOf"
            )

    def charge(self, difference: Difference) -> None:
        self._differences_left -= 1 + len(difference.path) // _CHARACTERS_PER_UNIT
        if self._differences_left < 0:
            raise SchemaError(
                f"The schemas have more than {DIFFERENCES_MAX} differences: "
                "a changed definition is used in too many places"
            )

    def distinct_subschemas(self, combined: CombinedSchema) -> list[SchemaNode]:
        """The schemas of a combined one, without those that say the same as an earlier one."""
        found = self._distinct.get(id(combined))
        if found is None:
            first: dict[Hashable, SchemaNode] = {}
            for each in combined.subschemas:
                first.setdefault(schema_key(each), each)
            found = self._distinct[id(combined)] = list(first.values())
        return found

    def matches(self, pattern: str, name: str) -> bool:
        """Whether a pattern is found in a name; False if it takes too long to tell."""
        self.count_step()
        if pattern not in self._patterns:
            try:
                self._patterns[pattern] = jsonschema_rs.Draft7Validator(
                    {"pattern": pattern}, offline=True, pattern_options=_REGEX_LIMITS
                )
            except jsonschema_rs.ValidationError:
                self._patterns[pattern] = None
        compiled = self._patterns[pattern]
        return compiled is not None and compiled.is_valid(name)
