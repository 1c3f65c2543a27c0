"""When two JSON values are equal, and when two schemas say the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable
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


class SchemaKeys:
    """A number for each schema: the same for schemas with the same keywords.

    References are equal by what `of_reference` says of them: their texts, or their targets. Each
    schema is looked at once, and must not change or go away afterwards.
    """

    def __init__(self, of_reference: Callable[[ReferenceSchema], Hashable]) -> None:
        self._of_reference = of_reference
        self._by_node: dict[int, int] = {}
        self._by_content: dict[Hashable, int] = {}

    def key(self, node: SchemaNode | None) -> int:
        if node is None:
            return 0
        found = self._by_node.get(id(node))
        if found is None:
            content = (
                type(node),
                node.id,
                node.title,
                node.description,
                None if node.default is ABSENT else value_key(node.default),
                value_key(node.unprocessed) if node.unprocessed else None,
                self._own(node),
            )
            found = self._by_content.setdefault(content, len(self._by_content) + 1)
            self._by_node[id(node)] = found
        return found

    def _own(self, node: SchemaNode) -> Hashable:
        match node:
            case StringSchema():
                return (node.required, node.min_length, node.max_length, node.pattern, node.format)
            case NumberSchema():
                return _number_content(node)
            case ArraySchema():
                return self._array(node)
            case ObjectSchema():
                return self._object(node)
            case EnumSchema():
                return frozenset(value_key(each) for each in node.values)
            case ConstSchema():
                return value_key(node.value)
            case NotSchema():
                return self.key(node.must_not_match)
            case ConditionalSchema():
                parts = (node.if_schema, node.then_schema, node.else_schema)
                return tuple(self.key(each) for each in parts)
            case CombinedSchema():
                return (node.criterion, tuple(self.key(each) for each in node.subschemas))
            case ReferenceSchema():
                return self._of_reference(node)
        return None

    def _array(self, node: ArraySchema) -> Hashable:
        return (
            node.required,
            node.min_items,
            node.max_items,
            node.unique_items,
            self.key(node.all_items),
            tuple(self.key(each) for each in node.items or ()),
            node.permits_additional_items,
            self.key(node.additional_items),
            self.key(node.contains),
            self.key(node.unevaluated_items),
        )

    def _object(self, node: ObjectSchema) -> Hashable:
        dependencies = node.property_dependencies.items()
        return (
            node.required,
            self._members(node.properties),
            self._members(node.pattern_properties),
            node.permits_additional_properties,
            self.key(node.additional_properties),
            self.key(node.unevaluated_properties),
            frozenset(node.required_properties),
            node.min_properties,
            node.max_properties,
            frozenset((name, frozenset(each)) for name, each in dependencies),
            self._members(node.schema_dependencies),
            self.key(node.property_names),
        )

    def _members(self, schemas: dict[str, SchemaNode]) -> Hashable:
        return frozenset((name, self.key(each)) for name, each in schemas.items())


def _number_content(node: NumberSchema) -> Hashable:
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
