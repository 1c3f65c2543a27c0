"""Compares allOf, anyOf and oneOf.

Each schema of the smaller side must have a partner of its own on the other side that is compatible:
a matching of maximum size is looked for.
"""

from __future__ import annotations

from collections.abc import Generator

from moldau.data.json_schema.diff.context import Compare, Comparing, Context, Found, Trying
from moldau.data.json_schema.diff.difference import DifferenceType as T
from moldau.data.json_schema.diff.matching import maximum_matching
from moldau.data.json_schema.model import CombinedSchema, Criterion, SchemaNode

_Matching = Generator[Compare, Found, dict[int, Found]]


def compare_combined(ctx: Context, original: CombinedSchema, update: CombinedSchema) -> Comparing:
    change = _criterion_change(original, update)
    if change is not None:
        ctx.add(change)
    if change is T.COMBINED_TYPE_CHANGED:
        return
    before = ctx.shared.distinct_subschemas(original)
    after = ctx.shared.distinct_subschemas(update)
    if len(before) < len(after):
        product = update.criterion is Criterion.ALL
        ctx.add(T.PRODUCT_TYPE_EXTENDED if product else T.SUM_TYPE_EXTENDED)
    elif len(before) > len(after):
        product = original.criterion is Criterion.ALL
        ctx.add(T.PRODUCT_TYPE_NARROWED if product else T.SUM_TYPE_NARROWED)
    same = _same(ctx, before, after)
    taken = set(same.values())
    left = {row: each for row, each in enumerate(before) if row not in same}
    right = {column: each for column, each in enumerate(after) if column not in taken}
    matched = yield from _matched(left, right)
    smaller = min(len(before), len(after))
    if same and len(same) + len(matched) < smaller:
        # Those that are the same may have to take other partners.
        matched = yield from _matched(dict(enumerate(before)), dict(enumerate(after)))
        same = {}
    for row, found in sorted(matched.items()):
        with ctx.at(f"{original.criterion.value}/{row}"):
            ctx.take(found)
    if len(same) + len(matched) < smaller:
        ctx.add(T.COMBINED_TYPE_SUBSCHEMAS_CHANGED)


def _same(ctx: Context, before: list[SchemaNode], after: list[SchemaNode]) -> dict[int, int]:
    """Schemas that have not changed, by position: most of them, and not worth comparing."""
    columns = {ctx.shared.content(each): column for column, each in enumerate(after)}
    found: dict[int, int] = {}
    for row, each in enumerate(before):
        column = columns.pop(ctx.shared.content(each), None)
        if column is not None:
            found[row] = column
    return found


def _matched(left: dict[int, SchemaNode], right: dict[int, SchemaNode]) -> _Matching:
    """What was found between each schema on the left and its partner."""
    rows, columns = list(left), list(right)
    edges: dict[tuple[int, int], Found] = {}
    for row, each in enumerate(left.values()):
        for column, other in enumerate(right.values()):
            found = yield Compare(each, other, trial=True)
            if found.compatible:
                edges[row, column] = found
    pairs = maximum_matching(len(rows), len(columns), edges)
    return {rows[row]: edges[row, column] for row, column in pairs}


def _criterion_change(original: CombinedSchema, update: CombinedSchema) -> T | None:
    if original.criterion is update.criterion:
        return None
    was_single, is_single = len(original.subschemas) == 1, len(update.subschemas) == 1
    if (
        update.criterion is Criterion.ANY
        or (was_single and (is_single or update.criterion is Criterion.ONE))
        or (is_single and original.criterion is Criterion.ALL)
    ):
        return T.COMBINED_TYPE_EXTENDED
    return T.COMBINED_TYPE_CHANGED


def compare_to_combined(ctx: Context, original: SchemaNode, update: CombinedSchema) -> Trying:
    """Whether one schema of an anyOf or oneOf takes all that another schema did."""
    single = len(update.subschemas) == 1
    if not single and update.criterion is Criterion.ALL:
        return False
    for each in update.subschemas:
        found = yield Compare(original, each, trial=True)
        if found.compatible:
            ctx.take(found)
            if not single:
                ctx.add(T.SUM_TYPE_EXTENDED)
            return True
    return False


def compare_from_combined(ctx: Context, original: CombinedSchema, update: SchemaNode) -> Trying:
    """Whether a schema takes all that one schema of an allOf did."""
    single = len(original.subschemas) == 1
    if not single and original.criterion is not Criterion.ALL:
        return False
    for each in original.subschemas:
        found = yield Compare(each, update, trial=True)
        if found.compatible:
            ctx.take(found)
            if not single:
                ctx.add(T.PRODUCT_TYPE_NARROWED)
            return True
    return False
