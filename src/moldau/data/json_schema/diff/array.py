"""Compares arrays: the items, by position and all, what is open, sizes."""

from __future__ import annotations

from decimal import Decimal

from moldau.data.json_schema.diff.content_model import (
    compare_unevaluated,
    is_open_array,
    schema_for_item,
)
from moldau.data.json_schema.diff.context import Compare, Comparing, Context
from moldau.data.json_schema.diff.difference import DifferenceType as T
from moldau.data.json_schema.diff.numbers import compare_bound
from moldau.data.json_schema.model import ArraySchema, EmptySchema, FalseSchema, SchemaNode


def compare_arrays(ctx: Context, original: ArraySchema, update: ArraySchema) -> Comparing:
    with ctx.at("items"):
        yield from ctx.compare(original.all_items, update.all_items)
    yield from _compare_positions(ctx, original, update)
    yield from _compare_additional(ctx, original, update)
    yield from compare_unevaluated(
        ctx,
        "unevaluatedItems",
        "UNEVALUATED_ITEMS",
        original.unevaluated_items,
        update.unevaluated_items,
    )
    compare_bound(ctx, "maxItems", "MAX_ITEMS", original.max_items, update.max_items)
    compare_bound(ctx, "minItems", "MIN_ITEMS", original.min_items, update.min_items)
    if original.unique_items and not update.unique_items:
        ctx.add(T.UNIQUE_ITEMS_REMOVED, "uniqueItems")
    elif update.unique_items and not original.unique_items:
        ctx.add(T.UNIQUE_ITEMS_ADDED, "uniqueItems")
    for keyword, name in (("maxContains", "MAX_CONTAINS"), ("minContains", "MIN_CONTAINS")):
        compare_bound(ctx, keyword, name, _count(original, keyword), _count(update, keyword))


def _compare_positions(ctx: Context, original: ArraySchema, update: ArraySchema) -> Comparing:
    before, after = original.items or [], update.items or []
    common = min(len(before), len(after))
    for position in range(max(len(before), len(after))):
        with ctx.at(f"items/{position}"):
            if position < common:
                yield from ctx.compare(before[position], after[position])
            elif position < len(before):
                yield from _compare_removed(ctx, before[position], update)
            else:
                yield from _compare_added(ctx, original, after[position])


def _compare_removed(ctx: Context, before: SchemaNode, update: ArraySchema) -> Comparing:
    if is_open_array(update):
        ctx.add(T.ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL)
        return
    covering = schema_for_item(update)
    if covering is not None:
        found = yield Compare(before, covering)
        ctx.take(found)
        if found.compatible:
            ctx.add(T.ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL)
        else:
            ctx.add(T.ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL)
    elif isinstance(before, FalseSchema):
        ctx.add(T.ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL)
    else:
        ctx.add(T.ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL)


def _compare_added(ctx: Context, original: ArraySchema, after: SchemaNode) -> Comparing:
    if is_open_array(original):
        if isinstance(after, EmptySchema):
            ctx.add(T.ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL)
        else:
            ctx.add(T.ITEM_ADDED_TO_OPEN_CONTENT_MODEL)
        return
    covering = schema_for_item(original)
    if covering is None:
        ctx.add(T.ITEM_ADDED_TO_CLOSED_CONTENT_MODEL)
        return
    found = yield Compare(covering, after)
    ctx.take(found)
    if found.compatible:
        ctx.add(T.ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL)
    else:
        ctx.add(T.ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL)


def _compare_additional(ctx: Context, original: ArraySchema, update: ArraySchema) -> Comparing:
    before, after = original.additional_items, update.additional_items
    with ctx.at("additionalItems"):
        if original.permits_additional_items and not update.permits_additional_items:
            ctx.add(T.ADDITIONAL_ITEMS_REMOVED)
        elif update.permits_additional_items and not original.permits_additional_items:
            ctx.add(T.ADDITIONAL_ITEMS_ADDED)
        elif before is None and after is not None:
            ctx.add(T.ADDITIONAL_ITEMS_NARROWED)
        elif after is None and before is not None:
            ctx.add(T.ADDITIONAL_ITEMS_EXTENDED)
        else:
            yield from ctx.compare(before, after)


def _count(schema: ArraySchema, keyword: str) -> int | None:
    value = schema.unprocessed.get(keyword)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    return int(value)
