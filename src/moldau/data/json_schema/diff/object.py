"""Compares objects: required and other properties, dependencies, what is open, sizes."""

from __future__ import annotations

from typing import Any

from moldau.data.json_schema.diff.content_model import (
    compare_unevaluated,
    is_open_object,
    schema_for_property,
)
from moldau.data.json_schema.diff.context import Compare, Comparing, Context
from moldau.data.json_schema.diff.difference import DifferenceType as T
from moldau.data.json_schema.diff.java_order import hash_order
from moldau.data.json_schema.diff.numbers import compare_bound
from moldau.data.json_schema.model import EmptySchema, FalseSchema, ObjectSchema, SchemaNode


def compare_objects(ctx: Context, original: ObjectSchema, update: ObjectSchema) -> Comparing:
    _compare_required(ctx, original, update)
    yield from _compare_properties(ctx, original, update)
    yield from _compare_dependencies(ctx, original, update)
    yield from _compare_additional(ctx, original, update)
    yield from compare_unevaluated(
        ctx,
        "unevaluatedProperties",
        "UNEVALUATED_PROPERTIES",
        original.unevaluated_properties,
        update.unevaluated_properties,
    )
    compare_bound(
        ctx, "maxProperties", "MAX_PROPERTIES", original.max_properties, update.max_properties
    )
    compare_bound(
        ctx, "minProperties", "MIN_PROPERTIES", original.min_properties, update.min_properties
    )


def _compare_required(ctx: Context, original: ObjectSchema, update: ObjectSchema) -> None:
    before, after = set(original.required_properties), set(update.required_properties)
    if before == after:
        return
    for name in hash_order(original.properties):
        inner = update.properties.get(name)
        if inner is None or (name in before) == (name in after):
            continue
        with ctx.at("required", name):
            if name in before:
                ctx.add(T.REQUIRED_ATTRIBUTE_REMOVED)
            elif inner.has_default:
                ctx.add(T.REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED)
            else:
                ctx.add(T.REQUIRED_ATTRIBUTE_ADDED)


def _compare_properties(ctx: Context, original: ObjectSchema, update: ObjectSchema) -> Comparing:
    required = set(update.required_properties)
    for name in _union(original.properties, update.properties):
        before, after = original.properties.get(name), update.properties.get(name)
        with ctx.at("properties", name):
            if after is None and before is not None:
                yield from _compare_removed(ctx, name, before, update)
            elif before is None and after is not None:
                yield from _compare_added(ctx, name, original, after, required=name in required)
            else:
                yield from ctx.compare(before, after)


def _compare_removed(
    ctx: Context, name: str, before: SchemaNode, update: ObjectSchema
) -> Comparing:
    """A property that the reader does not name: it must take it all the same."""
    if is_open_object(update):
        ctx.add(T.PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL)
        return
    covering = schema_for_property(update, name, ctx.shared)
    if covering is not None:
        found = yield Compare(before, covering)
        ctx.take(found)
        if found.compatible:
            ctx.add(T.PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL)
        else:
            ctx.add(T.PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL)
    elif isinstance(before, FalseSchema):
        ctx.add(T.PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL)
    else:
        ctx.add(T.PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL)


def _compare_added(
    ctx: Context, name: str, original: ObjectSchema, after: SchemaNode, *, required: bool
) -> Comparing:
    """A property that the writer did not name: it may have written anything it was open for."""
    if is_open_object(original):
        if isinstance(after, EmptySchema):
            ctx.add(T.PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL)
        elif not required:
            ctx.add(T.OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL)
        elif after.has_default:
            ctx.add(T.REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL)
        else:
            ctx.add(T.REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL)
        return
    covering = schema_for_property(original, name, ctx.shared)
    if covering is not None:
        found = yield Compare(covering, after)
        ctx.take(found)
        if found.compatible:
            ctx.add(T.PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL)
        else:
            ctx.add(T.PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL)
    if not required:
        ctx.add(T.OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL)
    elif after.has_default:
        ctx.add(T.REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL)
    else:
        ctx.add(T.REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL)


def _compare_dependencies(ctx: Context, original: ObjectSchema, update: ObjectSchema) -> Comparing:
    for name in _union(original.property_dependencies, update.property_dependencies):
        type_ = _dependency_change(
            original.property_dependencies.get(name), update.property_dependencies.get(name)
        )
        if type_ is not None:
            with ctx.at("dependencies", name):
                ctx.add(type_)
    for name in _union(original.schema_dependencies, update.schema_dependencies):
        before, after = original.schema_dependencies.get(name), update.schema_dependencies.get(name)
        with ctx.at("dependencies", name):
            if after is None:
                ctx.add(T.DEPENDENCY_SCHEMA_REMOVED)
            elif before is None:
                ctx.add(T.DEPENDENCY_SCHEMA_ADDED)
            else:
                yield from ctx.compare(before, after)


def _dependency_change(before: set[str] | None, after: set[str] | None) -> T | None:
    if after is None:
        return T.DEPENDENCY_ARRAY_REMOVED
    if before is None:
        return T.DEPENDENCY_ARRAY_ADDED
    if before == after:
        return None
    if before < after:
        return T.DEPENDENCY_ARRAY_EXTENDED
    return T.DEPENDENCY_ARRAY_NARROWED if after < before else T.DEPENDENCY_ARRAY_CHANGED


def _compare_additional(ctx: Context, original: ObjectSchema, update: ObjectSchema) -> Comparing:
    before, after = original.additional_properties, update.additional_properties
    with ctx.at("additionalProperties"):
        if original.permits_additional_properties and not update.permits_additional_properties:
            ctx.add(T.ADDITIONAL_PROPERTIES_REMOVED)
        elif update.permits_additional_properties and not original.permits_additional_properties:
            ctx.add(T.ADDITIONAL_PROPERTIES_ADDED)
        elif before is None and after is not None:
            ctx.add(T.ADDITIONAL_PROPERTIES_NARROWED)
        elif after is None and before is not None:
            ctx.add(T.ADDITIONAL_PROPERTIES_EXTENDED)
        else:
            yield from ctx.compare(before, after)


def _union(original: dict[str, Any], update: dict[str, Any]) -> list[str]:
    """The names of both, in the order of a Java set that is made of them."""
    names = hash_order(original) + hash_order(update)
    return hash_order(names, sized_for=len(original))
