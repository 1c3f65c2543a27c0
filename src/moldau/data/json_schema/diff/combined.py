"""Compares allOf, anyOf and oneOf.

Each schema of the smaller side must have a partner of its own on the other side that is compatible:
a matching of maximum size is looked for.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from moldau.data.json_schema.diff.context import Comparing, Context
from moldau.data.json_schema.diff.difference import Difference
from moldau.data.json_schema.diff.difference import DifferenceType as T
from moldau.data.json_schema.diff.matching import maximum_matching
from moldau.data.json_schema.model import CombinedSchema, Criterion, SchemaNode

#: A comparison that returns whether it has found a compatible schema; nothing is added if not.
ComparingOneOf = Generator[tuple[SchemaNode, SchemaNode], Sequence[Difference], bool]


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
    edges: dict[tuple[int, int], Context] = {}
    for row, schema in enumerate(before):
        with ctx.at(f"{original.criterion.value}/{row}"):
            for column, other in enumerate(after):
                inner = ctx.sub()
                yield from inner.compare(schema, other)
                if inner.is_compatible:
                    edges[row, column] = inner
    pairs = maximum_matching(len(before), len(after), edges)
    for pair in pairs:
        ctx.extend(edges[pair])
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


def compare_to_combined(
    ctx: Context, original: SchemaNode, update: CombinedSchema
) -> ComparingOneOf:
    """Whether one schema of an anyOf or oneOf takes all that another schema did."""
    single = len(update.subschemas) == 1
    if not single and update.criterion is Criterion.ALL:
        return False
    for each in update.subschemas:
        inner = ctx.sub()
        yield from inner.compare(original, each)
        if inner.is_compatible:
            ctx.extend(inner)
            if not single:
                ctx.add(T.SUM_TYPE_EXTENDED)
            return True
    return False


def compare_from_combined(
    ctx: Context, original: CombinedSchema, update: SchemaNode
) -> ComparingOneOf:
    """Whether a schema takes all that one schema of an allOf did."""
    single = len(original.subschemas) == 1
    if not single and original.criterion is not Criterion.ALL:
        return False
    for each in original.subschemas:
        inner = ctx.sub()
        yield from inner.compare(each, update)
        if inner.is_compatible:
            ctx.extend(inner)
            if not single:
                ctx.add(T.PRODUCT_TYPE_NARROWED)
            return True
    return False
