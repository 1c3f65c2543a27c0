"""Whether an object or array takes more than it names: open, closed, or open for some values.

Open: anything more. Closed: nothing more. Partially open: what a schema for the rest, or for names
of a pattern, allows.
"""

from __future__ import annotations

from moldau.data.json_schema.diff.context import Comparing, Context
from moldau.data.json_schema.diff.difference import DifferenceType
from moldau.data.json_schema.diff.shared import Shared
from moldau.data.json_schema.model import (
    ArraySchema,
    EmptySchema,
    FalseSchema,
    ObjectSchema,
    SchemaNode,
)


def is_open_object(schema: ObjectSchema) -> bool:
    return (
        schema.permits_additional_properties
        and schema.additional_properties is None
        and not schema.pattern_properties
        and _is_absent_or_true(schema.unevaluated_properties)
    )


def schema_for_property(schema: ObjectSchema, name: str, shared: Shared) -> SchemaNode | None:
    """What a partially open object asks of a property that it does not name."""
    for pattern, inner in schema.pattern_properties.items():
        if shared.matches(pattern, name):
            return inner
    if schema.additional_properties is not None or not schema.permits_additional_properties:
        return schema.additional_properties
    return _partial(schema.unevaluated_properties)


def is_open_array(schema: ArraySchema) -> bool:
    return (
        schema.permits_additional_items
        and schema.additional_items is None
        and _is_absent_or_true(schema.unevaluated_items)
    )


def schema_for_item(schema: ArraySchema) -> SchemaNode | None:
    """What a partially open array asks of an item beyond those it names."""
    if schema.additional_items is not None or not schema.permits_additional_items:
        return schema.additional_items
    return _partial(schema.unevaluated_items)


def _is_absent_or_true(unevaluated: SchemaNode | None) -> bool:
    return unevaluated is None or isinstance(unevaluated, EmptySchema)


def _partial(unevaluated: SchemaNode | None) -> SchemaNode | None:
    return None if isinstance(unevaluated, FalseSchema | EmptySchema) else unevaluated


def compare_unevaluated(
    ctx: Context,
    keyword: str,
    name: str,
    original: SchemaNode | None,
    update: SchemaNode | None,
) -> Comparing:
    """Compare `unevaluatedProperties` or `unevaluatedItems`; absent is like true."""
    if original is None and update is None:
        return
    with ctx.at(keyword):
        was_false, is_false = isinstance(original, FalseSchema), isinstance(update, FalseSchema)
        if is_false and not was_false:
            change = "REMOVED"
        elif was_false and not is_false:
            change = "ADDED"
        elif _is_narrowed(original, update):
            change = "NARROWED"
        elif _is_narrowed(update, original):
            change = "EXTENDED"
        else:
            yield from ctx.compare(original, update)
            return
        ctx.add(DifferenceType[f"{name}_{change}"])


def _is_narrowed(wider: SchemaNode | None, narrower: SchemaNode | None) -> bool:
    if wider is None:
        return narrower is not None
    return isinstance(wider, EmptySchema) and not isinstance(narrower, EmptySchema | None)
