"""Values against schemas, and what is said about those that do not fit."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.data.json_schema import Draft, JsonSchemaLanguage, JsonSchemaValidator
from moldau.data.schema_language import ResolvedReference, SchemaError
from support.examples import examples

ORDER = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "lines": {
            "type": "array",
            "items": {"type": "object", "properties": {"price": {"type": "number", "minimum": 0}}},
        },
    },
    "required": ["id"],
    "additionalProperties": False,
}


def validator(schema: Any, **references: Any) -> JsonSchemaValidator:
    named = [
        ResolvedReference(f"{name}.json", json.dumps(each)) for name, each in references.items()
    ]
    return JsonSchemaValidator(JsonSchemaLanguage().parse(json.dumps(schema), named))


def test_all_problems_are_listed_with_their_paths() -> None:
    value = {"lines": [{"price": 1}, {"price": -1}, {"price": "x"}], "more": 1}
    assert sorted(map(str, validator(ORDER).problems(value))) == [
        "$.lines[1].price: -1 is less than the minimum of 0",
        '$.lines[2].price: "x" is not of type "number"',
        '$: "id" is a required property',
        "$: Additional properties are not allowed ('more' was unexpected)",
    ]
    assert not validator(ORDER).is_valid(value)


def test_a_valid_value_has_no_problems() -> None:
    checker = validator(ORDER)
    assert checker.problems({"id": 1, "lines": []}) == []
    assert checker.is_valid({"id": 1})


@pytest.mark.parametrize("value", [{1: 2}, {"id": b"x"}, {"id": object()}])
def test_what_is_no_json_is_no_valid_value(value: Any) -> None:
    assert validator(ORDER).problems(value)
    assert not validator(ORDER).is_valid(value)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"$ref": "text.json"}}},
        {"properties": {"a": {"$ref": "./text.json"}}},
        {"properties": {"a": {"$ref": "all.json#/definitions/text"}}},
        {"properties": {"a": {"$ref": "chain.json"}}},
        {"$id": "http://example.com/x.json", "properties": {"a": {"$ref": "text.json"}}},
        {"properties": {"a": {"$ref": "#/$defs/t"}}, "definitions": {"t": {"type": "string"}}},
    ],
)
def test_references_are_found(schema: Any) -> None:
    checker = validator(
        schema,
        text={"type": "string"},
        all={"definitions": {"text": {"type": "string"}}},
        chain={"$ref": "text.json"},
    )
    assert checker.is_valid({"a": "x"})
    assert not checker.is_valid({"a": 1})


def test_a_schema_that_its_meta_schema_refuses_cannot_check_values() -> None:
    with pytest.raises(SchemaError, match="Values cannot be checked"):
        validator({"minLength": -1})


@pytest.mark.parametrize(
    ("draft", "is_valid"), [(Draft.DRAFT_7, False), (Draft.DRAFT_2020_12, True)]
)
def test_formats_are_checked_up_to_draft_7(draft: Draft, is_valid: bool) -> None:
    checker = validator({"$schema": draft.value, "format": "date-time"})
    assert checker.is_valid("yesterday") == is_valid


@pytest.mark.parametrize("draft", Draft)
def test_the_rules_are_those_of_the_draft(draft: Draft) -> None:
    checker = validator({"$schema": draft.value, "const": 1, "$defs": {}})
    assert checker.is_valid(2) == (draft is Draft.DRAFT_4), "draft 4 has no const"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "ab", "abc"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "id", "lines", "price"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=examples(100), deadline=None)
@given(VALUES)
def test_another_validator_is_of_the_same_opinion(value: Any) -> None:
    schema = {
        **ORDER,
        "additionalProperties": {
            "oneOf": [{"type": "string", "maxLength": 2}, {"enum": [1, None]}]
        },
        "minProperties": 1,
    }
    assert validator(schema).is_valid(value) == jsonschema.Draft7Validator(schema).is_valid(value)
