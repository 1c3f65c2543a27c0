"""Reads drafts 4, 6 and 7.

A schema becomes one node per kind of its keywords: its type first, then what other keywords say
about values of other types. Beside a `$ref`, only the descriptive keywords count.
"""

from __future__ import annotations

from typing import Any

from moldau.data.json_schema.documents import Documents, Place
from moldau.data.json_schema.drafts import Draft
from moldau.data.json_schema.loading import keywords
from moldau.data.json_schema.loading.references import References
from moldau.data.json_schema.model import (
    ABSENT,
    ArraySchema,
    BooleanSchema,
    CombinedSchema,
    ConditionalSchema,
    ConstSchema,
    Criterion,
    EmptySchema,
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

_NUMBER = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_STRING = ("minLength", "maxLength", "pattern", "format")
_CONDITION = ("if", "then", "else")
_ARRAY_4 = ("items", "additionalItems", "minItems", "maxItems", "uniqueItems")
_OBJECT_4 = (
    "properties",
    "required",
    "minProperties",
    "maxProperties",
    "dependencies",
    "patternProperties",
    "additionalProperties",
)
_FORMATS_4 = frozenset({"date-time", "uri", "email", "ipv4", "ipv6", "hostname"})
_FORMATS_6 = _FORMATS_4 | {"json-pointer", "uri-reference", "uri-template"}
_FORMATS = {
    Draft.DRAFT_4: _FORMATS_4,
    Draft.DRAFT_6: _FORMATS_6,
    Draft.DRAFT_7: _FORMATS_6 | {"date", "time", "regex", "relative-json-pointer"},
}


def load_classic(documents: Documents) -> SchemaNode:
    """The model of a document in draft 4, 6 or 7."""
    references = References(documents)
    loader = _Loader(references)
    root = loader.load(documents.main.place)
    references.follow(root, loader.load)
    return root


class _Loader:
    def __init__(self, references: References) -> None:
        self._references = references

    def load(self, place: Place) -> SchemaNode:
        self._references.count_node()
        if isinstance(place.value, bool):
            return TrueSchema() if place.value else FalseSchema()
        if not isinstance(place.value, dict):
            raise keywords.wrong(place, "a schema (an object or a boolean)", place.value)
        left = dict(place.value)
        if "$ref" in left:
            node: SchemaNode = self._references.add(keywords.text(place, "$ref") or "", place)
            del left["$ref"]
        else:
            parts = self._parts(place, left)
            if not parts:
                node = EmptySchema()
            elif len(parts) == 1:
                node = parts[0]
            else:
                node = CombinedSchema(criterion=Criterion.ALL, subschemas=parts, generated=True)
        _describe(node, place, left)
        node.unprocessed = left
        return node

    def _parts(self, place: Place, left: dict[str, Any]) -> list[SchemaNode]:
        """One schema for each kind of keywords, which are taken out of `left`."""
        parts: list[SchemaNode] = []
        draft = place.document.draft
        if "enum" in left:
            parts.append(EnumSchema(values=[each.value for each in keywords.array(place, "enum")]))
            del left["enum"]
        for criterion in Criterion:
            if criterion.value in left:
                found = [self.load(each) for each in keywords.array(place, criterion.value)]
                parts.append(CombinedSchema(criterion=criterion, subschemas=found))
                del left[criterion.value]
        if "not" in left:
            parts.append(NotSchema(must_not_match=self.load(place.child("not"))))
            del left["not"]
        if "const" in left and draft is not Draft.DRAFT_4:
            parts.append(ConstSchema(value=left.pop("const")))
        if "type" in left:
            parts.append(self._typed(place, left))
            del left["type"]
        return parts + self._untyped(place, left)

    def _typed(self, place: Place, left: dict[str, Any]) -> SchemaNode:
        types = place.value["type"]
        if isinstance(types, list):
            found = [self._of_type(each, place, left) for each in types]
            return CombinedSchema(criterion=Criterion.ANY, subschemas=found)
        return self._of_type(types, place, left)

    def _of_type(self, name: Any, place: Place, left: dict[str, Any]) -> SchemaNode:
        draft = place.document.draft
        self._references.count_node()
        match name:
            case "string":
                _take(left, _STRING)
                return _string(place, required=True)
            case "integer" | "number":
                _take(left, _NUMBER)
                node = _number(place, required=True)
                node.requires_integer = name == "integer"
                return node
            case "boolean":
                return BooleanSchema()
            case "null":
                return NullSchema()
            case "array":
                _take(left, _array_keywords(draft))
                return self._array(place, required=True)
            case "object":
                _take(left, _object_keywords(draft))
                return self._object(place, required=True)
        if isinstance(name, str):
            raise SchemaError(f"{place.name}: unknown type: [{name}]")
        raise keywords.wrong(place.child("type"), "a string or an array of strings", name)

    def _untyped(self, place: Place, left: dict[str, Any]) -> list[SchemaNode]:
        """What the keywords of a type say that the schema itself does not ask for."""
        parts: list[SchemaNode] = []
        draft = place.document.draft
        if _take(left, _array_keywords(draft)):
            parts.append(self._array(place, required=False))
        if _take(left, _object_keywords(draft)):
            parts.append(self._object(place, required=False))
        if _take(left, _NUMBER):
            parts.append(_number(place, required=False))
        if _take(left, _STRING):
            parts.append(_string(place, required=False))
        if draft is Draft.DRAFT_7 and _take(left, _CONDITION):
            chosen = [
                self.load(place.child(each)) if each in place.value else None for each in _CONDITION
            ]
            parts.append(
                ConditionalSchema(if_schema=chosen[0], then_schema=chosen[1], else_schema=chosen[2])
            )
        return parts

    def _array(self, place: Place, *, required: bool) -> ArraySchema:
        node = ArraySchema(
            required=required,
            min_items=keywords.integer(place, "minItems"),
            max_items=keywords.integer(place, "maxItems"),
            unique_items=bool(keywords.flag(place, "uniqueItems")),
        )
        value = place.value
        if "additionalItems" in value:
            if isinstance(value["additionalItems"], bool):
                node.additional_items_allowed = value["additionalItems"]
            else:
                node.additional_items = self.load(place.child("additionalItems"))
        if isinstance(value.get("items"), list):
            node.items = [self.load(each) for each in keywords.array(place, "items")] or None
        elif "items" in value:
            node.all_items = self.load(place.child("items"))
        if "contains" in value and place.document.draft is not Draft.DRAFT_4:
            node.contains = self.load(place.child("contains"))
        return node

    def _object(self, place: Place, *, required: bool) -> ObjectSchema:
        draft = place.document.draft
        node = ObjectSchema(
            required=required,
            min_properties=keywords.integer(place, "minProperties"),
            max_properties=keywords.integer(place, "maxProperties"),
            required_properties=keywords.texts(place, "required"),
        )
        for name, inner in keywords.objects(place, "properties").items():
            # An id among the properties, as some generators write it, is no property.
            if name != draft.id_keyword or isinstance(inner.value, dict):
                node.properties[name] = self.load(inner)
        for pattern, inner in keywords.objects(place, "patternProperties").items():
            keywords.check_pattern(pattern, inner)
            node.pattern_properties[pattern] = self.load(inner)
        additional = place.value.get("additionalProperties")
        if isinstance(additional, bool):
            node.permits_additional_properties = additional
        elif "additionalProperties" in place.value:
            node.additional_properties = self.load(place.child("additionalProperties"))
        for name, inner in keywords.objects(place, "dependencies").items():
            if isinstance(inner.value, list):
                names = keywords.texts(place.child("dependencies"), name)
                if names:
                    node.property_dependencies[name] = set(names)
            else:
                node.schema_dependencies[name] = self.load(inner)
        if "propertyNames" in place.value and draft is not Draft.DRAFT_4:
            node.property_names = self.load(place.child("propertyNames"))
        return node


def _take(left: dict[str, Any], names: tuple[str, ...]) -> bool:
    """Take these keywords out; whether there was one."""
    found = [name for name in names if name in left]
    for name in found:
        del left[name]
    return bool(found)


def _array_keywords(draft: Draft) -> tuple[str, ...]:
    return _ARRAY_4 if draft is Draft.DRAFT_4 else (*_ARRAY_4, "contains")


def _object_keywords(draft: Draft) -> tuple[str, ...]:
    return _OBJECT_4 if draft is Draft.DRAFT_4 else (*_OBJECT_4, "propertyNames")


def _string(place: Place, *, required: bool) -> StringSchema:
    form = keywords.text(place, "format")
    return StringSchema(
        required=required,
        min_length=keywords.integer(place, "minLength"),
        max_length=keywords.integer(place, "maxLength"),
        pattern=keywords.pattern(place),
        format=form if form in _FORMATS[place.document.draft] else None,
    )


def _number(place: Place, *, required: bool) -> NumberSchema:
    node = NumberSchema(
        required=required,
        minimum=keywords.number(place, "minimum"),
        maximum=keywords.number(place, "maximum"),
        multiple_of=keywords.multiple_of(place),
    )
    if place.document.draft is Draft.DRAFT_4:
        node.minimum_is_exclusive = bool(keywords.flag(place, "exclusiveMinimum"))
        node.maximum_is_exclusive = bool(keywords.flag(place, "exclusiveMaximum"))
    else:
        node.exclusive_minimum = keywords.number(place, "exclusiveMinimum")
        node.exclusive_maximum = keywords.number(place, "exclusiveMaximum")
    return node


def _describe(node: SchemaNode, place: Place, left: dict[str, Any]) -> None:
    """Set what every schema may have, and take it out of `left`."""
    draft = place.document.draft
    node.id = keywords.text(place, draft.id_keyword)
    node.title = keywords.text(place, "title")
    node.description = keywords.text(place, "description")
    for name in (draft.id_keyword, "title", "description"):
        left.pop(name, None)
    if draft is Draft.DRAFT_7:
        for name in ("readOnly", "writeOnly"):
            keywords.flag(place, name)
    node.default = left.pop("default", ABSENT)
