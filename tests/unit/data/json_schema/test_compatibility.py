"""What the answers of the registry say, and comparisons that the given cases do not have."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moldau.data.json_schema import JsonSchema, JsonSchemaLanguage
from moldau.data.json_schema.diff.difference import (
    COMPATIBLE_STRICT,
    Difference,
    DifferenceType,
)
from moldau.data.json_schema.diff.java_order import hash_order
from moldau.data.json_schema.diff.matching import maximum_matching
from moldau.data.json_schema.diff.schema_diff import compare_schemas

MODERN = {"$schema": "https://json-schema.org/draft/2020-12/schema"}


def parse(schema: Any) -> JsonSchema:
    return JsonSchemaLanguage().parse(json.dumps(schema))


def changes(original: Any, update: Any) -> list[str]:
    found = compare_schemas(parse(original).model, parse(update).model)
    return [f"{each.type.name} {each.path}" for each in found]


def typed(name: str) -> dict[str, Any]:
    return {"type": name}


@pytest.mark.parametrize(
    ("original", "update", "sentence"),
    [
        pytest.param(
            {"type": "string"},
            {"type": "string", "maxLength": 5},
            '{errorType:"MAX_LENGTH_ADDED", description:"'
            "The keyword at path '#/maxLength' in the new schema is not present in the old "
            "schema'}",
            id="a keyword",
        ),
        pytest.param(
            {"type": "object", "properties": {}},
            {"type": "object", "properties": {"a{}%s": {"type": "string"}}},
            '{errorType:"OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", description:"The new '
            "schema has an open content model and has a property or item at path "
            "'#/properties/a{}%s' which is missing in the old schema'}",
            id="a property",
        ),
        pytest.param(
            {"type": "string"},
            {"type": "integer"},
            '{errorType:"TYPE_CHANGED", description:"'
            "A type at path '#/' is different between the new schema and the old schema'}",
            id="a type",
        ),
        pytest.param(
            {"properties": {"a": {}}, "additionalProperties": False},
            {"properties": {}, "additionalProperties": False},
            '{errorType:"PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", description:"The new has a '
            "closed content model and is missing a property or item present at path "
            "'#/properties/a' in the old schema'}",
            id="a property that is gone",
        ),
        pytest.param(
            {"type": "array"},
            {"type": "array", "items": {"type": "string"}},
            '{errorType:"SCHEMA_ADDED", description:"\'}',
            id="one without a sentence",
        ),
    ],
)
def test_sentences_are_those_of_confluent(original: Any, update: Any, sentence: str) -> None:
    assert parse(update).incompatibilities(parse(original)) == [sentence]


def test_the_names_of_reader_and_writer_are_put_in() -> None:
    found = parse({"type": "string"}).incompatibilities(
        parse({"type": "null"}), reader_name="old", writer_name="new"
    )
    assert "between the old schema and the new schema" in found[0]


def test_lenient_allows_properties_to_come_to_an_open_object() -> None:
    original, update = parse({"properties": {}}), parse({"properties": {"a": {"type": "string"}}})
    assert update.incompatibilities(original) != []
    assert update.incompatibilities(original, lenient=True) == []


def test_a_schema_of_another_language_is_never_compatible() -> None:
    class Other:
        schema_type = "AVRO"

    found = parse({}).incompatibilities(Other())  # type: ignore[arg-type]
    assert found == ["Incompatible because of different schema type"]


@pytest.mark.parametrize(
    ("original", "update", "expected"),
    [
        pytest.param(
            {"multipleOf": 0.5}, {"multipleOf": 10}, ["MULTIPLE_OF_EXPANDED #/multipleOf"], id="0.5"
        ),
        pytest.param({"multipleOf": 0.5}, {"multipleOf": 0.50}, [], id="the same number"),
        pytest.param(
            {"exclusiveMaximum": 10},
            {"exclusiveMaximum": 5},
            ["EXCLUSIVE_MAXIMUM_DECREASED #/exclusiveMaximum"],
            id="an exclusive maximum, where Confluent's registry fails",
        ),
        pytest.param({"enum": [1, True, "1"]}, {"enum": [True, "1", 1]}, [], id="order of an enum"),
        pytest.param(
            {"enum": [1]}, {"enum": [True]}, ["ENUM_ARRAY_CHANGED #/enum"], id="1 is not true"
        ),
        pytest.param({}, {"properties": {}}, ["TYPE_CHANGED #/"], id="from {} to an object"),
        pytest.param({**MODERN}, {**MODERN, "properties": {}}, [], id="from {} to nothing"),
        pytest.param(True, {}, [], id="true is {}"),
        pytest.param(
            {"dependencies": {}}, {"dependencies": {"a": []}}, [], id="an empty dependency is none"
        ),
        pytest.param(False, {"type": "string"}, [], id="nothing was written"),
        pytest.param(
            {"type": "string", "connect.type": "bytes"},
            {"type": "number", "connect.type": "bytes"},
            [],
            id="Connect's bytes",
        ),
        pytest.param(
            {"type": "integer", "format": "int32"},
            {"type": "integer"},
            ["PRODUCT_TYPE_NARROWED #/"],
            id="a format of another type is a part",
        ),
        pytest.param(
            {"type": ["string", "null"]},
            {"type": ["string", "null", "integer"]},
            ["SUM_TYPE_EXTENDED #/"],
            id="a list of types",
        ),
        pytest.param(
            {**MODERN, "type": ["string", "null"], "minLength": 5},
            {**MODERN, "type": ["string", "null"], "minLength": 4},
            ["MIN_LENGTH_DECREASED #/anyOf/0/minLength"],
            id="a keyword of a type in a list",
        ),
        pytest.param(
            {"not": {"type": "string"}},
            {"not": {"type": "string", "maxLength": 3}},
            ["NOT_TYPE_NARROWED #/not"],
            id="less is excluded",
        ),
        pytest.param(
            {
                "$ref": "#/definitions/a",
                "definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"type": "string"}},
            },
            {"type": "integer"},
            ["TYPE_CHANGED #/"],
            id="references to references are followed to their end",
        ),
        pytest.param(
            {"type": "array", "items": [{"type": "string"}], "additionalItems": {"type": "string"}},
            {"type": "array", "items": [], "additionalItems": {"type": "string"}},
            ["ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/0"],
            id="an item that is covered",
        ),
        pytest.param(
            {"patternProperties": {"^x": {"type": "string"}}, "additionalProperties": False},
            {
                "properties": {"xa": {"type": "string"}},
                "patternProperties": {"^x": {"type": "string"}},
                "additionalProperties": False,
            },
            [
                "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/xa",
                "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/xa",
            ],
            id="a property that a pattern covers",
        ),
        pytest.param(
            {**MODERN, "unevaluatedProperties": False, "$defs": {"a": {}}},
            {**MODERN, "unevaluatedProperties": True, "$defs": {"a": {}}},
            ["UNEVALUATED_PROPERTIES_ADDED #/unevaluatedProperties"],
            id="unevaluated properties beside definitions",
        ),
    ],
)
def test_changes(original: Any, update: Any, expected: list[str]) -> None:
    assert changes(original, update) == expected


def test_properties_are_listed_in_the_order_of_javas_hash_tables() -> None:
    # What `new HashSet<>(List.of(...))` lists in Java.
    assert hash_order(["one", "two", "three", "four"]) == ["four", "one", "two", "three"]
    assert hash_order(["Aa", "BB"]) == ["Aa", "BB"], "equal hash codes: in the order of insertion"
    assert hash_order(["BB", "Aa"]) == ["BB", "Aa"]


def test_an_incompatible_change_behind_a_cycle_is_found() -> None:
    """T0 and T1 are alternatives, and T0 is met again inside itself by way of T2."""

    def schema(first: str, second: str) -> dict[str, Any]:
        def node(id_type: str, target: str) -> dict[str, Any]:
            ref = {"oneOf": [{"$ref": f"#/definitions/{target}"}]}
            return {"type": "object", "properties": {"id": typed(id_type), "ref": ref}}

        return {
            "definitions": {
                "T0": node(first, "T2"),
                "T1": node(second, "T2"),
                "T2": node("integer", "T0"),
            },
            "oneOf": [{"$ref": "#/definitions/T0"}, {"$ref": "#/definitions/T1"}],
        }

    assert parse(schema("boolean", "number")).incompatibilities(parse(schema("integer", "boolean")))
    assert not parse(schema("number", "boolean")).incompatibilities(
        parse(schema("integer", "boolean"))
    )


def test_alternatives_are_matched_so_that_each_has_a_partner() -> None:
    # The first alternative fits both new ones; it must leave the wider one to the second.
    original = {"oneOf": [{"type": "integer", "maximum": 5}, {"type": "integer", "maximum": 9}]}
    update = {"oneOf": [{"type": "integer", "maximum": 9}, {"type": "integer", "maximum": 6}]}
    assert changes(original, update) == ["MAXIMUM_INCREASED #/oneOf/0/maximum"]


@pytest.mark.parametrize(
    ("edges", "size"),
    [
        ([], 0),
        ([(0, 0), (1, 0)], 1),
        ([(0, 0), (0, 1), (1, 0)], 2),
        ([(0, 0), (0, 1), (1, 0), (1, 2), (2, 0), (2, 1)], 3),
        ([(0, 1), (1, 0), (1, 1), (2, 1), (2, 2), (3, 2)], 3),
    ],
)
def test_the_matching_is_of_maximum_size(edges: list[tuple[int, int]], size: int) -> None:
    found = maximum_matching(4, 4, edges)
    assert len(found) == size
    assert set(found) <= set(edges)
    assert len({row for row, _ in found}) == len({column for _, column in found}) == size


def test_every_incompatible_change_has_a_sentence_but_one() -> None:
    silent = [
        each.name
        for each in DifferenceType
        if each not in COMPATIBLE_STRICT
        and Difference(each, "#/").describe("new", "old").endswith("description:\"'}")
    ]
    assert silent == ["SCHEMA_ADDED"], "Confluent's registry has none for it either"
