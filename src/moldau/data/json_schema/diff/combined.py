"""Compares allOf, anyOf and oneOf.

Each schema of the smaller side must have a partner of its own on the other side that is compatible:
a matching of maximum size is looked for.
"""

from __future__ import annotations

from moldau.data.json_schema.diff.context import Compare, Comparing, Context, Found, Trying
from moldau.data.json_schema.diff.difference import DifferenceType as T
from moldau.data.json_schema.diff.matching import maximum_matching
from moldau.data.json_schema.model import CombinedSchema, Criterion, SchemaNode


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
    edges: dict[tuple[int, int], Found] = {}
    for row, schema in enumerate(before):
        for column, other in enumerate(after):
            found = yield Compare(schema, other, trial=True)
            if found.compatible:
                edges[row, column] = found
    pairs = maximum_matching(len(before), len(after), edges)
    for row, column in pairs:
        with ctx.at(f"{original.criterion.value}/{row}"):
            ctx.take(edges[row, column])
    if len(pairs) < min(len(before), len(after)):
        ctx.add(T.COMBINED_TYPE_SUBSCHEMAS_CHANGED)


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
