"""Compares two schemas: what a reader has changed against the writer's schema."""

from __future__ import annotations

from collections.abc import Collection

from moldau.data.json_schema.diff.array import compare_arrays
from moldau.data.json_schema.diff.combined import (
    compare_combined,
    compare_from_combined,
    compare_to_combined,
)
from moldau.data.json_schema.diff.context import Comparing, Context
from moldau.data.json_schema.diff.difference import (
    COMPATIBLE_STRICT,
    Difference,
    DifferenceType,
)
from moldau.data.json_schema.diff.engine import run
from moldau.data.json_schema.diff.numbers import compare_numbers
from moldau.data.json_schema.diff.object import compare_objects
from moldau.data.json_schema.diff.values import (
    compare_constants,
    compare_enums,
    compare_negations,
    compare_strings,
)
from moldau.data.json_schema.equality import value_key
from moldau.data.json_schema.model import (
    ABSENT,
    ArraySchema,
    CombinedSchema,
    ConstSchema,
    EmptySchema,
    EnumSchema,
    FalseSchema,
    NotSchema,
    NumberSchema,
    ObjectSchema,
    SchemaNode,
    StringSchema,
)


def compare_schemas(
    original: SchemaNode,
    update: SchemaNode,
    compatible: Collection[DifferenceType] = COMPATIBLE_STRICT,
) -> list[Difference]:
    """All differences in order; of very large schemas only the first that is incompatible.

    SchemaError if even that takes too long.

    `compatible` are the changes that are allowed: alternatives of combined schemas are matched by
    them.
    """
    return list(run(_compare_pair, original, update, compatible))


def _compare_pair(ctx: Context, original: SchemaNode, update: SchemaNode) -> Comparing:
    """Neither is a reference."""
    if isinstance(update, CombinedSchema) and not isinstance(original, CombinedSchema):
        if (yield from compare_to_combined(ctx, original, update)):
            return
    elif (
        isinstance(original, CombinedSchema)
        and not isinstance(update, CombinedSchema)
        and (yield from compare_from_combined(ctx, original, update))
    ):
        return
    if type(original) is not type(update):
        # Connect's bytes were a string once, and may be a number: the same to a reader.
        are_bytes = _connect_type(original) == _connect_type(update) == "bytes"
        if not (isinstance(original, FalseSchema) or isinstance(update, EmptySchema) or are_bytes):
            ctx.add(DifferenceType.TYPE_CHANGED)
        return
    _compare_descriptions(ctx, original, update)
    match original, update:
        case StringSchema(), StringSchema():
            compare_strings(ctx, original, update)
        case NumberSchema(), NumberSchema():
            compare_numbers(ctx, original, update)
        case ConstSchema(), ConstSchema():
            compare_constants(ctx, original, update)
        case EnumSchema(), EnumSchema():
            compare_enums(ctx, original, update)
        case CombinedSchema(), CombinedSchema():
            yield from compare_combined(ctx, original, update)
        case NotSchema(), NotSchema():
            yield from compare_negations(ctx, original, update)
        case ObjectSchema(), ObjectSchema():
            yield from compare_objects(ctx, original, update)
        case ArraySchema(), ArraySchema():
            yield from compare_arrays(ctx, original, update)


def _compare_descriptions(ctx: Context, original: SchemaNode, update: SchemaNode) -> None:
    if original.id != update.id:
        ctx.add(DifferenceType.ID_CHANGED)
    if original.title != update.title:
        ctx.add(DifferenceType.TITLE_CHANGED)
    if original.description != update.description:
        ctx.add(DifferenceType.DESCRIPTION_CHANGED)
    before, after = original.default, update.default
    if (before is ABSENT) != (after is ABSENT) or value_key(before) != value_key(after):
        ctx.add(DifferenceType.DEFAULT_CHANGED)


def _connect_type(schema: SchemaNode) -> object:
    return schema.unprocessed.get("connect.type")
