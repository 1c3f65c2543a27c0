"""Reads drafts 2019-09 and 2020-12.

The keywords of a schema are joined in the order of the text (see `joining.py`), then its properties
and pattern properties, then what it says about unevaluated values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.data.json_schema.documents import Documents, Place
from moldau.data.json_schema.drafts import Draft
from moldau.data.json_schema.loading import keywords
from moldau.data.json_schema.loading.joining import flattened, join, nothing, unwrapped
from moldau.data.json_schema.loading.references import References
from moldau.data.json_schema.model import (
    ABSENT,
    ArraySchema,
    BooleanSchema,
    CombinedSchema,
    ConditionalSchema,
    ConstSchema,
    Criterion,
    EnumSchema,
    FalseSchema,
    NotSchema,
    NullSchema,
    NumberSchema,
    ObjectSchema,
    SchemaNode,
    StringSchema,
    TrueSchema,
)
from moldau.data.schema_language import SchemaError

#: Keywords that are read elsewhere, or describe only.
_SILENT = frozenset(
    ["$id", "$anchor", "$dynamicAnchor", "$defs", "$schema", "$vocabulary", "properties"]
    + ["patternProperties", "title", "description", "deprecated", "default", "minContains"]
    + ["maxContains", "then", "else", "unevaluatedItems", "unevaluatedProperties"]
)


def load_modern(documents: Documents) -> SchemaNode:
    """The model of a document in draft 2019-09 or 2020-12."""
    references = References(documents)
    loader = _Loader(references)
    root = loader.load(documents.main.place)
    references.follow(root, loader.load)
    return root


class _Loader:
    def __init__(self, references: References) -> None:
        self._references = references
        self._readers: dict[str, Callable[[Place], SchemaNode]] = {
            "$ref": lambda place: self._reference(place, "$ref"),
            "$dynamicRef": lambda place: self._reference(place, "$dynamicRef"),
            "type": _types,
            "enum": lambda place: EnumSchema(
                values=[each.value for each in keywords.array(place, "enum")]
            ),
            "const": lambda place: ConstSchema(value=place.value["const"]),
            "allOf": lambda place: self._combined(place, Criterion.ALL),
            "anyOf": lambda place: self._combined(place, Criterion.ANY),
            "oneOf": lambda place: self._combined(place, Criterion.ONE),
            "not": lambda place: NotSchema(must_not_match=self.load(place.child("not"))),
            "if": self._condition,
            "items": self._items,
            "prefixItems": self._prefix_items,
            "contains": self._contains,
            "required": lambda place: ObjectSchema(
                required_properties=keywords.texts(place, "required")
            ),
            "additionalProperties": self._additional_properties,
            "propertyNames": lambda place: ObjectSchema(
                property_names=self.load(place.child("propertyNames"))
            ),
            "dependentRequired": _dependent_required,
            "dependentSchemas": self._dependent_schemas,
            **_PLAIN_READERS,
        }

    def load(self, place: Place) -> SchemaNode:
        self._references.count_node()
        if isinstance(place.value, bool):
            return TrueSchema() if place.value else FalseSchema()
        if not isinstance(place.value, dict):
            raise keywords.wrong(place, "a schema (an object or a boolean)", place.value)
        node: SchemaNode | None = None
        unknown: dict[str, Any] = {}
        for keyword, value in place.value.items():
            reader = self._readers.get(keyword)
            if reader is not None:
                node = join(node, reader(place))
            elif keyword not in _SILENT:
                unknown[keyword] = value
        for part in self._of_members(place):
            node = part if node is None else join(node, part)
        return _described(unwrapped(node), place, unknown)

    def _of_members(self, place: Place) -> list[SchemaNode]:
        parts: list[SchemaNode] = []
        properties = keywords.objects(place, "properties")
        if properties:
            found = {name: self.load(inner) for name, inner in properties.items()}
            parts.append(ObjectSchema(properties=found))
        patterns = keywords.objects(place, "patternProperties")
        if patterns:
            for pattern, inner in patterns.items():
                keywords.check_pattern(pattern, inner)
            found = {pattern: self.load(inner) for pattern, inner in patterns.items()}
            parts.append(ObjectSchema(pattern_properties=found))
        if "unevaluatedItems" in place.value:
            parts.append(ArraySchema(unevaluated_items=self.load(place.child("unevaluatedItems"))))
        if "unevaluatedProperties" in place.value:
            rest = self.load(place.child("unevaluatedProperties"))
            parts.append(ObjectSchema(unevaluated_properties=rest))
        self._check_definitions(place)
        return parts

    def _check_definitions(self, place: Place) -> None:
        """Read definitions for the errors in them; references load what they need themselves."""
        for inner in keywords.objects(place, "$defs").values():
            self.load(inner)
        if place.pointer == "#" and isinstance(place.value.get("definitions"), dict):
            for inner in keywords.objects(place, "definitions").values():
                self.load(inner)

    def _reference(self, place: Place, keyword: str) -> SchemaNode:
        return self._references.add(keywords.text(place, keyword) or "", place)

    def _combined(self, place: Place, criterion: Criterion) -> SchemaNode:
        # A branch that is itself several parts adds each of them, as in Confluent's registry.
        found = [
            part
            for each in keywords.array(place, criterion.value)
            for part in flattened(self.load(each))
        ]
        return CombinedSchema(criterion=criterion, subschemas=found)

    def _condition(self, place: Place) -> SchemaNode:
        chosen = [
            self.load(place.child(each)) if each in place.value else None
            for each in ("if", "then", "else")
        ]
        return ConditionalSchema(if_schema=chosen[0], then_schema=chosen[1], else_schema=chosen[2])

    def _items(self, place: Place) -> SchemaNode:
        if isinstance(place.value["items"], list) and _has_tuples(place):
            return self._tuple(place)
        inner = self.load(place.child("items"))
        if isinstance(inner, FalseSchema):
            return ArraySchema(additional_items_allowed=False)
        if isinstance(inner, TrueSchema):
            return ArraySchema()
        if keywords.array(place, "prefixItems"):
            return ArraySchema(additional_items=inner)
        return ArraySchema(all_items=inner)

    def _tuple(self, place: Place) -> SchemaNode:
        """Items by position, as draft 2019-09 still writes them."""
        found = [self.load(each) for each in keywords.array(place, "items")]
        node = ArraySchema(items=found or None)
        if "additionalItems" in place.value:
            rest = self.load(place.child("additionalItems"))
            if isinstance(rest, FalseSchema):
                node.additional_items_allowed = False
            elif not isinstance(rest, TrueSchema):
                node.additional_items = rest
        return node

    def _prefix_items(self, place: Place) -> SchemaNode:
        found = [self.load(each) for each in keywords.array(place, "prefixItems")]
        return ArraySchema(items=found or None)

    def _contains(self, place: Place) -> SchemaNode:
        least, most = keywords.number(place, "minContains"), keywords.number(place, "maxContains")
        counts = {"minContains": 1 if least is None else least}
        if most is not None:
            counts["maxContains"] = most
        return ArraySchema(contains=self.load(place.child("contains")), unprocessed=dict(counts))

    def _additional_properties(self, place: Place) -> SchemaNode:
        inner = self.load(place.child("additionalProperties"))
        if isinstance(inner, FalseSchema):
            return ObjectSchema(permits_additional_properties=False)
        if isinstance(inner, TrueSchema):
            return ObjectSchema()
        return ObjectSchema(additional_properties=inner)

    def _dependent_schemas(self, place: Place) -> SchemaNode:
        found = keywords.objects(place, "dependentSchemas")
        return ObjectSchema(
            schema_dependencies={name: self.load(inner) for name, inner in found.items()}
        )


def _has_tuples(place: Place) -> bool:
    return place.document.draft is Draft.DRAFT_2019_09


def _types(place: Place) -> SchemaNode:
    types = place.value["type"]
    if isinstance(types, list):
        found = [_of_type(each, place) for each in types]
        return CombinedSchema(criterion=Criterion.ANY, subschemas=found, generated=True)
    return _of_type(types, place)


def _of_type(name: Any, place: Place) -> SchemaNode:
    match name:
        case "string":
            return StringSchema(required=True)
        case "integer" | "number":
            return NumberSchema(required=True, requires_integer=name == "integer")
        case "boolean":
            return BooleanSchema()
        case "null":
            return NullSchema()
        case "array":
            return ArraySchema(required=True)
        case "object":
            return ObjectSchema(required=True)
    if isinstance(name, str):
        raise SchemaError(f"{place.name}: unknown type: [{name}]")
    raise keywords.wrong(place.child("type"), "a string or an array of strings", name)


def _dependent_required(place: Place) -> SchemaNode:
    names = keywords.objects(place, "dependentRequired")
    inner = place.child("dependentRequired")
    required = {name: set(keywords.texts(inner, name)) for name in names}
    return ObjectSchema(
        property_dependencies={name: found for name, found in required.items() if found}
    )


def _silent(place: Place) -> SchemaNode:
    return nothing()


_PLAIN_READERS: dict[str, Callable[[Place], SchemaNode]] = {
    "minLength": lambda p: StringSchema(min_length=keywords.integer(p, "minLength")),
    "maxLength": lambda p: StringSchema(max_length=keywords.integer(p, "maxLength")),
    "pattern": lambda p: StringSchema(pattern=keywords.pattern(p)),
    "minimum": lambda p: NumberSchema(minimum=keywords.number(p, "minimum")),
    "maximum": lambda p: NumberSchema(maximum=keywords.number(p, "maximum")),
    "exclusiveMinimum": lambda p: NumberSchema(
        exclusive_minimum=keywords.number(p, "exclusiveMinimum")
    ),
    "exclusiveMaximum": lambda p: NumberSchema(
        exclusive_maximum=keywords.number(p, "exclusiveMaximum")
    ),
    "multipleOf": lambda p: NumberSchema(multiple_of=keywords.multiple_of(p)),
    "minItems": lambda p: ArraySchema(min_items=keywords.integer(p, "minItems")),
    "maxItems": lambda p: ArraySchema(max_items=keywords.integer(p, "maxItems")),
    "uniqueItems": lambda p: ArraySchema(unique_items=bool(keywords.flag(p, "uniqueItems"))),
    "minProperties": lambda p: ObjectSchema(min_properties=keywords.integer(p, "minProperties")),
    "maxProperties": lambda p: ObjectSchema(max_properties=keywords.integer(p, "maxProperties")),
    "format": _silent,
    "readOnly": _silent,
    "writeOnly": _silent,
}


def _described(node: SchemaNode, place: Place, unknown: dict[str, Any]) -> SchemaNode:
    node.title = keywords.text(place, "title")
    node.description = keywords.text(place, "description")
    default = place.value.get("default")
    node.default = ABSENT if default is None else default
    node.unprocessed.update(unknown)
    return node
