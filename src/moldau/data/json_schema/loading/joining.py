"""Joins the parts of one schema in drafts 2019-09 and 2020-12.

Every keyword is a schema of its own there. Those about the same type are merged into one node,
those about a type of a list of types into the node of that type; what is left is an `allOf` that is
marked as generated. The order of the keywords counts.
"""

from __future__ import annotations

from typing import TypeGuard

from moldau.data.json_schema.model import (
    ArraySchema,
    CombinedSchema,
    Criterion,
    EmptySchema,
    NumberSchema,
    ObjectSchema,
    SchemaNode,
    StringSchema,
)


def nothing() -> CombinedSchema:
    """The part of a keyword that says nothing about compatibility."""
    return CombinedSchema(criterion=Criterion.ALL, subschemas=[], generated=True)


def join(schema: SchemaNode | None, part: SchemaNode) -> SchemaNode:
    """The schema and one part more. Both belong to the caller, and may change."""
    if schema is None:
        return part
    if _merged(schema, part):
        return schema
    if _is_generated(schema, Criterion.ANY) and _has_type_of(schema, part):
        _accumulate(schema.subschemas, part)
        return CombinedSchema(criterion=Criterion.ANY, subschemas=schema.subschemas, generated=True)
    if _is_generated(part, Criterion.ANY) and _has_type_of(part, schema):
        _accumulate(part.subschemas, schema)
        return CombinedSchema(criterion=Criterion.ANY, subschemas=part.subschemas, generated=True)
    parts: list[SchemaNode] = []
    for each in (*flattened(schema), *flattened(part)):
        _accumulate(parts, each)
    return CombinedSchema(criterion=Criterion.ALL, subschemas=parts, generated=True)


def unwrapped(schema: SchemaNode | None) -> SchemaNode:
    """The finished schema: a generated `allOf` of one is that one, and of none is `{}`."""
    if schema is None:
        return EmptySchema()
    if _is_generated(schema, Criterion.ALL):
        if not schema.subschemas:
            return EmptySchema()
        if len(schema.subschemas) == 1:
            return schema.subschemas[0]
    return schema


def flattened(schema: SchemaNode) -> list[SchemaNode]:
    return schema.subschemas if _is_generated(schema, Criterion.ALL) else [schema]


def _is_generated(schema: SchemaNode, criterion: Criterion) -> TypeGuard[CombinedSchema]:
    return isinstance(schema, CombinedSchema) and schema.generated and schema.criterion is criterion


def _has_type_of(combined: CombinedSchema, part: SchemaNode) -> bool:
    return any(type(each) is type(part) for each in combined.subschemas)


def _accumulate(parts: list[SchemaNode], part: SchemaNode) -> None:
    for each in parts:
        if _merged(each, part):
            return
    parts.append(part)


def _merged(schema: SchemaNode, part: SchemaNode) -> bool:
    """Put a part about the same type into a schema; False if it is about another."""
    match schema, part:
        case ArraySchema(), ArraySchema():
            _merge_array(schema, part)
        case NumberSchema(), NumberSchema():
            _merge_number(schema, part)
        case ObjectSchema(), ObjectSchema():
            _merge_object(schema, part)
        case StringSchema(), StringSchema():
            _merge_string(schema, part)
        case _:
            return False
    schema.unprocessed.update(part.unprocessed)
    return True


def _overlay(schema: SchemaNode, part: SchemaNode, *names: str) -> None:
    """Take over what the part has."""
    for name in names:
        value = getattr(part, name)
        if value is not None:
            setattr(schema, name, value)


def _merge_array(schema: ArraySchema, part: ArraySchema) -> None:
    schema.required |= part.required
    schema.unique_items |= part.unique_items
    schema.additional_items_allowed &= part.additional_items_allowed
    if part.items is not None:
        schema.items = (schema.items or []) + part.items
    _overlay(schema, part, "min_items", "max_items", "all_items", "additional_items")
    _overlay(schema, part, "contains", "unevaluated_items")


def _merge_number(schema: NumberSchema, part: NumberSchema) -> None:
    schema.required |= part.required
    schema.requires_integer |= part.requires_integer
    _overlay(schema, part, "minimum", "maximum", "exclusive_minimum", "exclusive_maximum")
    _overlay(schema, part, "multiple_of")


def _merge_object(schema: ObjectSchema, part: ObjectSchema) -> None:
    schema.required |= part.required
    schema.permits_additional_properties &= part.permits_additional_properties
    schema.required_properties += part.required_properties
    schema.properties.update(part.properties)
    schema.pattern_properties.update(part.pattern_properties)
    schema.property_dependencies.update(part.property_dependencies)
    schema.schema_dependencies.update(part.schema_dependencies)
    _overlay(schema, part, "additional_properties", "unevaluated_properties", "property_names")
    _overlay(schema, part, "min_properties", "max_properties")


def _merge_string(schema: StringSchema, part: StringSchema) -> None:
    schema.required |= part.required
    _overlay(schema, part, "min_length", "max_length", "pattern")
