"""What all comparisons of one run share: the policy, the limits, and what is computed once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import jsonschema_rs

from moldau.data.json_schema.diff.difference import Difference, DifferenceType
from moldau.data.json_schema.equality import SchemaKeys
from moldau.data.json_schema.model import CombinedSchema, SchemaNode
from moldau.data.schema_language import SchemaError

#: Comparisons of inner schemas in one run, and how many of them may be inside of one another.
STEPS_MAX = 100_000
DEPTH_MAX = 20_000
#: Differences, each counted once more per 64 characters of its path.
DIFFERENCES_MAX = 100_000
_CHARACTERS_PER_UNIT = 64

_REGEX_LIMITS = jsonschema_rs.FancyRegexOptions(backtrack_limit=10_000, size_limit=1_000_000)


class TooLargeToCompare(SchemaError):
    """A comparison that takes more than the limits allow."""


class Shared:
    """Raises TooLargeToCompare past the limits.

    `brief` is for what would take too long: the first incompatible difference is all that is looked
    for, and schemas with the same keywords and targets of references are taken for one. Whether two
    schemas are compatible does not depend on it.
    """

    def __init__(self, compatible: Collection[DifferenceType], *, brief: bool) -> None:
        self._compatible = compatible
        self.brief = brief
        self._steps_left = STEPS_MAX
        self._differences_left = DIFFERENCES_MAX
        self._keys = SchemaKeys(lambda reference: reference.ref)
        #: The same number for schemas that are the same in all they say and refer to.
        self.content: Callable[[SchemaNode], int] = SchemaKeys(
            lambda reference: id(reference.target)
        ).key
        #: What a schema is known by while both models exist.
        self.identity: Callable[[SchemaNode], int] = self.content if brief else id
        self._distinct: dict[int, list[SchemaNode]] = {}
        self._patterns: dict[str, jsonschema_rs.Draft7Validator | None] = {}

    def are_compatible(self, differences: Iterable[Difference]) -> bool:
        return all(each.type in self._compatible for each in differences)

    def count_step(self) -> None:
        self._steps_left -= 1
        if self._steps_left < 0:
            raise TooLargeToCompare(
                f"The schemas are too large to compare: more than {STEPS_MAX} pairs of schemas. "
                "Use fewer alternatives in oneOf, anyOf and allOf"
            )

    def charge(self, difference: Difference) -> None:
        self._differences_left -= 1 + len(difference.path) // _CHARACTERS_PER_UNIT
        if self._differences_left < 0:
            raise TooLargeToCompare(
                f"The schemas have more than {DIFFERENCES_MAX} differences: "
                "a changed definition is used in too many places"
            )

    def distinct_subschemas(self, combined: CombinedSchema) -> list[SchemaNode]:
        """The schemas of a combined one, without those that say the same as an earlier one."""
        found = self._distinct.get(id(combined))
        if found is None:
            first: dict[int, SchemaNode] = {}
            for each in combined.subschemas:
                first.setdefault(self._keys.key(each), each)
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
