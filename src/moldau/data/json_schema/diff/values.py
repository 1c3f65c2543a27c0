"""Compares strings' keywords, lists of values, constants and negations."""

from __future__ import annotations

from moldau.data.json_schema.diff.context import Compare, Comparing, Context
from moldau.data.json_schema.diff.difference import DifferenceType
from moldau.data.json_schema.diff.numbers import compare_bound
from moldau.data.json_schema.equality import value_key
from moldau.data.json_schema.model import ConstSchema, EnumSchema, NotSchema, StringSchema


def compare_strings(ctx: Context, original: StringSchema, update: StringSchema) -> None:
    compare_bound(ctx, "maxLength", "MAX_LENGTH", original.max_length, update.max_length)
    compare_bound(ctx, "minLength", "MIN_LENGTH", original.min_length, update.min_length)
    if original.pattern == update.pattern:
        return
    if original.pattern is None:
        ctx.add(DifferenceType.PATTERN_ADDED, "pattern")
    elif update.pattern is None:
        ctx.add(DifferenceType.PATTERN_REMOVED, "pattern")
    else:
        ctx.add(DifferenceType.PATTERN_CHANGED, "pattern")


def compare_enums(ctx: Context, original: EnumSchema, update: EnumSchema) -> None:
    before = {value_key(each) for each in original.values}
    after = {value_key(each) for each in update.values}
    if before == after:
        return
    if before < after:
        ctx.add(DifferenceType.ENUM_ARRAY_EXTENDED, "enum")
    elif after < before:
        ctx.add(DifferenceType.ENUM_ARRAY_NARROWED, "enum")
    else:
        ctx.add(DifferenceType.ENUM_ARRAY_CHANGED, "enum")


def compare_constants(ctx: Context, original: ConstSchema, update: ConstSchema) -> None:
    if value_key(original.value) != value_key(update.value):
        ctx.add(DifferenceType.ENUM_ARRAY_CHANGED, "const")


def compare_negations(ctx: Context, original: NotSchema, update: NotSchema) -> Comparing:
    with ctx.at("not"):
        # The other way round: what must not match may only become less.
        found = yield Compare(update.must_not_match, original.must_not_match, trial=True)
        if found.compatible:
            ctx.add(DifferenceType.NOT_TYPE_NARROWED)
        else:
            ctx.add(DifferenceType.NOT_TYPE_EXTENDED)
