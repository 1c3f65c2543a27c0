"""Which texts are schemas, and the forms in which the registry stores them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moldau.data.json_schema import Draft, JsonSchemaLanguage
from moldau.data.json_schema.model import (
    ArraySchema,
    CombinedSchema,
    ObjectSchema,
    ReferenceSchema,
    StringSchema,
)
from moldau.data.schema_language import ResolvedReference, SchemaError

MODERN = "https://json-schema.org/draft/2020-12/schema"


def parse(schema: Any, **references: Any) -> Any:
    named = [
        ResolvedReference(f"{name}.json", json.dumps(text)) for name, text in references.items()
    ]
    return JsonSchemaLanguage().parse(json.dumps(schema), named)


@pytest.mark.parametrize(
    ("address", "draft"),
    [
        (None, Draft.DRAFT_7),
        ("http://json-schema.org/draft-04/schema#", Draft.DRAFT_4),
        ("https://json-schema.org/draft-06/schema", Draft.DRAFT_6),
        ("http://json-schema.org/draft-07/schema#", Draft.DRAFT_7),
        ("https://json-schema.org/draft/2019-09/schema", Draft.DRAFT_2019_09),
        ("http://json-schema.org/draft/2020-12/schema#", Draft.DRAFT_2020_12),
        ("http://json-schema.org/schema#", Draft.DRAFT_4),
        ("http://example.com/my-dialect", Draft.DRAFT_7),
    ],
)
def test_the_draft_is_that_of_the_schema_keyword(address: str | None, draft: Draft) -> None:
    schema = {"type": "string"} if address is None else {"$schema": address, "type": "string"}
    assert parse(schema).draft is draft


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("{not json", "not JSON: .* at line 1, column 2", id="no JSON"),
        pytest.param("", "not JSON", id="nothing"),
        pytest.param('{"minimum": NaN}', "NaN", id="a number that JSON has not"),
        pytest.param("[]", "an object or a boolean; the text is an array", id="an array"),
        pytest.param('"string"', "the text is a string", id="a string"),
        pytest.param('{"type": "text"}', r"#: unknown type: \[text\]", id="an unknown type"),
        pytest.param('{"type": 5}', "#/type: expected a string", id="a type that is a number"),
        pytest.param(
            '{"properties": {"a": {"minLength": "1"}}}',
            "#/properties/a/minLength: expected a number, found a string",
            id="a bound that is a string",
        ),
        pytest.param('{"required": "a"}', "#/required: expected an array", id="required"),
        pytest.param('{"required": [1]}', "#/required/0: expected a string", id="required name"),
        pytest.param('{"properties": []}', "#/properties: expected an object", id="properties"),
        pytest.param('{"items": 1}', "#/items: expected a schema", id="items"),
        pytest.param('{"oneOf": {}}', "#/oneOf: expected an array", id="oneOf"),
        pytest.param('{"multipleOf": 0}', "multipleOf should not be 0", id="multipleOf"),
        pytest.param('{"minItems": 1.5}', "expected an integer, found 1.5", id="half an item"),
        pytest.param('{"pattern": "["}', "no regular expression", id="a pattern"),
        pytest.param('{"title": 1}', "#/title: expected a string", id="title"),
        pytest.param('{"$ref": "#/definitions/a"}', "# has nothing there", id="a pointer"),
        pytest.param('{"$ref": "#a"}', "no schema has that anchor", id="an anchor"),
        pytest.param('{"$ref": "other.json"}', "none of the references", id="a document"),
        pytest.param('{"$ref": "#"}', "leads only back to itself", id="itself"),
        pytest.param('{"minimum": 1e99999}', "too large, too small", id="a huge number"),
        pytest.param(
            f'{{"$schema": "{MODERN}", "items": [{{}}]}}', "#/items: expected a schema", id="tuple"
        ),
        pytest.param(
            f'{{"$schema": "{MODERN}", "$defs": {{"a": {{"type": "x"}}}}}}',
            r"#/\$defs/a: unknown type",
            id="a definition that nothing uses",
        ),
    ],
)
def test_what_is_no_schema_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        JsonSchemaLanguage().parse(text)


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1:1/schema", "https://example.com/x.json#/a", "file:///etc/hosts", "a.json"],
)
def test_nothing_is_fetched(address: str) -> None:
    with pytest.raises(SchemaError, match="nothing is fetched"):
        parse({"properties": {"a": {"$ref": address}}})


@pytest.mark.parametrize(
    "schema",
    [
        {"minLength": -1},
        {"type": "object", "required": []},
        {"examples": "one"},
        {"definitions": {"unused": 5}},
        {"pattern": "\\p{Alpha}+"},
        {"type": "string", "format": "no-such-format"},
    ],
)
def test_what_confluent_stores_is_read_though_the_meta_schema_refuses_it(schema: Any) -> None:
    assert parse(schema).canonical_text == json.dumps(schema, separators=(",", ":"))


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ('{ "b" : 1,\n "a": [ 1 , 2 ] }', '{"b":1,"a":[1,2]}'),
        ('{"default": 1.50}', '{"default":1.50}'),
        ('{"default": 1e10}', '{"default":1E+10}'),
        ('{"default": 12345678901234567890}', '{"default":12345678901234567890}'),
        ('{"default": null, "const": true}', '{"default":null,"const":true}'),
        ('{"title": "Gr\\u00f6\\u00dfe \\ud83d\\ude00"}', '{"title":"Größe 😀"}'),
        ('{"title": "\\u001f \\\\u001f \\n \\/ \\""}', '{"title":"\\u001F \\\\u001f \\n / \\""}'),
        ('{"a": {}, "b": [], "a": 2}', '{"a":2,"b":[]}'),
        ("true", "true"),
    ],
)
def test_canonical_text_is_compact_and_keeps_order_and_numbers(text: str, canonical: str) -> None:
    assert JsonSchemaLanguage().parse(text).canonical_text == canonical


def test_normalized_sorts_keys_at_every_level() -> None:
    schema = JsonSchemaLanguage().parse('{"type":"object","properties":{"b":{},"a":{"x":1,"X":2}}}')
    expected = '{"properties":{"a":{"X":2,"x":1},"b":{}},"type":"object"}'
    assert schema.normalized().canonical_text == expected
    assert schema.normalized().normalized().canonical_text == expected
    assert schema.normalized().incompatibilities(schema) == []


def test_name_is_the_title_and_other_forms_are_the_canonical_text() -> None:
    schema = parse({"title": "Order", "type": "object"})
    assert schema.name == "Order"
    assert parse(True).name is None
    assert schema.schema_type == "JSON"
    assert schema.formatted("resolved") == schema.formatted("") == schema.canonical_text


def test_top_level_fields_are_the_properties() -> None:
    schema = parse({"properties": {"a": {"properties": {"b": {}}}, "c": {}}})
    assert schema.top_level_fields == ("a", "c")
    assert parse(True).top_level_fields == ()


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(
            {
                "properties": {"a": {"$ref": "#/definitions/s"}},
                "definitions": {"s": {"type": "string"}},
            },
            id="a pointer",
        ),
        pytest.param(
            {"properties": {"a": {"$ref": "#/$defs/s"}}, "definitions": {"s": {"type": "string"}}},
            id="a definition by its later name",
        ),
        pytest.param(
            {
                "properties": {"a": {"$ref": "#/definitions/x~1y%20z"}},
                "definitions": {"x/y z": {"type": "string"}},
            },
            id="an escaped pointer",
        ),
        pytest.param(
            {
                "$id": "http://example.com/root.json",
                "properties": {"a": {"$ref": "part.json"}},
                "definitions": {"s": {"$id": "part.json", "type": "string"}},
            },
            id="an id",
        ),
        pytest.param(
            {
                "properties": {"a": {"$ref": "#s"}},
                "definitions": {"s": {"$id": "#s", "type": "string"}},
            },
            id="an id that is a fragment",
        ),
        pytest.param(
            {
                "$schema": "http://json-schema.org/draft-04/schema#",
                "id": "http://example.com/root.json",
                "properties": {"a": {"$ref": "http://example.com/s"}},
                "definitions": {"s": {"id": "/s", "type": "string"}},
            },
            id="an id of draft 4",
        ),
        pytest.param(
            {
                "$schema": MODERN,
                "properties": {"a": {"$ref": "#s"}},
                "$defs": {"s": {"$anchor": "s", "type": "string"}},
            },
            id="an anchor",
        ),
        pytest.param(
            {
                "$schema": MODERN,
                "$id": "https://example.com/root",
                "properties": {"a": {"$ref": "inner#/$defs/s"}},
                "$defs": {"i": {"$id": "inner", "$defs": {"s": {"type": "string"}}}},
            },
            id="a pointer into an embedded schema",
        ),
        pytest.param({"properties": {"a": {"$ref": "s.json"}}}, id="a reference"),
        pytest.param({"properties": {"a": {"$ref": "./s.json"}}}, id="a reference by ./"),
        pytest.param(
            {"properties": {"a": {"$ref": "s.json#"}}}, id="a reference with an empty fragment"
        ),
        pytest.param({"properties": {"a": {"$ref": "d.json#/definitions/t"}}}, id="a part of one"),
        pytest.param({"properties": {"a": {"$ref": "c.json"}}}, id="a reference of a reference"),
        pytest.param(
            {"$id": "http://example.com/x/root.json", "properties": {"a": {"$ref": "s.json"}}},
            id="a reference relative to the id",
        ),
        pytest.param(
            {"$schema": MODERN, "properties": {"a": {"$ref": "d.json#/$defs/t"}}},
            id="a part of a reference by its later name",
        ),
    ],
)
def test_references_are_resolved(schema: Any) -> None:
    parsed = parse(
        schema,
        s={"type": "string"},
        d={"definitions": {"t": {"type": "string"}}},
        c={"$ref": "s.json"},
    )
    assert isinstance(parsed.model, ObjectSchema)
    reference = parsed.model.properties["a"]
    assert isinstance(reference, ReferenceSchema)
    assert isinstance(reference.target, StringSchema)


@pytest.mark.parametrize("draft", Draft)
def test_a_meta_schema_can_be_referred_to(draft: Draft) -> None:
    schema = parse({"$schema": draft.value, "properties": {"a": {"$ref": draft.value + "#"}}})
    assert schema.incompatibilities(schema) == []


def test_recursive_schemas_are_read() -> None:
    tree = parse(
        {"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "value": {"type": "string"}}}
    )
    assert isinstance(tree.model, ObjectSchema)
    assert tree.model.properties["left"].target is tree.model


def test_keywords_of_several_types_are_parts_of_an_all_of() -> None:
    schema = parse({"type": "integer", "format": "int32"})
    assert isinstance(schema.model, CombinedSchema)
    assert [type(each).__name__ for each in schema.model.subschemas] == [
        "NumberSchema",
        "StringSchema",
    ]


def test_tuples_of_draft_2019_09_are_read() -> None:
    schema = parse(
        {
            "$schema": Draft.DRAFT_2019_09.value,
            "type": "array",
            "items": [{"type": "string"}],
            "additionalItems": False,
        }
    )
    assert isinstance(schema.model, ArraySchema)
    assert schema.model.items is not None
    assert not schema.model.permits_additional_items


def test_a_reference_that_is_no_schema_is_named() -> None:
    with pytest.raises(SchemaError, match=r"reference 's\.json': The schema is not JSON"):
        JsonSchemaLanguage().parse('{"$ref": "s.json"}', [ResolvedReference("s.json", "{")])
