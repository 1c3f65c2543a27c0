"""Runs comparisons that ask for inner comparisons, on a stack of its own.

A pair of schemas is compared once; other places with the same pair get the same differences. A pair
that is met again inside itself is taken for compatible at first. If that was wrong, a further pass
knows it: passes are repeated until the set of incompatible pairs no longer grows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from moldau.data.json_schema.diff.context import Comparing, Context
from moldau.data.json_schema.diff.difference import Difference, DifferenceType
from moldau.data.json_schema.diff.shared import Shared
from moldau.data.json_schema.model import ReferenceSchema, SchemaNode

Comparator = Callable[[Context, SchemaNode, SchemaNode], Comparing]
_Pair = tuple[int, int]
_Found = Sequence[Difference]


def run(
    comparator: Comparator,
    original: SchemaNode,
    update: SchemaNode,
    compatible: Collection[DifferenceType],
) -> _Found:
    """The differences of two schemas; SchemaError past the limits in `shared.py`."""
    shared = Shared(compatible)
    incompatible: dict[_Pair, _Found] = {}
    while True:
        run_ = _Pass(comparator, shared, incompatible)
        found = run_.compare(original, update)
        now = run_.incompatible_pairs()
        if not run_.has_assumed or now.keys() == incompatible.keys():
            return found
        incompatible = now


class _Pass:
    def __init__(
        self, comparator: Comparator, shared: Shared, incompatible: dict[_Pair, _Found]
    ) -> None:
        self._comparator = comparator
        self._shared = shared
        self._incompatible = incompatible
        self._known: dict[_Pair, _Found] = {}
        self._stack: list[tuple[_Pair, Context, Comparing]] = []
        self._in_progress: set[_Pair] = set()
        self.has_assumed = False

    def compare(self, original: SchemaNode, update: SchemaNode) -> _Found:
        answer = self._answer(original, update)
        while self._stack:
            pair, ctx, comparing = self._stack[-1]
            try:
                inner = comparing.send(answer) if answer is not None else next(comparing)
            except StopIteration:
                self._stack.pop()
                self._in_progress.discard(pair)
                answer = self._known[pair] = tuple(ctx.differences)
                continue
            answer = self._answer(*inner)
        return answer if answer is not None else ()

    def incompatible_pairs(self) -> dict[_Pair, _Found]:
        return {
            pair: found
            for pair, found in self._known.items()
            if not self._shared.are_compatible(found)
        }

    def _answer(self, original: SchemaNode, update: SchemaNode) -> _Found | None:
        """The differences of a pair if they are known; else their comparison is begun."""
        self._shared.count_step()
        original, update = _target(original), _target(update)
        pair = (id(original), id(update))
        known = self._known.get(pair)
        if known is not None:
            return known
        if pair in self._in_progress:
            if pair not in self._incompatible:
                self.has_assumed = True
            return self._incompatible.get(pair, ())
        ctx = Context(self._shared)
        self._stack.append((pair, ctx, self._comparator(ctx, original, update)))
        self._in_progress.add(pair)
        return None


def _target(schema: SchemaNode) -> SchemaNode:
    return schema.target if isinstance(schema, ReferenceSchema) else schema
