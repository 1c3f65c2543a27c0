"""When two JSON values are equal, and when two schemas say the same."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from moldau.data.json_schema.model import (
    ABSENT,
    ArraySchema,
    CombinedSchema,
    ConditionalSchema,
    ConstSchema,
    EnumSchema,
    NotSchema,
    NumberSchema,
    ObjectSchema,
    ReferenceSchema,
    SchemaNode,
    StringSchema,
)


def value_key(value: Any) -> Hashable:
    """Equal for equal values only: `1`, `1.0` and `true` differ, the order of keys does not."""
    if isinstance(value, dict):
        return ("{}", frozenset((name, value_key(each)) for name, each in value.items()))
    if isinstance(value, list):
        return ("[]", tuple(value_key(each) for each in value))
    return (type(value).__name__, value)


def schema_key(node: SchemaNode | None) -> Hashable:
    """Equal for schemas with the same keywords; references are equal by their texts."""
    if node is None:
        return None
    return (
        type(node).__name__,
        node.id,
        node.title,
        node.description,
        None if node.default is ABSENT else value_key(node.default),
        value_key(node.unprocessed),
        _own_key(node),
    )


def _own_key(node: SchemaNode) -> Hashable:
    match node:
        case StringSchema():
            return (node.required, node.min_length, node.max_length, node.pattern, node.format)
        case NumberSchema():
            return _number_key(node)
        case ArraySchema():
            return _array_key(node)
        case ObjectSchema():
            return _object_key(node)
        case EnumSchema():
            return frozenset(value_key(each) for each in node.values)
        case ConstSchema():
            return value_key(node.value)
        case NotSchema():
            return schema_key(node.must_not_match)
        case ConditionalSchema():
            parts = (node.if_schema, node.then_schema, node.else_schema)
            return tuple(schema_key(each) for each in parts)
        case CombinedSchema():
            return (node.criterion, tuple(schema_key(each) for each in node.subschemas))
        case ReferenceSchema():
            return node.ref
    return None


def _number_key(node: NumberSchema) -> Hashable:
    return (
        node.required,
        node.requires_integer,
        node.minimum,
        node.maximum,
        node.exclusive_minimum,
        node.exclusive_maximum,
        node.minimum_is_exclusive,
        node.maximum_is_exclusive,
        node.multiple_of,
    )


def _array_key(node: ArraySchema) -> Hashable:
    return (
        node.required,
        node.min_items,
        node.max_items,
        node.unique_items,
        schema_key(node.all_items),
        tuple(schema_key(each) for each in node.items or ()),
        node.permits_additional_items,
        schema_key(node.additional_items),
        schema_key(node.contains),
        schema_key(node.unevaluated_items),
    )


def _object_key(node: ObjectSchema) -> Hashable:
    return (
        node.required,
        frozenset((name, schema_key(each)) for name, each in node.properties.items()),
        frozenset((name, schema_key(each)) for name, each in node.pattern_properties.items()),
        node.permits_additional_properties,
        schema_key(node.additional_properties),
        schema_key(node.unevaluated_properties),
        tuple(node.required_properties),
        node.min_properties,
        node.max_properties,
        frozenset((name, frozenset(each)) for name, each in node.property_dependencies.items()),
        frozenset((name, schema_key(each)) for name, each in node.schema_dependencies.items()),
        schema_key(node.property_names),
    )
