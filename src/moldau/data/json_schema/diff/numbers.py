"""Compares the bounds that keywords set."""

from __future__ import annotations

from fractions import Fraction

from moldau.data.json_schema.diff.context import Context
from moldau.data.json_schema.diff.difference import DifferenceType
from moldau.data.json_schema.model import Number, NumberSchema


def compare_bound(
    ctx: Context, keyword: str, name: str, original: Number | None, update: Number | None
) -> None:
    """Add `NAME_ADDED`, `_REMOVED`, `_INCREASED` or `_DECREASED`."""
    if original == update:
        return
    if original is None or update is None:
        change = "ADDED" if original is None else "REMOVED"
    else:
        change = "INCREASED" if original < update else "DECREASED"
    ctx.add(DifferenceType[f"{name}_{change}"], keyword)


def compare_numbers(ctx: Context, original: NumberSchema, update: NumberSchema) -> None:
    compare_bound(ctx, "maximum", "MAXIMUM", original.maximum, update.maximum)
    compare_bound(ctx, "minimum", "MINIMUM", original.minimum, update.minimum)
    compare_bound(
        ctx,
        "exclusiveMaximum",
        "EXCLUSIVE_MAXIMUM",
        original.exclusive_maximum,
        update.exclusive_maximum,
    )
    compare_bound(
        ctx,
        "exclusiveMinimum",
        "EXCLUSIVE_MINIMUM",
        original.exclusive_minimum,
        update.exclusive_minimum,
    )
    if original.multiple_of != update.multiple_of:
        type_ = _multiple_of_change(original.multiple_of, update.multiple_of)
        ctx.add(type_, "multipleOf")
    if original.requires_integer and not update.requires_integer:
        ctx.add(DifferenceType.TYPE_EXTENDED)
    elif update.requires_integer and not original.requires_integer:
        ctx.add(DifferenceType.TYPE_NARROWED)


def _multiple_of_change(original: Number | None, update: Number | None) -> DifferenceType:
    if original is None:
        return DifferenceType.MULTIPLE_OF_ADDED
    if update is None:
        return DifferenceType.MULTIPLE_OF_REMOVED
    if _is_multiple(update, of=original):
        return DifferenceType.MULTIPLE_OF_EXPANDED
    if _is_multiple(original, of=update):
        return DifferenceType.MULTIPLE_OF_REDUCED
    return DifferenceType.MULTIPLE_OF_CHANGED


def _is_multiple(number: Number, *, of: Number) -> bool:
    return (Fraction(number) / Fraction(of)).denominator == 1
