"""Runs comparisons that ask for inner comparisons, on a stack of its own.

A pair of schemas is compared once; other places with the same pair get the same differences. A pair
that is met again inside itself is taken for compatible at first. If that was wrong, a further pass
knows it: passes are repeated until the set of incompatible pairs no longer grows.

Alternatives of combined schemas are compared only for whether they are compatible: such a trial
ends at the first difference that is not, and so do the comparisons inside it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from moldau.data.json_schema.diff.context import Compare, Comparing, Context, Found, Rejected
from moldau.data.json_schema.diff.difference import Difference, DifferenceType
from moldau.data.json_schema.diff.shared import DEPTH_MAX, Shared, TooLargeToCompare
from moldau.data.json_schema.model import ReferenceSchema, SchemaNode

Comparator = Callable[[Context, SchemaNode, SchemaNode], Comparing]
_Pair = tuple[int, int]

_NOTHING = Found((), True)


def run(
    comparator: Comparator,
    original: SchemaNode,
    update: SchemaNode,
    compatible: Collection[DifferenceType],
) -> Sequence[Difference]:
    """The differences of two schemas; of very large ones only the first that is incompatible.

    SchemaError past the limits in `shared.py`.
    """
    try:
        return _run(comparator, original, update, Shared(compatible, brief=False))
    except TooLargeToCompare:
        return _run(comparator, original, update, Shared(compatible, brief=True))


def _run(
    comparator: Comparator, original: SchemaNode, update: SchemaNode, shared: Shared
) -> Sequence[Difference]:
    incompatible: dict[_Pair, Found] = {}
    while True:
        pass_ = _Pass(comparator, shared, incompatible)
        found = pass_.compare(original, update)
        now = pass_.incompatible_pairs()
        if not pass_.has_assumed or now.keys() == incompatible.keys():
            return found.differences
        incompatible = now


class _Pass:
    def __init__(
        self, comparator: Comparator, shared: Shared, incompatible: dict[_Pair, Found]
    ) -> None:
        self._comparator = comparator
        self._shared = shared
        self._incompatible = incompatible
        self._known: dict[_Pair, Found] = {}
        self._rejected: dict[_Pair, Found] = {}
        self._stack: list[tuple[_Pair, Context, Comparing]] = []
        self._in_progress: set[_Pair] = set()
        self.has_assumed = False

    def compare(self, original: SchemaNode, update: SchemaNode) -> Found:
        answer = self._answer(Compare(original, update, trial=self._shared.brief))
        while self._stack:
            pair, ctx, comparing = self._stack[-1]
            try:
                request = comparing.send(answer) if answer is not None else next(comparing)
            except StopIteration:
                answer = self._known[pair] = ctx.found
            except Rejected as rejected:
                answer = self._rejected[pair] = Found((rejected.difference,), False)
            else:
                answer = self._answer(request, in_trial=ctx.trial)
                continue
            self._stack.pop()
            self._in_progress.discard(pair)
        return answer or _NOTHING

    def incompatible_pairs(self) -> dict[_Pair, Found]:
        known = {pair: found for pair, found in self._known.items() if not found.compatible}
        return self._rejected | known

    def _answer(self, request: Compare, *, in_trial: bool = False) -> Found | None:
        """What is known of a pair; if nothing is, its comparison is begun."""
        self._shared.count_step()
        trial = in_trial or request.trial
        original, update = _target(request.original), _target(request.update)
        pair = (self._shared.identity(original), self._shared.identity(update))
        known = self._known.get(pair) or (self._rejected.get(pair) if trial else None)
        if known is not None:
            return known
        if pair in self._in_progress:
            if pair not in self._incompatible:
                self.has_assumed = True
            return self._incompatible.get(pair, _NOTHING)
        if len(self._stack) >= DEPTH_MAX:
            raise TooLargeToCompare(
                f"The schemas refer to one another more than {DEPTH_MAX} levels deep"
            )
        ctx = Context(self._shared, trial=trial)
        self._stack.append((pair, ctx, self._comparator(ctx, original, update)))
        self._in_progress.add(pair)
        return None


def _target(schema: SchemaNode) -> SchemaNode:
    return schema.target if isinstance(schema, ReferenceSchema) else schema
