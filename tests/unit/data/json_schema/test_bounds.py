"""Inputs that are made to take long: an answer or a clear error, in bounded time."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from moldau.data.json_schema import JsonSchema, JsonSchemaLanguage, JsonSchemaValidator
from moldau.data.json_schema.recursion import is_recursive
from moldau.data.json_schema.text import DEPTH_MAX
from moldau.data.schema_language import ResolvedReference, SchemaError

MODERN = "https://json-schema.org/draft/2020-12/schema"
#: Of CPU time: an unbounded run would take minutes or for ever.
SECONDS_MAX = 30


@contextmanager
def bounded() -> Iterator[None]:
    started = time.process_time()
    yield
    assert time.process_time() - started < SECONDS_MAX


def parse(schema: Any) -> JsonSchema:
    return JsonSchemaLanguage().parse(schema if isinstance(schema, str) else json.dumps(schema))


def nested(levels: int) -> str:
    return '{"not":' * levels + "{}" + "}" * levels


@pytest.mark.parametrize("levels", [DEPTH_MAX + 1, 990, 100_000])
@pytest.mark.parametrize("text", [nested, lambda n: '{"enum":' + "[" * n + "]" * n + "}"])
def test_deep_nesting_is_refused(text: Any, levels: int) -> None:
    with bounded(), pytest.raises(SchemaError, match="nested more than 128 levels deep"):
        parse(text(levels))


@pytest.mark.parametrize("draft", ["http://json-schema.org/draft-07/schema#", MODERN])
def test_what_is_just_not_too_deep_is_read_and_compared(draft: str) -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(DEPTH_MAX // 2 - 2):
        schema = {"type": "object", "properties": {"a": schema}}
    parsed = parse({"$schema": draft, **schema})
    assert parsed.incompatibilities(parsed) == []
    assert parsed.normalized().canonical_text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param('{"title":"' + "x" * 17_000_000 + '"}', "characters", id="long"),
        pytest.param('{"minimum":' + "9" * 100_000 + "}", "digits", id="a long number"),
        pytest.param('{"minimum":1e999999999}', "too large", id="a large number"),
        pytest.param(
            json.dumps({"properties": {f"p{i}": {} for i in range(100_001)}}),
            "more than 100000 schemas",
            id="many properties",
        ),
        pytest.param(json.dumps({"pattern": "(" * 9_000}), "no regular expression", id="a pattern"),
        pytest.param(json.dumps({"pattern": "a" * 10_001}), "10000 characters", id="long pattern"),
    ],
)
def test_huge_schemas_are_refused(text: str, message: str) -> None:
    with bounded(), pytest.raises(SchemaError, match=message):
        parse(text)


def test_a_repeated_type_does_not_multiply_without_end() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(12):
        schema = {"type": ["object"] * 20, "properties": {"a": schema}}
    with bounded(), pytest.raises(SchemaError, match="more than 100000 schemas"):
        parse(schema)


def test_references_that_double_on_every_level_are_loaded_once() -> None:
    """Ten to the power of forty schemas, if each reference were copied."""
    references = [
        ResolvedReference(
            f"{level}.json",
            json.dumps({"allOf": [{"$ref": f"{level + 1}.json"}] * 10, "title": str(level)}),
        )
        for level in range(40)
    ]
    references.append(ResolvedReference("40.json", '{"type": "string"}'))
    with bounded():
        schema = JsonSchemaLanguage().parse('{"$ref": "0.json"}', references)
        assert schema.incompatibilities(schema) == []


def doubling(levels: int, leaf: str) -> dict[str, Any]:
    """Two ways down on every level, to one leaf."""
    definitions: dict[str, Any] = {f"d{levels}": {"type": leaf}}
    for level in range(levels):
        below = {"$ref": f"#/definitions/d{level + 1}"}
        definitions[f"d{level}"] = {"type": "object", "properties": {"a": below, "b": below}}
    return {"$ref": "#/definitions/d0", "definitions": definitions}


def test_a_change_that_shows_in_very_many_places_is_found() -> None:
    with bounded():
        found = parse(doubling(60, "string")).incompatibilities(parse(doubling(60, "integer")))
    assert len(found) == 1
    assert found[0].startswith('{errorType:"TYPE_CHANGED"')


def test_a_compatible_change_in_very_many_places_is_compatible() -> None:
    with bounded():
        assert not parse(doubling(60, "number")).incompatibilities(parse(doubling(60, "integer")))


def ring(size: int, last: str) -> dict[str, Any]:
    """Definitions that refer to one another in a circle."""
    definitions = {
        f"d{i}": {
            "properties": {
                "next": {"$ref": f"#/definitions/d{(i + 1) % size}"},
                "value": {"type": "string" if i < size - 1 else last},
            }
        }
        for i in range(size)
    }
    return {"$ref": "#/definitions/d0", "definitions": definitions}


def test_rings_of_different_sizes_are_compared() -> None:
    with bounded():
        assert not parse(ring(60, "string")).incompatibilities(parse(ring(61, "string")))
        assert parse(ring(60, "string")).incompatibilities(parse(ring(61, "integer")))


def test_rings_with_very_many_pairs_are_refused() -> None:
    with bounded(), pytest.raises(SchemaError, match="more than 20000 levels deep"):
        parse(ring(400, "string")).incompatibilities(parse(ring(401, "string")))


def products(count: int, first_id: str) -> dict[str, Any]:
    """Objects that may hold any of one another, in two places: a union of unions without end."""
    names = [f"T{i}" for i in range(count)]
    union = {"oneOf": [{"$ref": f"#/definitions/{name}"} for name in names]}
    definitions = {
        name: {
            "type": "object",
            "properties": {
                "id": {"type": first_id if name == "T0" else "string"},
                "kind": {"const": name},
                "underlying": union,
                "reference": union,
            },
        }
        for name in names
    }
    return {"definitions": definitions, "properties": {"product": union}}


@pytest.mark.parametrize("count", [3, 12, 25])
def test_recursive_unions_are_compared(count: int) -> None:
    with bounded():
        old = parse(products(count, "string"))
        assert parse(products(count, "string")).incompatibilities(old) == []
        assert parse(products(count, "integer")).incompatibilities(old) != []


def test_unions_of_unions_are_compared() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(10):
        schema = {"oneOf": [schema, {"type": "null"}, {"allOf": [schema]}]}
    with bounded():
        assert parse(schema).incompatibilities(parse(schema)) == []


def constants(first: int) -> dict[str, Any]:
    return {"oneOf": [{"type": "integer", "const": first + i} for i in range(600)]}


def test_alternatives_that_stay_as_they_are_cost_little() -> None:
    changed = constants(0)
    changed["oneOf"][17]["title"] = "seventeen"
    with bounded():
        assert parse(changed).incompatibilities(parse(constants(0))) == []


def test_very_many_alternatives_that_all_change_are_refused() -> None:
    with bounded(), pytest.raises(SchemaError, match="Use fewer alternatives"):
        parse(constants(0)).incompatibilities(parse(constants(1000)))


def test_a_pattern_that_backtracks_does_not_hang() -> None:
    pattern = {"(?!x)(a+)+$": {"type": "string"}}
    old = {"patternProperties": pattern, "additionalProperties": False}
    new = {**old, "properties": {"a" * 60 + "b": {"type": "string"}}}
    with bounded():
        parse(new).incompatibilities(parse(old))
        validator = JsonSchemaValidator(parse({"pattern": "(?!x)(a+)+$"}))
        assert not validator.is_valid("a" * 60 + "b")


@pytest.mark.parametrize("depth", [1_000, 100_000])
def test_values_that_are_too_deep_are_refused_and_nothing_crashes(depth: int) -> None:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    for schema in (
        {"properties": {"a": {"$ref": "#"}}},
        {"type": "string"},
        {"enum": [1]},
        {"uniqueItems": True, "type": "array"},
    ):
        validator = JsonSchemaValidator(parse(schema))
        assert not validator.is_valid(value)
        assert validator.problems(value)


def test_a_value_that_contains_itself_is_refused() -> None:
    value: dict[str, Any] = {}
    value["a"] = value
    assert JsonSchemaValidator(parse({"properties": {"a": {"$ref": "#"}}})).problems(value)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"properties": {"a": {"$ref": "#"}}}, True),
        ({"properties": {"a": {"$ref": "#/definitions/b"}}, "definitions": {"b": {}}}, False),
        ({"not": {"items": {"anyOf": [{"$ref": "#"}]}}}, True),
        ({"$schema": MODERN, "if": {}, "then": {"unevaluatedItems": {"$ref": "#"}}}, True),
        (ring(3, "string"), True),
        (doubling(40, "string"), False),
    ],
)
def test_recursive_schemas_are_known(schema: Any, expected: bool) -> None:
    assert is_recursive(parse(schema).model) == expected
