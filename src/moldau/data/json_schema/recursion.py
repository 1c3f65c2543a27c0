"""Whether a schema contains itself."""

from __future__ import annotations

from collections.abc import Iterator

from moldau.data.json_schema.model import (
    ArraySchema,
    CombinedSchema,
    ConditionalSchema,
    NotSchema,
    ObjectSchema,
    ReferenceSchema,
    SchemaNode,
)


def is_recursive(root: SchemaNode) -> bool:
    """Whether references lead from a schema back to it, so that its values may have any depth."""
    done: set[int] = set()
    open_: set[int] = {id(root)}
    path = [(root, _inside(root))]
    while path:
        node, inside = path[-1]
        for inner in inside:
            if id(inner) in open_:
                return True
            if id(inner) not in done:
                open_.add(id(inner))
                path.append((inner, _inside(inner)))
                break
        else:
            path.pop()
            open_.discard(id(node))
            done.add(id(node))
    return False


def _inside(node: SchemaNode) -> Iterator[SchemaNode]:
    found: list[SchemaNode | None] = []
    match node:
        case ObjectSchema():
            found += node.properties.values()
            found += node.pattern_properties.values()
            found += node.schema_dependencies.values()
            found += (node.additional_properties, node.unevaluated_properties, node.property_names)
        case ArraySchema():
            found += node.items or ()
            found += (node.all_items, node.additional_items, node.contains, node.unevaluated_items)
        case CombinedSchema():
            found += node.subschemas
        case NotSchema():
            found.append(node.must_not_match)
        case ConditionalSchema():
            found += (node.if_schema, node.then_schema, node.else_schema)
        case ReferenceSchema():
            found.append(node.target)
    return (each for each in found if each is not None)
